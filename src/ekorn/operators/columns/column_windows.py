"""Tumbling and sliding windows of columns, which fire at their end.

The results, their timestamps and the state are those of the same windows on rows (`operators/windows/pane_layout.py`).
Between two watermarks nothing fires but late rows, so a batch is taken as a whole: the windows of all rows follow from
their times, each aggregate takes all rows at once, and a row that is late within the allowed lateness gives a result
with the aggregates as they are with that row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.columns.column_batch import ColumnBatch, Times
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Rows
from ekorn.columns.row_columns import RowColumns
from ekorn.columns.segments import Segments
from ekorn.columns.window_vectors import Starts, starts_of_windows, within_64_bits
from ekorn.errors import AggregateOverflowError
from ekorn.graph.column_specs import WindowAggregateSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns.column_operator import ColumnOperator
from ekorn.operators.columns.column_panes import ColumnPanes
from ekorn.operators.columns.rolling_aggregates import kernels_of, take, take_running
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.results import LateRecords
from ekorn.operators.time.missing_timestamps import missing_timestamp
from ekorn.operators.windows.saved_windows import (
    IN_ROCKSDB,
    PANES,
    SavedDefaultInRocksDB,
    SavedPanes,
    check_layout,
    translate,
)
from ekorn.state.column_table import KeyValues
from ekorn.state.keyed_backend import RestoredTables
from ekorn.types.data_types import RowType
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

_MOST_ROWS = 65536  # rows of a batch of results, and rows times windows that are taken at once


@contextmanager
def _of_rows(rows: Rows) -> Iterator[None]:
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
        self.backend.kept_on_heap = IN_ROCKSDB  # so that windows of rows in RocksDB become windows of columns
        self._spec = spec
        self._grid = spec.grid
        self._event_time = spec.windows.assigner.is_event_time()
        self._lateness_ms = spec.windows.lateness_ms if self._event_time else 0
        self._batch = environment.graph.settings.batch
        self._watermark_ms = MIN_TIMESTAMP
        self._schema = RowColumns(spec.row_type).schema
        inputs = RowColumns(spec.input_type).schema
        self._read = list(dict.fromkeys([*spec.keys, *(name for _, each in spec.aggregates for name in each.columns)]))
        self._late = LateRecords(self, spec.windows.late_tag)
        self.table = ColumnPanes(
            KeyIndex([inputs.field(name).type for name in spec.keys]),
            kernels_of(spec.aggregates, inputs, self._schema),
            KeyValues(RowType([spec.input_type[name] for name in spec.keys])),
            spec.grid.size_ms,
            tracked=self.backend.tracked,
        )

    def translate(self, tables: RestoredTables) -> None:
        translate(tables, SavedPanes(), [SavedDefaultInRocksDB(self._spec.windows)])

    def open(self) -> None:
        assert self.backend is not None
        check_layout(self.backend, PANES)
        self.backend.adopt(self.table)
        super().open()

    # ------------------------------------------------------------------------------------------------ rows

    def pieces(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        windows_of_a_row = -(-self._grid.size_ms // self._grid.slide_ms)
        return batch.parts(max(1, _MOST_ROWS // windows_of_a_row))

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
        take_back = self.table.attempt()
        try:
            results, late = self._take(part, self._times_of(part))
        except Exception:
            take_back()
            raise
        self._emit_late(part, late)
        return results

    def _times_of(self, batch: ColumnBatch) -> Times:
        if not self._event_time:
            return np.full(len(batch), self.environment.clock.now_ms(), dtype=np.int64)
        if batch.times is None:
            raise missing_timestamp(batch.row(0), self.environment)
        return batch.times

    def _take(self, batch: ColumnBatch, times: Times) -> tuple[list[ColumnBatch], Rows]:
        """Take rows; return the results of windows that have fired before, and the rows that are too late."""
        rows, starts = starts_of_windows(times, self._grid)
        late: Rows = np.zeros(0, np.int64)
        if self._event_time:
            open_windows = starts > self._last_start_over(self._watermark_ms)
            rows, starts = rows[open_windows], starts[open_windows]
            late = self._too_late(batch, times, rows)
        if not len(rows):
            return [], late
        data, numbers = self._columns(batch, rows)
        panes = self.table.panes(numbers, starts)
        taken = ColumnBatch(data, times[rows], origin=batch.origin and batch.origin.some())
        ended = starts <= (self._last_start_ended(self._watermark_ms) if self._event_time else MIN_TIMESTAMP)
        if not ended.any():
            with _of_rows(rows):
                self._update(taken, panes)
            return [], late
        on_time, again = np.flatnonzero(~ended), np.flatnonzero(ended)
        if len(on_time):
            with _of_rows(rows[on_time]):
                self._update(taken.take(on_time), panes[on_time])
        with _of_rows(rows[again]):
            return [self._fired_again(taken.take(again), panes[again], starts[again])], late

    def _columns(self, batch: ColumnBatch, rows: Rows) -> tuple[pa.RecordBatch, Rows]:
        """Return the columns that are read, and the number of the key, for each window of a row."""
        data = batch.data.select(self._read)
        if self._grid.is_tumbling and len(rows) == len(batch):
            return data, self.table.key_numbers([data.column(name) for name in self._spec.keys])
        distinct, positions = np.unique(rows, return_inverse=True)  # a key without an open window gets no number
        keys = [data.column(name).take(pa.array(distinct)) for name in self._spec.keys]
        return data.take(pa.array(rows)), self.table.key_numbers(keys)[positions]

    def _too_late(self, batch: ColumnBatch, times: Times, rows: Rows) -> Rows:
        """Return the late rows among those in no open window. Others lie in a gap between windows."""
        missed = np.ones(len(batch), dtype=np.bool_)
        missed[rows] = False
        return np.flatnonzero(missed & (times <= within_64_bits(self._watermark_ms - self._lateness_ms)))

    def _emit_late(self, batch: ColumnBatch, late: Rows) -> None:
        if len(late):
            self._late.take(batch.take(late), None, len(late))

    def _update(self, batch: ColumnBatch, panes: Rows) -> None:
        if self.table.has_restored_fired:
            self.table.mark_fired(panes, fired=False)  # a window that had fired before the restore fires for these keys
        take(self.table.kernels, batch, panes)

    def _fired_again(self, batch: ColumnBatch, panes: Rows, starts: Starts) -> ColumnBatch:
        """Take rows of windows that have fired; return a result for each of them."""
        segments = Segments(panes)
        results = take_running(self.table.kernels, batch, segments)
        self.table.mark_fired(panes, fired=True)
        return batch.with_data(self._result([batch.data.column(name) for name in self._spec.keys], starts, results))

    def _result(self, keys: list[pa.Array], starts: Starts, results: list[Any]) -> pa.RecordBatch:
        bounds = [pa.array(starts), pa.array(starts + self._grid.size_ms)]
        return pa.RecordBatch.from_arrays([*keys, *bounds, *results], schema=self._schema)

    # ------------------------------------------------------------------------------------------------ time

    def _last_start_ended(self, limit_ms: int) -> int:
        """Return the last start of the windows that have ended at a time."""
        return within_64_bits(limit_ms + 1 - self._grid.size_ms)

    def _last_start_over(self, limit_ms: int) -> int:
        """Return the last start of the windows that take no more rows at a time."""
        if limit_ms >= MAX_TIMESTAMP:
            return MAX_TIMESTAMP
        return within_64_bits(limit_ms + 1 - self._grid.size_ms - self._lateness_ms)

    def on_watermark(self, watermark_ms: int) -> None:
        self._watermark_ms = watermark_ms
        if self._event_time:
            self._fire_up_to(watermark_ms)

    def on_clock(self, now_ms: int) -> None:
        if not self._event_time and not self._batch:
            self._fire_up_to(now_ms - 1)

    def next_timer_ms(self) -> int | None:
        first = self.table.first_to_fire
        return None if self._event_time or self._batch or first is None else first + self._grid.size_ms

    def finish(self) -> None:
        """Fire every window. BATCH mode only."""
        if self._batch:
            self._fire_up_to(MAX_TIMESTAMP)

    def _fire_up_to(self, limit_ms: int) -> None:
        table, ended = self.table, self._last_start_ended(limit_ms)
        if table.first_to_fire is not None and table.first_to_fire <= ended:
            panes = table.fire(ended)
            parts = (panes[first : first + _MOST_ROWS] for first in range(0, len(panes), _MOST_ROWS))
            for part in compress(parts, self.relief):
                starts = table.starts(part)
                results = [kernel.results(part) for kernel in table.kernels]
                data = self._result(table.key_columns(part), starts, results)
                self.out(ColumnBatch(data, starts + (self._grid.size_ms - 1)), None)
        over = self._last_start_over(limit_ms)
        if table.first_open is not None and table.first_open <= over:
            table.close(over)
