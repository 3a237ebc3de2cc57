"""What functions inside an iteration use: the number of the superstep, and aggregators over all subtasks.

A superstep is one pass of the step function over the iteration's data. The aggregators of all subtasks are merged when
a superstep ends. The merged value can be read in the next superstep, and can end the iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, TypeVar

from ekorn.functions.runtime_context import RuntimeContext

__all__ = [
    "Aggregator",
    "ConvergenceCriterion",
    "DoubleSumAggregator",
    "DoubleZeroConvergence",
    "IterationRuntimeContext",
    "LongSumAggregator",
    "LongZeroConvergence",
]

V = TypeVar("V")


class Aggregator(ABC, Generic[V]):
    """Combines values of one superstep. Every subtask begins each superstep with an aggregator that was reset."""

    @abstractmethod
    def get_aggregate(self) -> V:
        """Return the value over everything that was aggregated since the last reset."""

    @abstractmethod
    def aggregate(self, element: V) -> None:
        """Add a value; it may be the aggregate of another subtask."""

    @abstractmethod
    def reset(self) -> None:
        """Remove all values."""


class LongSumAggregator(Aggregator[int]):
    """Adds up integers.

    >>> sum_of = LongSumAggregator()
    >>> sum_of.aggregate(2)
    >>> sum_of.aggregate(3)
    >>> sum_of.get_aggregate()
    5
    """

    def __init__(self) -> None:
        self._sum = 0

    def get_aggregate(self) -> int:
        return self._sum

    def aggregate(self, element: int) -> None:
        self._sum += element

    def reset(self) -> None:
        self._sum = 0


class DoubleSumAggregator(Aggregator[float]):
    """Adds up floating-point numbers."""

    def __init__(self) -> None:
        self._sum = 0.0

    def get_aggregate(self) -> float:
        return self._sum

    def aggregate(self, element: float) -> None:
        self._sum += element

    def reset(self) -> None:
        self._sum = 0.0


class ConvergenceCriterion(ABC, Generic[V]):
    """Ends an iteration by the value of an aggregator."""

    @abstractmethod
    def is_converged(self, iteration: int, value: V) -> bool:
        """Return whether the superstep with this number was the last, given the merged value of the aggregator."""


class LongZeroConvergence(ConvergenceCriterion[int]):
    """Ends an iteration after a superstep that aggregated to 0."""

    def is_converged(self, iteration: int, value: int) -> bool:
        return value == 0


class DoubleZeroConvergence(ConvergenceCriterion[float]):
    """Ends an iteration after a superstep that aggregated to 0.0."""

    def is_converged(self, iteration: int, value: float) -> bool:
        return value == 0.0


class IterationRuntimeContext(RuntimeContext):
    """The runtime context of a function inside an iteration.

    A function object keeps its fields from one superstep to the next. `open` and `close` are called in each superstep.
    """

    @abstractmethod
    def get_superstep_number(self) -> int:
        """Return the number of the superstep, from 1."""

    @abstractmethod
    def get_iteration_aggregator(self, name: str) -> Aggregator[Any]:
        """Return the aggregator of this subtask that the iteration registered under a name."""

    @abstractmethod
    def get_previous_iteration_aggregate(self, name: str) -> Any:
        """Return the merged value of an aggregator after the last superstep; None in the first superstep."""
