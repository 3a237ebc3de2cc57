"""The context of a `KeyedBatchFunction`: the keys of a batch, what it emits, and the timers that it registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.key_rows import KeyRows, as_mask
from ekorn.columns.key_words import Rows
from ekorn.errors import InvalidProgramError, preview
from ekorn.functions.keyed_batch_function import KeyedBatchContext, KeyOfBatch
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.timer_service import TimeDomain
from ekorn.keygroups import user_key
from ekorn.operators.columns.state_of_batch import StateOfBatch, positions_of
from ekorn.operators.columns.state_of_key import state_of_key
from ekorn.operators.time.timers import Timers
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["BatchContext", "OfRows"]


class OfRows:
    """A result, and the rows of the batch that its rows come from."""

    __slots__ = ("data", "rows")

    def __init__(self, data: Any, rows: Rows) -> None:
        self.data = data
        self.rows = rows


class BatchContext(KeyedBatchContext):
    """The context of one call of a batch function.

    Args:
        batch: The rows.
        rows: The rows by their keys.
        key_columns: The key columns of the keys.
        timers: The timers of the operator.
        stored_keys: Returns the keys in the form of tables.
        emit_side: Emits a result to a side output.
        domain: The clock of the timers that have fired.
    """

    def __init__(
        self,
        batch: ColumnBatch,
        rows: KeyRows,
        key_columns: pa.RecordBatch,
        *,
        timers: Timers,
        stored_keys: Callable[[], list[Any]],
        emit_side: Callable[[BatchContext, OutputTag, Any], None],
        domain: TimeDomain | None = None,
    ) -> None:
        self.batch = batch
        self.rows = rows
        self.stored_keys = stored_keys
        self._key_columns = key_columns
        self._timers = timers
        self._emit_side = emit_side
        self._domain = domain
        self._row_objects: list[Any] | None = None
        self._calls: list[tuple[Callable[[Any, int], None], Sequence[int], Sequence[int]]] = []

    # ------------------------------------------------------------------------------------------------- the batch

    @property
    def key_count(self) -> int:
        return self.rows.key_count

    @property
    def row_count(self) -> int:
        return len(self.rows)

    def keys(self) -> pa.RecordBatch:
        return self._key_columns

    def key_of_row(self) -> Rows:
        return self.rows.key_of_row

    def counts(self) -> Rows:
        counts: Rows = self.rows.segments.counts
        return counts

    def in_order(self) -> tuple[Rows, Rows]:
        segments = self.rows.segments
        return segments.order, np.append(segments.starts, len(self.rows))

    def timestamps(self) -> NDArray[np.int64] | None:
        return self.batch.times

    def current_watermark(self) -> int:
        return self._timers.watermark_ms

    def current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def time_domain(self) -> TimeDomain:
        if self._domain is None:
            raise InvalidProgramError("time_domain() is for on_timers(); process_batch() is called for rows")
        return self._domain

    def row_objects(self) -> list[Any]:
        """Return the rows of the batch, as a stream of rows has them."""
        if self._row_objects is None:
            self._row_objects = self.batch.rows()
        return self._row_objects

    # ------------------------------------------------------------------------------------------------- results

    def of_rows(self, data: Any, rows: Any) -> OfRows:
        chosen = np.asarray(rows if not isinstance(rows, pa.Array | pa.ChunkedArray) else rows.to_numpy(False))
        if chosen.dtype == np.bool_:
            mask = as_mask(rows, len(self.rows), "row")
            assert mask is not None, "it was given"
            chosen = np.flatnonzero(mask)
        count = data.num_rows if hasattr(data, "num_rows") else None
        if count is not None and len(chosen) != count:
            raise ValueError(f"of_rows() got {count} rows and the positions of {len(chosen)}; give one for each row")
        return OfRows(data, chosen.astype(np.int64))

    def output(self, output_tag: OutputTag, data: Any) -> None:
        if output_tag.__class__ is not OutputTag:
            raise TypeError(f"output() takes an OutputTag and a batch, got {preview(output_tag)}")
        self._emit_side(self, output_tag, data)

    # ------------------------------------------------------------------------------------------------- timers

    def register_event_time_timers(self, timestamps: Any, where: Any = None) -> None:
        self._note(self._timers.event.add, timestamps, where)

    def register_processing_time_timers(self, timestamps: Any, where: Any = None) -> None:
        self._note(self._timers.processing.add, timestamps, where)

    def delete_event_time_timers(self, timestamps: Any, where: Any = None) -> None:
        self._note(self._timers.event.remove, timestamps, where)

    def delete_processing_time_timers(self, timestamps: Any, where: Any = None) -> None:
        self._note(self._timers.processing.remove, timestamps, where)

    def _note(self, call: Callable[[Any, int], None], timestamps: Any, where: Any) -> None:
        count = self.rows.key_count
        mask = as_mask(where, count, "key")
        if isinstance(timestamps, pa.Array | pa.ChunkedArray):
            timestamps = timestamps.to_numpy(zero_copy_only=False)
        times = np.asarray(timestamps)
        times = np.full(count, times) if times.ndim == 0 else times
        if len(times) != count:
            raise ValueError(f"expected a time for each key, which are {count}, and got {len(times)}")
        keys = np.arange(count) if mask is None else np.flatnonzero(mask)
        times = times if mask is None else times[mask]
        if times.dtype.kind == "M":
            times = times.astype("datetime64[ms]").astype(np.int64)
        if len(times) and times.dtype.kind not in "iu":
            raise TypeError(
                f"timers take whole numbers of milliseconds, and got values of type {times.dtype}; choose the keys "
                "that get a timer with where="
            )
        self.note(call, keys.tolist(), times.tolist())

    def note(self, call: Callable[[Any, int], None], keys: Sequence[int], times: Sequence[int]) -> None:
        """Keep changes of timers until the call of the function is over."""
        for time_ms in (min(times, default=0), max(times, default=0)):
            if not MIN_TIMESTAMP <= time_ms <= MAX_TIMESTAMP:
                raise ValueError(
                    f"a timer at {time_ms} ms is out of range: timestamps go from {MIN_TIMESTAMP} to {MAX_TIMESTAMP} ms"
                )
        self._calls.append((call, keys, times))

    def commit(self) -> None:
        """Register and delete the timers."""
        for call, keys, times in self._calls:
            stored = self.stored_keys()
            for key, time_ms in zip(keys, times, strict=True):  # hot
                call(stored[key], time_ms)
        self._calls.clear()

    # ------------------------------------------------------------------------------------------------- helpers

    def _values(self, values: Any) -> Any:
        return self.batch.data.column(values) if isinstance(values, str) else values

    def to_rows(self, values: Any) -> Any:
        return self.rows.to_rows(values)

    def first(self, values: Any) -> Any:
        return self.rows.first(self._values(values))

    def last(self, values: Any) -> Any:
        return self.rows.last(self._values(values))

    def sum(self, values: Any) -> Any:
        return self.rows.sums(self._values(values))

    def min(self, values: Any) -> Any:
        return self.rows.extremes(np.minimum, self._values(values))

    def max(self, values: Any) -> Any:
        return self.rows.extremes(np.maximum, self._values(values))

    def rank(self, start: Any = 0) -> Any:
        return self.rows.rank(start)

    def running_count(self, start: Any = 0) -> Any:
        return self.rows.rank(start) + 1

    def running_sum(self, values: Any, start: Any = 0) -> Any:
        return self.rows.running_sum(self._values(values), start)

    def running_max(self, values: Any, start: Any = None) -> Any:
        return self.rows.running_extreme(np.maximum, self._values(values), start)

    def running_min(self, values: Any, start: Any = None) -> Any:
        return self.rows.running_extreme(np.minimum, self._values(values), start)

    def previous(self, values: Any, start: Any = None) -> Any:
        return self.rows.previous(self._values(values), start)

    def per_key(self) -> Iterator[KeyOfBatch]:
        stored = self.stored_keys()
        for number, positions in enumerate(positions_of(self.rows)):
            yield _Key(self, number, stored[number], positions)


class _Key(KeyOfBatch):
    """One key of a batch."""

    def __init__(self, context: BatchContext, number: int, stored: Any, positions: Rows) -> None:
        self._context = context
        self._number = number
        self._stored = stored
        self._positions = positions

    def get_current_key(self) -> tuple[Any, ...]:
        key: tuple[Any, ...] = user_key(self._stored)
        return key

    def rows(self) -> list[Any]:
        found = self._context.row_objects()
        return [found[at] for at in self._positions.tolist()]

    def positions(self) -> Rows:
        return self._positions

    def timestamps(self) -> list[int] | None:
        times = self._context.batch.times
        return None if times is None else times[self._positions].tolist()

    def state(self, state: Any) -> Any:
        if not isinstance(state, StateOfBatch):
            raise TypeError(f"state() takes a state that open() got from its context, got {preview(state)}")
        return state_of_key(state, self._number)

    def register_event_time_timer(self, timestamp: int) -> None:
        self._note(self._context._timers.event.add, timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._note(self._context._timers.processing.add, timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._note(self._context._timers.event.remove, timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._note(self._context._timers.processing.remove, timestamp)

    def _note(self, call: Callable[[Any, int], None], timestamp: int) -> None:
        self._context.note(call, (self._number,), (int(timestamp),))
