"""Map, flat map, filter, project and process: each a few lines of the loop, with keyed state where there are keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tamias.contracts.fields import read_field
from tamias.contracts.functions import FilterFunction, FlatMapFunction, MapFunction
from tamias.contracts.output_tag import OutputTag
from tamias.graph.job_graph import Operator
from tamias.graph.specs import FilterSpec, FlatMapSpec, MapSpec, ProcessSpec, ProjectSpec
from tamias.runtime.code import Code
from tamias.runtime.contexts import Clocks, ElementContext
from tamias.runtime.operators.base import Emit, RuntimeOperator, method_of
from tamias.runtime.operators.keys import write_key
from tamias.runtime.place import Place


class MapOperator(RuntimeOperator):
    def __init__(self, operator: Operator, spec: MapSpec, place: Place) -> None:
        super().__init__(operator, place)
        self._function = spec.function

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        write_key(code, self, value)
        result = code.fresh("v")
        code.line(f"{result} = {code.bind(method_of(self._function, MapFunction, 'map'), 'map')}({value})")
        emit(result, time)


class FlatMapOperator(RuntimeOperator):
    def __init__(self, operator: Operator, spec: FlatMapSpec, place: Place) -> None:
        super().__init__(operator, place)
        self._function = spec.function

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        write_key(code, self, value)
        results, result = code.fresh("r"), code.fresh("v")
        code.line(f"{results} = {code.bind(method_of(self._function, FlatMapFunction, 'flat_map'), 'flat_map')}({value})")
        with code.block(f"if {results} is not None:"), code.block(f"for {result} in {results}:"):
            emit(result, time)


class FilterOperator(RuntimeOperator):
    def __init__(self, operator: Operator, spec: FilterSpec, place: Place) -> None:
        super().__init__(operator, place)
        self._function = spec.function

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        write_key(code, self, value)
        keep = code.bind(method_of(self._function, FilterFunction, "filter"), "filter")
        with code.block(f"if {keep}({value}):"):
            emit(value, time)


class ProjectOperator(RuntimeOperator):
    def __init__(self, operator: Operator, spec: ProjectSpec, place: Place) -> None:
        super().__init__(operator, place)
        self._fields = spec.fields

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        result, read = code.fresh("v"), code.bind(read_field, "read_field")
        fields = "".join(f"{read}({value}, {field}), " for field in self._fields)
        code.line(f"{result} = ({fields})")
        emit(result, time)


class ProcessOperator(RuntimeOperator):
    """`process` with a `ProcessFunction`, or on a keyed stream a `KeyedProcessFunction`."""

    def __init__(self, operator: Operator, spec: ProcessSpec, place: Place) -> None:
        super().__init__(operator, place)
        self._function = spec.function
        self._clocks = Clocks(place)
        self._context = ElementContext(self._clocks, self.backend.cell if self.backend is not None else None)

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def on_watermark(self, watermark_ms: int) -> None:
        self._clocks.watermark_ms = watermark_ms

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        write_key(code, self, value)
        context = code.bind(self._context, "context")
        code.line(f"{context}.time = {time}")
        results = code.fresh("r")
        code.line(f"{results} = {code.bind(self._function.process_element, 'process')}({value}, {context})")
        write_results(code, results, time, emit, side)


def write_results(code: Code, results: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
    """Write the loop over what a process function gave back: records, and pairs of a tag and a record."""
    result, tag = code.fresh("v"), code.bind(OutputTag, "OutputTag")
    with code.block(f"if {results} is not None:"), code.block(f"for {result} in {results}:"):
        tagged = f"{result}.__class__ is tuple and len({result}) == 2 and {result}[0].__class__ is {tag}"
        with code.block(f"if {tagged}:"):
            if side:
                name, inner = code.fresh("tag"), code.fresh("v")
                code.line(f"{name}, {inner} = {result}[0].tag_id, {result}[1]")
                for tag_id, emit_side in side.items():
                    with code.block(f"if {name} == {tag_id!r}:"):
                        emit_side(inner, time)
        with code.block("else:"):
            emit(result, time)
