"""`split`: a record leaves on the side output of every selection that selects it, and always on the main output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.selection import OutputSelector, names_in
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import SplitSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator, method_of
from ekorn.types.by_value import own


class SplitOperator(RuntimeOperator):
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
