"""Functions over records: the base class of every user function, and those that need no context but `open`'s.

A function is pickled when the job is built and unpickled once per subtask. `open` is called before the first record
and `close` after the last one. `process_functions` holds the functions with timers, side outputs and broadcast state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tamias.functions.record_fields import Field, checked_field, read_field

if TYPE_CHECKING:
    from tamias.functions.runtime_context import RuntimeContext


class Function(ABC):  # noqa: B024
    """Base of everything users implement: an optional start and an optional end."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Called once per attempt, before the first record: make state handles and connections here."""

    def close(self) -> None:  # noqa: B027
        """Called once at the end, also after a failure: release what `open` took."""


class WrappingFunction(Function):
    """A function of Tamias' own around one of the user's, which may take part in checkpoints.

    Args:
        wrapped: the user's function object, or a plain callable.
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.wrapped, Function):
            self.wrapped.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.wrapped, Function):
            self.wrapped.close()


class MapFunction(Function):
    """One record in, one record out."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Turn a record into another."""


class FlatMapFunction(Function):
    """One record in, any number of records out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, what a record becomes; None is nothing."""


class FilterFunction(Function):
    """Keeps some records."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """True keeps the record. The record must not be changed."""


class ReduceFunction(Function):
    """Combines two records of a key into one of the same type.

    Attributes:
        combines_exactly: set it to True in your class to promise that the result is the same to the last bit however
            the records are grouped and ordered. Sliding windows then reduce each record once, and put the parts
            together when they fire, instead of reducing it in every window that it is in. Whole numbers that are added
            keep the promise; floating-point numbers and concatenated text do not.
    """

    combines_exactly: bool = False

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine the result so far with a new record, without changing either."""


class FoldFunction(Function):
    """Combines an accumulator with a record, which may have another type."""

    @abstractmethod
    def fold(self, accumulator: Any, value: Any) -> Any:
        """Return the accumulator after one more record."""


class AggregateFunction(Function):
    """Aggregates records through an accumulator of a type of its own.

    Attributes:
        combines_exactly: set it to True in your class to promise that `merge` is implemented, and that `get_result`
            gives the same to the last bit however the records are spread over accumulators that are then merged, in
            any order. Sliding windows then add each record once, and merge when they fire, instead of adding it in
            every window that it is in. A count keeps the promise; a list of records in their order does not.
    """

    combines_exactly: bool = False

    @abstractmethod
    def create_accumulator(self) -> Any:
        """Return a new, empty accumulator."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """Return the accumulator after one more record."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """Return the result that an accumulator stands for."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Return one accumulator for the records of two."""


class KeySelector(Function):
    """Finds the key of a record."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key: the same for the same record every time, hashable, and not None."""


class FieldKeySelector(KeySelector):
    """The key is the tuple of some fields of the record, given by position or name.

    Also a single field gives a tuple, so that ``key_by(0)`` and ``key_by([0])`` are the same.

    Example:
        >>> FieldKeySelector(0, 2).get_key(("a", 5, True))
        ('a', True)
    """

    def __init__(self, *fields: Field) -> None:
        if not fields:
            raise ValueError("a key needs at least one field")
        self.fields = tuple(checked_field(field, "a key field") for field in fields)

    def get_key(self, value: Any) -> tuple[Any, ...]:
        """Return the fields of the record."""
        return tuple([read_field(value, field) for field in self.fields])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldKeySelector) and other.fields == self.fields

    def __hash__(self) -> int:
        return hash((FieldKeySelector, self.fields))

    def __repr__(self) -> str:
        return f"FieldKeySelector({', '.join(map(repr, self.fields))})"


class Partitioner(Function):
    """Chooses the subtask that a key goes to."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return a subtask number from 0 to `num_partitions` - 1."""


class CoMapFunction(Function):
    """A map over two connected streams."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Turn a record of the first stream into another."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Turn a record of the second stream into another."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """What a record of the first stream becomes."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """What a record of the second stream becomes."""
