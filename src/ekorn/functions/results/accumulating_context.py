"""`AccumulatingContext`: the accumulators of a subtask, which its functions share by name."""

from __future__ import annotations

from typing import Any, TypeVar

from ekorn.errors import AccumulatorError
from ekorn.functions.results.accumulators import Accumulator, DoubleCounter, Histogram, IntCounter, LongCounter
from ekorn.functions.runtime_context import RuntimeContext

__all__ = ["AccumulatingContext"]

A = TypeVar("A", bound=Accumulator[Any, Any])


class AccumulatingContext(RuntimeContext):
    """The part of a runtime context that keeps accumulators.

    Attributes:
        accumulators: The accumulators by name.
    """

    accumulators: dict[str, Accumulator[Any, Any]]

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        if name in self.accumulators:
            raise AccumulatorError(
                f"accumulator {name!r} already exists in {self.get_task_name_with_subtasks()}; "
                "use get_accumulator, or another name"
            )
        self.accumulators[name] = accumulator

    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        try:
            return self.accumulators[name]
        except KeyError:
            raise AccumulatorError(
                f"there is no accumulator {name!r} in {self.get_task_name_with_subtasks()}; call add_accumulator first"
            ) from None

    def get_int_counter(self, name: str) -> IntCounter:
        return self._on_demand(name, IntCounter)

    def get_long_counter(self, name: str) -> LongCounter:
        return self._on_demand(name, LongCounter)

    def get_double_counter(self, name: str) -> DoubleCounter:
        return self._on_demand(name, DoubleCounter)

    def get_histogram(self, name: str) -> Histogram:
        return self._on_demand(name, Histogram)

    def _on_demand(self, name: str, kind: type[A]) -> A:
        found = self.accumulators.setdefault(name, kind())
        if type(found) is not kind:
            raise AccumulatorError(
                f"accumulator {name!r} is a {type(found).__name__}, not a {kind.__name__}; use another name"
            )
        return found
