"""Map, flat map, filter and project. On a keyed stream their functions have keyed state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.record_fields import read_field
from ekorn.functions.record_functions import FilterFunction, FlatMapFunction, MapFunction
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import FilterSpec, FlatMapSpec, MapSpec, ProjectSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_key
from ekorn.operators.operator import RuntimeOperator, method_of
from ekorn.operators.results import generate_loop


class MapOperator(RuntimeOperator):
    def __init__(self, operator: Operator, spec: MapSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._function = spec.function

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        result = code.fresh("v")
        code.line(f"{result} = {code.bind(method_of(self._function, MapFunction, 'map'), 'map')}({value})")
        emit(result, time)


class FlatMapOperator(RuntimeOperator):
    def __init__(self, operator: Operator, spec: FlatMapSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._function = spec.function

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        flat_map = method_of(self._function, FlatMapFunction, "flat_map")
        with generate_loop(code, self, flat_map, value, "flat_map") as result:
            emit(result, time)


class FilterOperator(RuntimeOperator):
    def __init__(self, operator: Operator, spec: FilterSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._function = spec.function

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        keep = code.bind(method_of(self._function, FilterFunction, "filter"), "filter")
        with code.block(f"if {keep}({value}):"):
            emit(value, time)


class ProjectOperator(RuntimeOperator):
    def __init__(self, operator: Operator, spec: ProjectSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._fields = spec.fields

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        result, read = code.fresh("v"), code.bind(read_field, "read_field")
        fields = "".join(f"{read}({value}, {field}), " for field in self._fields)
        code.line(f"{result} = ({fields})")
        emit(result, time)
