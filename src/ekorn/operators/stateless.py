"""Map, flat map, filter and project, whose functions have keyed state on a keyed stream; and Flink 1.x's split."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.record_fields import read_field
from ekorn.functions.record_functions import FilterFunction, FlatMapFunction, MapFunction
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import ProjectSpec, SplitSpec
from ekorn.legacy.selection import OutputSelector, names_in
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_key
from ekorn.operators.operator import RuntimeOperator, UserFunctionOperator, method_of
from ekorn.operators.results import FLAT_MAP_RESULTS, generate_loop
from ekorn.types.by_value import own


class MapOperator(UserFunctionOperator):
    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        result = code.fresh("v")
        code.line(f"{result} = {code.bind(method_of(self._function, MapFunction, 'map'), 'map')}({value})")
        emit(result, time)


class FlatMapOperator(UserFunctionOperator):
    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        flat_map = method_of(self._function, FlatMapFunction, "flat_map")
        with generate_loop(code, self, flat_map, value, "flat_map", kinds=FLAT_MAP_RESULTS) as result:
            emit(result, time)


class FilterOperator(UserFunctionOperator):
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


class SplitOperator(RuntimeOperator):
    """Emits a record on the side output of every selection that selects it, and always on the main output."""

    def __init__(self, operator: Operator, spec: SplitSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._selector = spec.selector
        self._select = method_of(spec.selector, OutputSelector, "select")

    def functions(self) -> Iterable[Any]:
        return (self._selector,)

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        if side:
            names = code.fresh("names")
            code.line(f"{names} = {code.bind(self._names_of, 'names_of')}({value})")
            for tag, emit_side in side.items():
                with code.block(f"if not {names}.isdisjoint({code.bind(names_in(tag), 'wanted')}):"):
                    copy = code.fresh("v")  # every selection may change its record
                    code.line(f"{copy} = {code.bind(own, 'own')}({value})")
                    emit_side(copy, time)
        emit(value, time)

    def _names_of(self, value: Any) -> frozenset[str]:
        names = self._select(value)
        if not isinstance(names, Iterable) or isinstance(names, str):
            raise TypeError(
                f"the selector returned {names!r}; return a list of names, such as ['even'], or [] for none"
            )
        return frozenset(names)
