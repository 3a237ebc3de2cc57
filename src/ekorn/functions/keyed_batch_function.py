"""`KeyedBatchFunction`: a process function with state and timers per key that is called once for a batch of keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from ekorn.functions.output_tag import OutputTag
from ekorn.functions.record_functions import Function
from ekorn.functions.timer_service import TimeDomain
from ekorn.types.data_types import RowType

__all__ = ["KeyOfBatch", "KeyedBatchContext", "KeyedBatchFunction", "KeyedCoBatchFunction"]


class KeyOfBatch(ABC):
    """One key of a batch, with its state and timers as a `KeyedProcessFunction` has them: see `per_key`."""

    @abstractmethod
    def get_current_key(self) -> tuple[Any, ...]:
        """Return the values of the key columns."""

    @abstractmethod
    def rows(self) -> list[Any]:
        """Return the rows of the key, in their order."""

    @abstractmethod
    def positions(self) -> Any:
        """Return the positions of the rows in the batch, as a NumPy array."""

    @abstractmethod
    def timestamps(self) -> list[int] | None:
        """Return the timestamps of the rows; None if the rows have none."""

    @abstractmethod
    def state(self, state: Any) -> Any:
        """Return a state of the function for this key alone: a `ValueState`, `ListState`, `MapState` and so on."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Register an event-time timer of this key."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Register a processing-time timer of this key."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete an event-time timer of this key."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete a processing-time timer of this key."""


class KeyedBatchContext(ABC):
    """What a `KeyedBatchFunction` knows of the batch and its keys, and does by the vector.

    Vectors have an element for each row of the batch, or one for each of its distinct keys, in the order of `keys()`.
    That order is arbitrary, and the same for all states and helpers during one call. In `on_timers` each key has one
    row: its timer.

    `values` of a helper is the name of a column, a column of Arrow or a NumPy array. `start` has a value for each key,
    or one for all keys: a state's `values()`. The helpers for numbers return NumPy arrays. The others return what they
    are given: an array of Arrow or of NumPy.
    """

    # ------------------------------------------------------------------------------------------------- the batch

    @property
    @abstractmethod
    def key_count(self) -> int:
        """The number of distinct keys."""

    @property
    @abstractmethod
    def row_count(self) -> int:
        """The number of rows."""

    @abstractmethod
    def keys(self) -> Any:
        """Return the key columns of the distinct keys, as a `RecordBatch` with a row for each key."""

    @abstractmethod
    def key_of_row(self) -> Any:
        """Return the position of each row's key, as a NumPy array."""

    @abstractmethod
    def counts(self) -> Any:
        """Return the number of rows of each key, as a NumPy array."""

    @abstractmethod
    def in_order(self) -> tuple[Any, Any]:
        """Return the positions of the rows key by key, each key's rows in their order, and the keys' offsets in them.

        The rows of key i are at `positions[offsets[i]:offsets[i + 1]]`.
        """

    @abstractmethod
    def timestamps(self) -> Any:
        """Return the timestamp of each row in milliseconds, as a NumPy array; None if the rows have none."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's event-time watermark."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the wall clock, in milliseconds."""

    # ------------------------------------------------------------------------------------------------- results

    @abstractmethod
    def of_rows(self, data: Any, rows: Any) -> Any:
        """Return a result whose rows take the timestamps of some rows of the batch.

        A result with as many rows as the batch keeps their timestamps. Any other result gets the highest timestamp of
        the batch, unless this method says which rows its rows come from.

        Args:
            data: The columns of the result.
            rows: The position of a row of the batch for each row of the result, or a mask of the rows that are kept.
        """

    @abstractmethod
    def output(self, output_tag: OutputTag, data: Any) -> None:
        """Emit a batch to a side output. The tag declares the columns by its type, and `data` may be from `of_rows`."""

    # ------------------------------------------------------------------------------------------------- timers

    @abstractmethod
    def register_event_time_timers(self, timestamps: Any, where: Any = None) -> None:
        """Register an event-time timer for each key, or for those where a mask of the keys is true."""

    @abstractmethod
    def register_processing_time_timers(self, timestamps: Any, where: Any = None) -> None:
        """Register a processing-time timer for each key, or for those where a mask of the keys is true."""

    @abstractmethod
    def delete_event_time_timers(self, timestamps: Any, where: Any = None) -> None:
        """Delete an event-time timer of each key, if it has one at that time."""

    @abstractmethod
    def delete_processing_time_timers(self, timestamps: Any, where: Any = None) -> None:
        """Delete a processing-time timer of each key, if it has one at that time."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return the clock of the timers that fired. In `on_timers` alone."""

    # ------------------------------------------------------------------------------------------------- from key to row

    @abstractmethod
    def to_rows(self, values: Any) -> Any:
        """Return for each row the value of its key: a join of the batch with state."""

    # ------------------------------------------------------------------------------------------------- from row to key

    @abstractmethod
    def first(self, values: Any) -> Any:
        """Return the value of the first row of each key."""

    @abstractmethod
    def last(self, values: Any) -> Any:
        """Return the value of the last row of each key."""

    @abstractmethod
    def sum(self, values: Any) -> Any:
        """Return the sum of the rows of each key. Nulls count as 0. Floats are added in the order of the rows."""

    @abstractmethod
    def min(self, values: Any) -> Any:
        """Return the smallest value of the rows of each key."""

    @abstractmethod
    def max(self, values: Any) -> Any:
        """Return the largest value of the rows of each key."""

    # ------------------------------------------------------------------------------------------------- along the rows

    @abstractmethod
    def rank(self, start: Any = 0) -> Any:
        """Return how many rows of its key come before each row, and `start`."""

    @abstractmethod
    def running_count(self, start: Any = 0) -> Any:
        """Return the number of rows of its key up to each row, and `start`."""

    @abstractmethod
    def running_sum(self, values: Any, start: Any = 0) -> Any:
        """Return the sum of the rows of its key up to each row, and `start`. Nulls count as 0."""

    @abstractmethod
    def running_max(self, values: Any, start: Any = None) -> Any:
        """Return the largest value of the rows of its key up to each row, and `start`."""

    @abstractmethod
    def running_min(self, values: Any, start: Any = None) -> Any:
        """Return the smallest value of the rows of its key up to each row, and `start`."""

    @abstractmethod
    def previous(self, values: Any, start: Any = None) -> Any:
        """Return the value of the row before each row of its key; for the first one `start`, or null."""

    # ------------------------------------------------------------------------------------------------- key by key

    @abstractmethod
    def per_key(self) -> Iterator[KeyOfBatch]:
        """Yield the keys one by one, for logic that has no form by the vector. It costs what a row function costs."""


class KeyedBatchFunction(Function):
    """A process function that sees all keys of a batch at once. State is read and written as vectors over the keys.

    State and timers are those of a `KeyedProcessFunction` with the same state descriptors: a savepoint moves between
    the two.

    Example:
        >>> class Total(KeyedBatchFunction):
        ...     def open(self, runtime_context):
        ...         from ekorn.common import Types
        ...         from ekorn.datastream.state import ValueStateDescriptor
        ...         self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG(), 0))
        ...     def process_batch(self, batch, ctx):
        ...         running = ctx.running_sum("amount", start=self.total.values())
        ...         self.total.update(ctx.last(running))
        ...         yield batch.append_column("total", running)
    """

    @abstractmethod
    def process_batch(self, batch: Any, ctx: KeyedBatchContext) -> Any:
        """Process a batch of rows, each of which may have another key.

        Args:
            batch: The rows, as a `RecordBatch` of Arrow.
            ctx: The keys of the batch, helpers and timers. Valid during this call.

        Returns:
            A batch with the declared columns, any number of them, or None. A pair of an `OutputTag` and a batch goes to
            a side output.
        """

    def result_type(self, row_type: RowType, keys: tuple[str, ...]) -> RowType:
        """Return the columns of the results if `process` is given none: by default those of the stream.

        Args:
            row_type: The columns of the stream.
            keys: The key columns.
        """
        return row_type

    def on_timers(self, keys: Any, timestamps: Any, ctx: KeyedBatchContext) -> Any:
        """React to the timers that are due, of many keys at once. Those of one key come in ascending order of time.

        Args:
            keys: The key columns of the keys, as a `RecordBatch`. Each key is there once: if it has several timers that
                are due, the next ones come with later calls.
            timestamps: The time of each key's timer in milliseconds, as a NumPy array.
            ctx: As in `process_batch`. Keys, states, `keys` and `timestamps` have one order. Results have the times of
                event-time timers as timestamps.
        """


class KeyedCoBatchFunction(Function):
    """A batch function over two keyed streams that share state and timers per key.

    State and timers are those of a `KeyedCoProcessFunction` with the same state descriptors.
    """

    @abstractmethod
    def process_batch1(self, batch: Any, ctx: KeyedBatchContext) -> Any:
        """Process a batch of rows of the first stream, as `KeyedBatchFunction.process_batch` does."""

    @abstractmethod
    def process_batch2(self, batch: Any, ctx: KeyedBatchContext) -> Any:
        """Process a batch of rows of the second stream."""

    def on_timers(self, keys: Any, timestamps: Any, ctx: KeyedBatchContext) -> Any:
        """React to the timers that are due, as `KeyedBatchFunction.on_timers` does.

        The columns of `keys` have the names of the key columns of the first stream.
        """
