"""The two conversions between the forms of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, groupby, repeat
from typing import Any

import numpy as np

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.column_batch import MOST_BYTES, ColumnBatch, Kinds
from ekorn.columns.row_columns import RowColumns
from ekorn.errors import RecordTypeError
from ekorn.graph.column_specs import ToColumnsSpec, ToRowsSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator
from ekorn.types.by_value import size_of
from ekorn.types.row import Row, RowKind

_KINDS = tuple(RowKind)
_PART_ROWS = 4096  # rows that are Python objects at the same time
_FIRST_LOOK = 64  # records whose bytes are estimated first
_SAMPLE = 16


class ToRowsOperator(RuntimeOperator):
    """Emits each row of a batch as a record."""

    def __init__(self, operator: Operator, spec: ToRowsSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._columns = RowColumns(spec.row_type)

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        row, row_time = code.fresh("v"), code.fresh("t")
        rows = f"{code.bind(self._rows, 'rows')}({value})"
        relieved = f"{code.bind(compress, 'compress')}({rows}, {code.bind(self.relief, 'relief')})"
        with code.block(f"for {row}, {row_time} in {relieved}:"):
            emit(row, row_time)

    def _rows(self, batch: ColumnBatch) -> Iterator[tuple[Any, int | None]]:
        for part in batch.parts(_PART_ROWS):
            times = repeat(None) if part.times is None else part.times.tolist()
            rows = self._columns.rows(part.data)
            if part.kinds is not None:
                for row, kind in zip(rows, part.kinds.tolist(), strict=True):
                    row.set_row_kind(_KINDS[kind])
            yield from zip(rows, times, strict=False)


class ToColumnsOperator(RuntimeOperator):
    """Gathers records into batches.

    A batch leaves when it has its full size in rows or bytes, before a watermark, at the end of an epoch, and when no
    more records have arrived: what is gathered is due at once, so a subtask without a backlog emits a batch for each
    run of records.
    """

    needs_out = True

    def __init__(self, operator: Operator, spec: ToColumnsSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._columns = RowColumns(spec.row_type)
        self._max_rows = spec.max_rows
        self._records: list[Any] = []
        self._times: list[int | None] = []
        self._look_at = [min(spec.max_rows, _FIRST_LOOK)]  # the number of records at which their bytes are estimated
        self._measured = 0  # the records whose bytes are estimated
        self._bytes = 0

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        records, times = code.bind(self._records, "records"), code.bind(self._times, "times")
        code.line(f"{records}.append({value})")
        code.line(f"{times}.append({time})")
        with code.block(f"if len({records}) >= {code.bind(self._look_at, 'look_at')}[0]:"):
            code.line(f"{code.bind(self._look, 'look')}()")

    def _look(self) -> None:
        """Send the records if they are many, or large; look again after twice as many."""
        count = len(self._records)
        sample = self._records[self._measured :: max(1, (count - self._measured) // _SAMPLE)]
        self._bytes += sum(map(size_of, sample)) * (count - self._measured) // max(1, len(sample))
        self._measured = count
        if count >= self._max_rows or self._bytes >= MOST_BYTES:
            self._flush()
        else:
            left = (MOST_BYTES - self._bytes) * count // max(1, self._bytes)
            self._look_at[0] = min(self._max_rows, count + max(1, min(count, left)))

    def _flush(self) -> None:
        if not self._records:
            return
        records, times = self._records.copy(), self._times.copy()
        self._records.clear()
        self._times.clear()
        self._measured = self._bytes = 0
        self._look_at[0] = min(self._max_rows, _FIRST_LOOK)
        for start, end in _runs(times):
            for batch in self._batches(records[start:end], times[start:end]):
                self.out(batch, None)

    def _batches(self, records: list[Any], times: list[int | None]) -> Iterator[ColumnBatch]:
        """Yield records as batches, without those that do not fit the columns and may be skipped."""
        start = 0
        while start < len(records):
            try:
                yield self._batch(records[start:], times[start:])
                return
            except RecordTypeError as error:
                at = error.position
                if self.record_errors is None or at is None:
                    raise
                bad = start + at
                where = f"position {bad} of a batch of {len(records)}"
                if not self.record_errors.handles_row(records[bad], where, error, times[bad]):
                    raise
                if at:
                    yield self._batch(records[start:bad], times[start:bad])
                start = bad + 1

    def _batch(self, records: list[Any], times: list[int | None]) -> ColumnBatch:
        return ColumnBatch(self._columns.batch(records), _timestamps(times), kinds_of(records))

    def on_watermark(self, watermark_ms: int) -> None:
        self._flush()

    def on_clock(self, now_ms: int) -> None:
        self._flush()

    def next_timer_ms(self) -> int | None:
        return 0 if self._records else None  # due, as soon as the run of records that is in process is over

    def end_epoch(self) -> None:
        self._flush()

    def finish(self) -> None:
        self._flush()


def kinds_of(records: list[Any]) -> Kinds | None:
    """Return the kinds of records; None if all of them are inserted, as those are that are not rows."""
    inserted = RowKind.INSERT
    if not any(record.__class__ is Row and record._row_kind is not inserted for record in records):
        return None
    kinds = (record._row_kind.value if isinstance(record, Row) else 0 for record in records)
    return np.fromiter(kinds, np.int8, len(records))


def _runs(times: list[int | None]) -> list[tuple[int, int]]:
    """Return the runs of records that all have timestamps, or none of which has one."""
    if None not in times:
        return [(0, len(times))]
    runs, start = [], 0
    for _, run in groupby(times, lambda time: time is None):
        end = start + sum(1 for _ in run)
        runs.append((start, end))
        start = end
    return runs


def _timestamps(times: list[int | None]) -> Any:
    if times[0] is None:
        return None
    return np.array(times, dtype=np.int64)
