"""Accumulators: values that functions add to while a job runs, and that the driver merges when the job ends.

Each subtask has its own accumulators. They travel to the driver by pickle, so everything that an accumulator keeps must
pickle. Accumulators are not part of checkpoints: a restarted attempt counts from the start again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Generic, TypeVar

from ekorn.errors import AccumulatorError

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
    "SimpleAccumulator",
    "merge_accumulators",
]

V = TypeVar("V")
R = TypeVar("R")


class Accumulator(ABC, Generic[V, R]):
    """Takes values of one type and returns a result of another.

    A subclass must be able to merge two accumulators that different subtasks filled.
    """

    @abstractmethod
    def add(self, value: V) -> None:
        """Add one value."""

    @abstractmethod
    def get_local_value(self) -> R:
        """Return the result over the values of this subtask."""

    @abstractmethod
    def reset_local(self) -> None:
        """Remove all values."""

    @abstractmethod
    def merge(self, other: Accumulator[V, R]) -> None:
        """Add the values of another accumulator of this class."""

    def clone(self) -> Accumulator[V, R]:
        """Return a copy that shares nothing with this accumulator."""
        return deepcopy(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_local_value()!r})"


class SimpleAccumulator(Accumulator[V, V]):
    """An accumulator whose result has the type of its values."""


class _Counter(SimpleAccumulator[V]):
    """A sum that begins at zero."""

    _zero: Any = 0

    def __init__(self, value: Any = None) -> None:
        self._value: Any = self._zero if value is None else value

    def add(self, value: Any = 1) -> None:
        """Add a value; 1 by default."""
        self._value += value

    def get_local_value(self) -> V:
        return self._value  # type: ignore[no-any-return]

    def get_local_value_primitive(self) -> V:
        """Return the sum. Flink: the same as `get_local_value`, without boxing in Java."""
        return self._value  # type: ignore[no-any-return]

    def reset_local(self) -> None:
        self._value = self._zero

    def merge(self, other: Accumulator[V, V]) -> None:
        self._value += other.get_local_value()


class IntCounter(_Counter[int]):
    """A sum of integers.

    >>> counter = IntCounter()
    >>> counter.add(2)
    >>> counter
    IntCounter(2)
    """


class LongCounter(_Counter[int]):
    """A sum of integers. Python integers do not overflow, so `LongCounter` equals `IntCounter`."""


class DoubleCounter(_Counter[float]):
    """A sum of floating-point numbers."""

    _zero = 0.0


class AverageAccumulator(SimpleAccumulator[float]):
    """The mean of all values; 0.0 before the first value."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._count += 1
        self._sum += value

    def get_local_value(self) -> float:
        return self._sum / self._count if self._count else 0.0

    def reset_local(self) -> None:
        self._count = 0
        self._sum = 0.0

    def merge(self, other: Accumulator[float, float]) -> None:
        if not isinstance(other, AverageAccumulator):
            raise _unlike(self, other)
        self._count += other._count
        self._sum += other._sum


class _Extreme(SimpleAccumulator[V]):
    """The minimum or maximum; before the first value, the opposite end of Java's type."""

    _start: Any
    _pick: Any

    def __init__(self, value: Any = None) -> None:
        self._value: Any = self._start if value is None else value

    def add(self, value: V) -> None:
        self._value = type(self)._pick(self._value, value)

    def get_local_value(self) -> V:
        return self._value  # type: ignore[no-any-return]

    def reset_local(self) -> None:
        self._value = self._start

    def merge(self, other: Accumulator[V, V]) -> None:
        self.add(other.get_local_value())


class IntMinimum(_Extreme[int]):
    """The minimum of 32-bit integers."""

    _start = 2**31 - 1
    _pick = min


class IntMaximum(_Extreme[int]):
    """The maximum of 32-bit integers."""

    _start = -(2**31)
    _pick = max


class LongMinimum(_Extreme[int]):
    """The minimum of 64-bit integers."""

    _start = 2**63 - 1
    _pick = min


class LongMaximum(_Extreme[int]):
    """The maximum of 64-bit integers."""

    _start = -(2**63)
    _pick = max


class DoubleMinimum(_Extreme[float]):
    """The minimum of floating-point numbers."""

    _start = float("inf")
    _pick = min


class DoubleMaximum(_Extreme[float]):
    """The maximum of floating-point numbers."""

    _start = float("-inf")
    _pick = max


class Histogram(Accumulator[int, dict[int, int]]):
    """Counts how often each integer was added; the result is sorted by the integers."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, value: int) -> None:
        self._counts[value] = self._counts.get(value, 0) + 1

    def get_local_value(self) -> dict[int, int]:
        return dict(sorted(self._counts.items()))

    def reset_local(self) -> None:
        self._counts = {}

    def merge(self, other: Accumulator[int, dict[int, int]]) -> None:
        for value, count in other.get_local_value().items():
            self._counts[value] = self._counts.get(value, 0) + count


class ListAccumulator(Accumulator[V, list[V]]):
    """Keeps every value, in the order of adding within a subtask. Meant for few values: all reach the driver."""

    def __init__(self) -> None:
        self._values: list[V] = []

    def add(self, value: V) -> None:
        self._values.append(value)

    def get_local_value(self) -> list[V]:
        return self._values

    def reset_local(self) -> None:
        self._values = []

    def merge(self, other: Accumulator[V, list[V]]) -> None:
        self._values = self._values + other.get_local_value()


def merge_accumulators(
    parts: Iterable[Mapping[str, Accumulator[Any, Any]]],
) -> dict[str, Accumulator[Any, Any] | AccumulatorError]:
    """Merge the accumulators of all subtasks by name, without changing the parts.

    The result of an accumulator that cannot be merged is an error: the other accumulators can still be read, and only
    reading this one raises.
    """
    merged: dict[str, Accumulator[Any, Any] | AccumulatorError] = {}
    for part in parts:
        for name, accumulator in part.items():
            merged[name] = _merge_one(name, merged.get(name), accumulator)
    return merged


def _merge_one(
    name: str, into: Accumulator[Any, Any] | AccumulatorError | None, more: Accumulator[Any, Any]
) -> Accumulator[Any, Any] | AccumulatorError:
    if isinstance(into, AccumulatorError):
        return into
    try:
        if into is None:
            return more.clone()
        if type(into) is not type(more):
            return AccumulatorError(
                f"two accumulators are named {name!r}, one a {type(into).__name__} and one a {type(more).__name__}; "
                "give them different names"
            )
        into.merge(more)
        return into
    except Exception as error:  # an accumulator of the user that fails must not discard the result of the job
        return AccumulatorError(f"accumulator {name!r} could not be merged: {type(error).__name__}: {error}")


def _unlike(one: Accumulator[Any, Any], other: object) -> AccumulatorError:
    return AccumulatorError(f"cannot merge a {type(other).__name__} into a {type(one).__name__}")
