"""Tumbling and sliding windows of columns, which fire at their end.

The state is that of the same windows on rows (`operators/windows/pane_layout.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.column_batch import ColumnBatch, Times
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Rows
from ekorn.columns.segments import Segments
from ekorn.columns.window_vectors import Starts, starts_of_windows, within_64_bits
from ekorn.functions.windows.window_arithmetic import WindowGrid
from ekorn.graph.column_specs import WindowAggregateSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns.column_panes import ColumnPanes
from ekorn.operators.columns.column_window_operator import MOST_ROWS, NO_ROWS, ColumnWindowOperator, naming_rows
from ekorn.operators.columns.rolling_aggregates import safe_groups, take, take_running
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.windows.saved_windows import (
    IN_ROCKSDB,
    PANES,
    SavedDefaultInRocksDB,
    SavedPanes,
    check_layout,
    translate,
)
from ekorn.state.keyed_backend import RestoredTables
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


class GridWindowOperator(ColumnWindowOperator):
    """Aggregates the rows of tumbling or sliding windows."""

    def __init__(
        self, operator: Operator, spec: WindowAggregateSpec, grid: WindowGrid, environment: SubtaskEnvironment
    ) -> None:
        super().__init__(operator, spec, environment)
        assert self.backend is not None, "the base class checks it"
        self.backend.kept_on_heap = IN_ROCKSDB  # so that windows of rows in RocksDB become windows of columns
        self._grid = grid
        kernels, tracked = self._kernels(ends_by_time=self._batch), self.backend.tracked
        self.table = ColumnPanes(KeyIndex(self._keys.types), kernels, self._keys.values, grid.size_ms, tracked=tracked)

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
        return batch.parts(max(1, MOST_ROWS // windows_of_a_row))

    def _attempting(self) -> Callable[[], None]:
        return self.table.attempt()

    def _take(self, batch: ColumnBatch, times: Times) -> tuple[list[ColumnBatch], Rows]:
        """Take rows; return the results of windows that have fired before, and the rows that are too late."""
        rows, starts = starts_of_windows(times, self._grid)
        late = NO_ROWS
        if self._event_time:
            open_windows = starts > self._last_start_over(self._watermark_ms)
            rows, starts = rows[open_windows], starts[open_windows]
            late = self._too_late(batch, times, rows)
        if not len(rows):
            return [], late
        data, numbers = self._columns(batch, rows)
        panes = self.table.panes(numbers, starts)
        given = None if batch.times is None else batch.times[rows]
        taken = ColumnBatch(data, given, origin=batch.origin and batch.origin.some())
        ended = starts <= (self._last_start_ended(self._watermark_ms) if self._event_time else MIN_TIMESTAMP)
        if not ended.any():
            with naming_rows(rows):
                take(self.table.kernels, taken, panes)
            self._mark(panes)
            return [], late
        return [self._take_late(taken, rows, panes, ended, starts)], late

    def _take_late(
        self, batch: ColumnBatch, rows: Rows, panes: Rows, ended: NDArray[np.bool_], starts: Starts
    ) -> ColumnBatch:
        """Take rows some of whose windows have fired; return a result for each of those."""
        on_time, again = np.flatnonzero(~ended), np.flatnonzero(ended)
        punctual, fired = batch.take(on_time), batch.take(again)
        segments = Segments(panes[again])
        results: dict[int, pa.Array] = {}
        for group in safe_groups(self.table.kernels):
            kernels = [self.table.kernels[number] for number in group]
            with naming_rows(rows[on_time]):
                take(kernels, punctual, panes[on_time])
            with naming_rows(rows[again]):
                results |= zip(group, take_running(kernels, fired, segments), strict=True)
        self._mark(panes[on_time])
        self.table.mark_fired(panes[again], fired=True)
        in_order = [results[number] for number in range(len(results))]
        return fired.with_data(self._result(self._keys.columns(fired.data), self._bounds(starts[again]), in_order))

    def _columns(self, batch: ColumnBatch, rows: Rows) -> tuple[pa.RecordBatch, Rows]:
        """Return the columns that are read, and the number of the key, for each window of a row."""
        data = batch.data.select(self._read)
        if self._grid.is_tumbling and len(rows) == len(batch):
            return data, self.table.key_numbers(self._keys.columns(batch.data))
        distinct, positions = np.unique(rows, return_inverse=True)  # a key without an open window gets no number
        keys = [column.take(pa.array(distinct)) for column in self._keys.columns(batch.data)]
        return data.take(pa.array(rows)), self.table.key_numbers(keys)[positions]

    def _too_late(self, batch: ColumnBatch, times: Times, rows: Rows) -> Rows:
        """Return the late rows among those in no open window. Others lie in a gap between windows."""
        missed = np.ones(len(batch), dtype=np.bool_)
        missed[rows] = False
        return np.flatnonzero(missed & (times <= within_64_bits(self._watermark_ms - self._lateness_ms)))

    def _mark(self, panes: Rows) -> None:
        """Note that windows have rows with which they have yet to fire."""
        if self.table.has_restored_fired:  # a window that had fired before the restore fires for these keys
            self.table.mark_fired(panes, fired=False)

    def _bounds(self, starts: Starts) -> list[pa.Array]:
        return [pa.array(starts), pa.array(starts + self._grid.size_ms)]

    # ------------------------------------------------------------------------------------------------ time

    def _last_start_ended(self, limit_ms: int) -> int:
        """Return the last start of the windows that have ended at a time."""
        return within_64_bits(limit_ms + 1 - self._grid.size_ms)

    def _last_start_over(self, limit_ms: int) -> int:
        """Return the last start of the windows that take no more rows at a time."""
        if limit_ms >= MAX_TIMESTAMP:
            return MAX_TIMESTAMP
        return within_64_bits(limit_ms + 1 - self._grid.size_ms - self._lateness_ms)

    def _first_end(self) -> int | None:
        first = self.table.first_to_fire
        return None if first is None else first + self._grid.size_ms

    def _fire_up_to(self, limit_ms: int) -> None:
        table, ended = self.table, self._last_start_ended(limit_ms)
        if table.first_to_fire is not None and table.first_to_fire <= ended:
            panes = table.fire(ended)
            parts = (panes[first : first + MOST_ROWS] for first in range(0, len(panes), MOST_ROWS))
            for part in compress(parts, self.relief):
                starts = table.starts(part)
                results = [kernel.results(part) for kernel in table.kernels]
                data = self._result(table.key_columns(part), self._bounds(starts), results)
                self.out(ColumnBatch(data, starts + (self._grid.size_ms - 1)), None)
        over = self._last_start_over(limit_ms)
        if table.first_open is not None and table.first_open <= over:
            table.close(over)
