"""`ColumnWindowOperator`: the base of windows of columns.

The results, their timestamps and the state are those of the same windows on rows. Between two watermarks nothing fires
but late rows, so a batch is taken as a whole: the windows of all rows follow from their times, each aggregate takes all
rows at once, and a row that is late within the allowed lateness gives a result with the aggregates as they are with
that row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from ekorn.columns.column_batch import ColumnBatch, Times
from ekorn.columns.kernels import Kernel
from ekorn.columns.key_words import Rows
from ekorn.columns.row_columns import RowColumns
from ekorn.errors import AggregateOverflowError
from ekorn.graph.column_specs import WindowAggregateSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns.column_operator import ColumnOperator
from ekorn.operators.columns.rolling_aggregates import kernels_of
from ekorn.operators.columns.window_keys import window_keys
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.results import LateRecords
from ekorn.operators.time.missing_timestamps import missing_timestamp
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

__all__ = ["MOST_ROWS", "NO_ROWS", "ColumnWindowOperator", "naming_rows"]

MOST_ROWS = 65536
"""The rows of a batch of results, and the rows times windows that are taken at once."""

NO_ROWS: Rows = np.zeros(0, np.int64)


@contextmanager
def naming_rows(rows: Rows) -> Iterator[None]:
    """Let errors name the position of the row, where the kernels got these rows of a batch."""
    try:
        yield
    except AggregateOverflowError as error:
        if error.row_in_batch is not None:
            error.row_in_batch = int(rows[error.row_in_batch])
        raise


class ColumnWindowOperator(ColumnOperator):
    """Aggregates the rows of each key and window."""

    keeps_state = True
    needs_out = True

    def __init__(self, operator: Operator, spec: WindowAggregateSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        assert self.backend is not None, "the program aggregates keyed streams only"
        self._spec = spec
        self._event_time = spec.windows.assigner.is_event_time()
        self._lateness_ms = spec.windows.lateness_ms if self._event_time else 0
        self._batch = environment.graph.settings.batch
        self._watermark_ms = MIN_TIMESTAMP
        self._schema = RowColumns(spec.row_type).schema
        self._keys = window_keys(spec)
        self._inputs = RowColumns(spec.input_type).schema
        read = [*spec.keys, *(name for _, each in spec.aggregates for name in each.columns)]
        self._read = (
            list(dict.fromkeys(read)) or spec.input_type.field_names()[:1]
        )  # a batch without columns has no rows
        self._late = LateRecords(self, spec.windows.late_tag)

    def _kernels(self, *, ends_by_time: bool) -> list[Kernel]:
        return kernels_of(self._spec.aggregates, self._inputs, self._schema, ends_by_time=ends_by_time)

    # ------------------------------------------------------------------------------------------------ rows

    def pieces(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        return batch.parts(MOST_ROWS)

    def process(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        start = 0
        for piece in self.pieces(batch):
            try:
                results, late = self._take(piece, self._times_of(piece))
            except AggregateOverflowError as error:
                if error.row_in_batch is not None:
                    error.row_in_batch += start
                raise
            self._emit_late(piece, late)
            yield from results
            start += len(piece)

    def attempt(self, part: ColumnBatch) -> list[ColumnBatch]:
        take_back = self._attempting()
        try:
            results, late = self._take(part, self._times_of(part))
        except Exception:
            take_back()
            raise
        self._emit_late(part, late)
        return results

    @abstractmethod
    def _take(self, batch: ColumnBatch, times: Times) -> tuple[list[ColumnBatch], Rows]:
        """Take rows; return the results of windows that fire with them, and the rows that are too late."""

    @abstractmethod
    def _attempting(self) -> Callable[[], None]:
        """Return a function that takes back what happens from now on, up to one call of `_take`."""

    def _times_of(self, batch: ColumnBatch) -> Times:
        if not self._event_time:
            return np.full(len(batch), self.environment.clock.now_ms(), dtype=np.int64)
        if batch.times is None:
            raise missing_timestamp(batch.row(0), self.environment)
        return batch.times

    def _emit_late(self, batch: ColumnBatch, late: Rows) -> None:
        if len(late):
            self._late.take(batch.take(late), None, len(late))

    def _result(self, keys: list[pa.Array], bounds: list[pa.Array], results: list[pa.Array]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*self._keys.shown(keys), *bounds, *results], schema=self._schema)

    # ------------------------------------------------------------------------------------------------ time

    def on_watermark(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms
        if self._event_time:
            self._fire_up_to(watermark_ms)

    def on_clock(self, now_ms: int) -> None:
        if not self._event_time and not self._batch:
            self._fire_up_to(now_ms - 1)

    def next_timer_ms(self) -> int | None:
        return None if self._event_time or self._batch else self._first_end()

    def finish(self) -> None:
        """Fire every window. BATCH mode only."""
        if self._batch:
            self._fire_up_to(MAX_TIMESTAMP)

    @abstractmethod
    def _fire_up_to(self, limit_ms: int) -> None:
        """Fire the windows that end up to a time, and drop those that are over by then."""

    @abstractmethod
    def _first_end(self) -> int | None:
        """Return the first time at which a window may end."""
