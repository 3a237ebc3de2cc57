"""Session windows of columns with a fixed gap, which fire at their end.

The state is that of sessions of rows (`operators/windows/session_layout.py`). A batch is planned first
(`columns/session_plan.py`): the session of each row, and which sessions merge. Then the aggregates take all rows at
once, or in rounds where sessions merge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.column_batch import ColumnBatch, Times
from ekorn.columns.kernels import Kernel
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Rows
from ekorn.columns.segments import Segments
from ekorn.columns.session_plan import NEW, SessionPlan, planned_sessions
from ekorn.columns.window_vectors import within_64_bits
from ekorn.functions.windows.window_arithmetic import SessionGap
from ekorn.graph.column_specs import WindowAggregateSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns.column_sessions import ColumnSessions, merge_sessions
from ekorn.operators.columns.column_window_operator import MOST_ROWS, ColumnWindowOperator, naming_rows
from ekorn.operators.columns.rolling_aggregates import safe_groups, take, take_running
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.windows.saved_windows import (
    IN_ROCKSDB,
    SESSIONS,
    SavedDefaultInRocksDB,
    SavedSessions,
    check_layout,
    translate,
)
from ekorn.state.keyed_backend import RestoredTables
from ekorn.types.time_bounds import MAX_TIMESTAMP


class SessionWindowOperator(ColumnWindowOperator):
    """Aggregates the rows of sessions."""

    def __init__(
        self, operator: Operator, spec: WindowAggregateSpec, gap: SessionGap, environment: SubtaskEnvironment
    ) -> None:
        super().__init__(operator, spec, environment)
        assert self.backend is not None, "the base class checks it"
        assert gap.fixed_ms is not None, "the program leaves sessions with a gap of each row to rows"
        self.backend.kept_on_heap = IN_ROCKSDB
        self._gap_ms = gap.fixed_ms
        kernels = self._kernels(ends_by_time=self._batch)
        self.table = ColumnSessions(
            KeyIndex(self._keys.types), kernels, self._keys.values, tracked=self.backend.tracked
        )

    def translate(self, tables: RestoredTables) -> None:
        translate(tables, SavedSessions(), [SavedDefaultInRocksDB(self._spec.windows)])

    def open(self) -> None:
        assert self.backend is not None
        check_layout(self.backend, SESSIONS)
        self.backend.adopt(self.table)
        super().open()

    # ------------------------------------------------------------------------------------------------ rows

    def _attempting(self) -> Callable[[], None]:
        return self.table.attempt()

    def _take(self, batch: ColumnBatch, times: Times) -> tuple[list[ColumnBatch], Rows]:
        table = self.table
        keys = table.key_numbers(self._keys.columns(batch.data))
        there = table.of_keys(np.unique(keys))
        last_end_over = self._last_end_over(self._watermark_ms) if self._event_time else None
        plan = planned_sessions(keys, times, self._gap_ms, there, table.first_free, last_end_over)
        table.open(plan, there)
        rows = np.flatnonzero(plan.sessions != NEW)
        fires = np.zeros(len(rows), dtype=np.bool_)
        if self._event_time:
            fires = plan.ends[rows] <= self._last_end_ended(self._watermark_ms)
        taken = ColumnBatch(batch.data.select(self._read), batch.times)
        late = np.flatnonzero(plan.sessions == NEW)
        results: dict[int, pa.Array] = {}
        for group in safe_groups(table.kernels):
            kernels = [table.kernels[number] for number in group]
            results |= zip(group, self._take_in_rounds(kernels, taken, plan, rows, fires), strict=False)
        table.mark_fired(plan.sessions[rows], fired=fires)
        if not results:
            return [], late
        again = rows[fires]
        fired = batch.take(again)
        data = self._result(
            self._keys.columns(fired.data),
            _bounds(plan.starts[again], plan.ends[again]),
            [results[number] for number in range(len(results))],
        )
        return [ColumnBatch(data, times[again], origin=fired.origin)], late

    def _take_in_rounds(
        self, kernels: Sequence[Kernel], batch: ColumnBatch, plan: SessionPlan, rows: Rows, fires: NDArray[np.bool_]
    ) -> list[pa.Array]:
        """Let aggregates take rows; return the results with the rows that fire, in their order."""
        if not plan.merges:
            return _take_round(kernels, batch, plan.sessions, rows, fires)
        rounds, parts, positions = plan.rounds[rows], [], []
        for number in range(plan.merges[-1].round + 1):
            merge_sessions(kernels, [merge for merge in plan.merges if merge.round == number])
            here = rounds == number
            results = _take_round(kernels, batch, plan.sessions, rows[here], fires[here])
            if results:
                parts.append(results)
                positions.append(rows[here & fires])
        order = pa.array(np.argsort(np.concatenate(positions))) if parts else None
        return [pa.concat_arrays(columns).take(order) for columns in zip(*parts, strict=True)]

    # ------------------------------------------------------------------------------------------------ time

    def _last_end_ended(self, limit_ms: int) -> int:
        """Return the last end of the sessions that have ended at a time."""
        return within_64_bits(limit_ms + 1)

    def _last_end_over(self, limit_ms: int) -> int:
        """Return the last end of the sessions that take no more rows at a time."""
        return MAX_TIMESTAMP if limit_ms >= MAX_TIMESTAMP else within_64_bits(limit_ms + 1 - self._lateness_ms)

    def _first_end(self) -> int | None:
        return self.table.first_to_fire

    def _fire_up_to(self, limit_ms: int) -> None:
        table, ended = self.table, self._last_end_ended(limit_ms)
        if table.first_to_fire is not None and table.first_to_fire <= ended:
            sessions = table.fire(ended)
            parts = (sessions[first : first + MOST_ROWS] for first in range(0, len(sessions), MOST_ROWS))
            for part in compress(parts, self.relief):
                starts, ends = table.spans(part)
                results = [kernel.results(part) for kernel in table.kernels]
                data = self._result(table.key_columns(part), _bounds(starts, ends), results)
                self.out(ColumnBatch(data, ends - 1), None)
        over = self._last_end_over(limit_ms)
        if table.first_to_end is not None and table.first_to_end <= over:
            table.close(over)
        table.tidy()  # keys of rows that were too late have numbers as well


def _bounds(starts: Times, ends: Times) -> list[pa.Array]:
    return [pa.array(starts), pa.array(ends)]


def _take_round(
    kernels: Sequence[Kernel], batch: ColumnBatch, sessions: Rows, rows: Rows, fires: NDArray[np.bool_]
) -> list[pa.Array]:
    """Let aggregates take rows of a batch; return the results with the rows that fire, if there are some."""
    if len(rows) < len(batch):
        batch = batch.take(rows)
    with naming_rows(rows):
        if not fires.any():
            take(kernels, batch, sessions[rows])
            return []
        results = take_running(kernels, batch, Segments(sessions[rows]))
    return [column.filter(pa.array(fires)) for column in results]
