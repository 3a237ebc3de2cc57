"""The functions behind `as_queryable_state`: they keep each key's records in a queryable state, and emit nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ekorn.functions.process_functions import KeyedProcessFunction
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.state.state_descriptors import (
    FoldingStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)

__all__ = ["QueryableRecords"]


class QueryableRecords(KeyedProcessFunction):
    """Keeps the latest record of each key, or what a descriptor's function makes of all of them."""

    def __init__(self, descriptor: ValueStateDescriptor | ReducingStateDescriptor | FoldingStateDescriptor) -> None:
        self.descriptor: StateDescriptor = descriptor

    def open(self, runtime_context: RuntimeContext) -> None:
        """Get the state, and choose how a record enters it."""
        match self.descriptor:
            case ValueStateDescriptor() as descriptor:
                self._keep: Any = runtime_context.get_state(descriptor).update
            case ReducingStateDescriptor() as descriptor:
                self._keep = runtime_context.get_reducing_state(descriptor).add
            case FoldingStateDescriptor() as descriptor:
                self._keep = runtime_context.get_folding_state(descriptor).add

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        """Keep a record."""
        self._keep(value)
        return iter(())
