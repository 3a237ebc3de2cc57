"""Functions over records: the base class of every user function, and the functions that receive records alone.

A function is pickled when the job is built and unpickled once per subtask. `open` is called before the first record
and `close` after the last one. `process_functions` holds the functions with timers, side outputs and broadcast state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.record_fields import Field, checked_field, read_field

if TYPE_CHECKING:
    from ekorn.functions.runtime_context import RuntimeContext


class Function(ABC):  # noqa: B024
    """The base of everything that users implement."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Create state handles and connections. Called once per attempt, before the first record."""

    def close(self) -> None:  # noqa: B027
        """Release what `open` acquired. Called once at the end, also after a failure."""

    def get_runtime_context(self) -> RuntimeContext:
        """Return the context that `open` is given. It is available from the call of `open` on.

        Raises:
            InvalidProgramError: The function is not running in a job.
        """
        context: RuntimeContext | None = getattr(self, "_runtime_context", None)
        if context is None:
            raise InvalidProgramError(
                f"{type(self).__name__} has no runtime context yet: call get_runtime_context() in open(), or later"
            )
        return context

    def set_runtime_context(self, runtime_context: RuntimeContext) -> None:
        """Set what `get_runtime_context` returns. The operator calls it before `open`."""
        self._runtime_context = runtime_context


class WrappingFunction(Function):
    """A function of Ekorn that calls a function of the user; the user's function may take part in checkpoints.

    Args:
        wrapped: The user's function object, or a plain callable.
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.wrapped, Function):
            self.wrapped.set_runtime_context(runtime_context)
            self.wrapped.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.wrapped, Function):
            self.wrapped.close()


class MapFunction(Function):
    """Turns one record into one record."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Return the record that a record becomes."""


class FlatMapFunction(Function):
    """Turns one record into any number of records."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, the records that a record becomes; None stands for no records."""


class FilterFunction(Function):
    """Keeps some records."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """Return whether to keep the record; do not change the record."""


class ReduceFunction(Function):
    """Combines two records of a key into one record of the same type.

    Attributes:
        combines_exactly: Set it to True in your class to promise that the result is the same to the last bit for every
            grouping and order of the records. Sliding windows then reduce each record once and combine the partial
            results when they fire, instead of reducing the record in every window. Sums of integers keep the promise;
            sums of floating-point numbers and concatenated text do not.
    """

    combines_exactly: bool = False

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine the result so far with a new record, without changing either."""


class FoldFunction(Function):
    """Combines an accumulator with records of another type."""

    @abstractmethod
    def fold(self, accumulator: Any, value: Any) -> Any:
        """Return the accumulator after one more record."""


class AggregateFunction(Function):
    """Aggregates records through an accumulator, which has its own type.

    Attributes:
        combines_exactly: Set it to True in your class to promise that `merge` is implemented, and that `get_result` is
            the same to the last bit for every distribution of the records over accumulators that are then merged in any
            order. Sliding windows then add each record once and merge when they fire, instead of adding the record in
            every window. A count keeps the promise; a list of records in their order does not.
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
        """Return the result of an accumulator."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """Return one accumulator for the records of two accumulators."""


class KeySelector(Function):
    """Computes the key of a record."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """Return the key: hashable, not None, and the same each time for the same record."""


class FieldKeySelector(KeySelector):
    """Uses some fields of the record, given by position or name, as the key: a tuple.

    A single field gives a tuple as well, so that ``key_by(0)`` and ``key_by([0])`` are the same.

    Example:
        >>> FieldKeySelector(0, 2).get_key(("a", 5, True))
        ('a', True)
    """

    def __init__(self, *fields: Field) -> None:
        if not fields:
            raise ValueError("a key needs at least one field")
        self.fields = tuple(checked_field(field, "a key field") for field in fields)

    def get_key(self, value: Any) -> tuple[Any, ...]:
        """Return the fields of the record as a tuple."""
        return tuple([read_field(value, field) for field in self.fields])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldKeySelector) and other.fields == self.fields

    def __hash__(self) -> int:
        return hash((FieldKeySelector, self.fields))

    def __repr__(self) -> str:
        return f"FieldKeySelector({', '.join(map(repr, self.fields))})"


class OneFieldSelector(KeySelector):
    """Uses one field of the record, given by position or name, as the key: the field itself.

    >>> OneFieldSelector(1).get_key(("a", 5))
    5
    """

    def __init__(self, field: Field) -> None:
        self.field = checked_field(field, "a key field")

    def get_key(self, value: Any) -> Any:
        """Return the field of the record."""
        return read_field(value, self.field)


class Partitioner(Function):
    """Chooses the subtask for the records of a key."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """Return the index of a subtask, from 0 to `num_partitions` - 1."""


class CoMapFunction(Function):
    """A map over two connected streams."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Return the record that a record of the first stream becomes."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Return the record that a record of the second stream becomes."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, the records that a record of the first stream becomes."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, the records that a record of the second stream becomes."""
