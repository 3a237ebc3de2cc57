"""Count windows of columns, which fire when they are full.

The state is that of count windows of rows. A row has the number of the rows of its key before it. The windows of a row
follow from the number, as those of a time do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from ekorn.columns.column_batch import ColumnBatch, Times, joined
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Rows
from ekorn.columns.segments import Segments
from ekorn.columns.window_vectors import starts_of_windows
from ekorn.functions.windows.window_arithmetic import CountGrid, WindowGrid
from ekorn.graph.column_specs import WindowAggregateSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns.column_window_operator import MOST_ROWS, NO_ROWS, ColumnWindowOperator, naming_rows
from ekorn.operators.columns.count_panes import IN_WINDOWS, CountPanes, KeyCounts
from ekorn.operators.columns.rolling_aggregates import take
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.windows.saved_windows import TRIGGERED, check_layout
from ekorn.types.time_bounds import MIN_TIMESTAMP


class CountWindowOperator(ColumnWindowOperator):
    """Aggregates the rows of windows of a number of rows."""

    def __init__(
        self, operator: Operator, spec: WindowAggregateSpec, grid: CountGrid, environment: SubtaskEnvironment
    ) -> None:
        super().__init__(operator, spec, environment)
        assert self.backend is not None, "the base class checks it"
        self.backend.kept_on_heap = IN_WINDOWS
        self._size, self._slide = grid.size, grid.slide
        self._grid = WindowGrid(grid.size, grid.slide, 0)
        tracked = self.backend.tracked
        self.counts = KeyCounts(KeyIndex(self._keys.types), self._keys.values, tracked=tracked)
        kernels = self._kernels(ends_by_time=False)  # rows come in the order of their timestamps
        self.table = CountPanes(KeyIndex(self._keys.types), kernels, self._keys.values, tracked=tracked)
        self._undo: list[Callable[[], None]] = []
        self._held: list[ColumnBatch] = []  # in BATCH mode all rows, which are taken in the order of their timestamps
        self._holds = self._batch

    def open(self) -> None:
        assert self.backend is not None
        check_layout(self.backend, TRIGGERED)
        for table in (self.table, self.table.counts, self.counts):
            self.backend.adopt(table)
        super().open()

    # ------------------------------------------------------------------------------------------------ rows

    def pieces(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        return batch.parts(max(1, MOST_ROWS // -(-self._size // self._slide)))

    def process(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        if self._holds:
            self._held.append(batch)
        else:
            yield from super().process(batch)

    def attempt(self, part: ColumnBatch) -> list[ColumnBatch]:
        return list(self.process(part)) if self._holds else super().attempt(part)

    def _times_of(self, batch: ColumnBatch) -> Times:
        return NO_ROWS  # time does not matter

    def _attempting(self) -> Callable[[], None]:
        self._undo = [self.table.attempt()]

        def take_back() -> None:
            for undo in self._undo:
                undo()

        return take_back

    def _take(self, batch: ColumnBatch, times: Times) -> tuple[list[ColumnBatch], Rows]:
        return list(self._fired_with(batch)), NO_ROWS

    def _fired_with(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        """Take rows; yield the results of the windows that they fill."""
        numbers, keys = self._numbered(batch)
        rows, starts = starts_of_windows(numbers, self._grid)
        inside = starts >= 0  # the first window starts with the first row
        rows, starts = rows[inside], starts[inside]
        if not len(rows):
            return
        panes = self.table.panes(keys[rows], starts // self._slide)
        taken = ColumnBatch(batch.data.select(self._read).take(pa.array(rows)))
        with naming_rows(rows):
            take(self.table.aggregates, taken, panes)
        self.table.counts.kernel.update(panes, None)
        full = np.flatnonzero(numbers[rows] == starts + self._size - 1)
        if not len(full):
            return
        last = batch.take(rows[full])
        results = [kernel.results(panes[full]) for kernel in self.table.aggregates]
        self.table.drop_panes(panes[full])
        self.table.tidy()
        yield ColumnBatch(self._result(self._keys.columns(last.data), [], results), last.times, origin=last.origin)

    def _numbered(self, batch: ColumnBatch) -> tuple[Rows, Rows]:
        """Return for each row how many rows of its key came before it, and the number of its key among the windows."""
        columns = self._keys.columns(batch.data)
        if self.record_errors is None:
            of_key = self.counts.rows(columns)
        else:
            of_key, take_back = self.counts.attempt(columns)
            self._undo.append(take_back)
        segments = Segments(of_key)
        numbers = self.counts.kernels[0].running(segments, None).to_numpy() - 1
        firsts = pa.array(segments.order[segments.starts])
        keys = self.table.key_numbers([column.take(firsts) for column in columns])
        of_row = np.empty(len(batch), dtype=np.int64)
        of_row[segments.order] = np.repeat(keys, segments.counts)
        return numbers, of_row

    # ------------------------------------------------------------------------------------------------ time

    def _first_end(self) -> int | None:
        return None

    def _fire_up_to(self, limit_ms: int) -> None:
        """Nothing: no time ends a window."""

    def finish(self) -> None:
        """Take all rows. BATCH mode only."""
        if not self._held:
            return
        self._holds = False
        timed = any(batch.times is not None for batch in self._held)
        batch = joined([b if b.times is not None or not timed else b.stamped(MIN_TIMESTAMP) for b in self._held])
        self._held = []
        if batch.times is not None:
            batch = batch.take(np.argsort(batch.times, kind="stable"))
        for result in (self._naming_rows if self.record_errors is None else self._skipping_rows)(batch):
            self.out(result, None)
