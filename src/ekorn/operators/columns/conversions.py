"""The two conversions between the forms of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress, repeat
from typing import Any

import numpy as np

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.column_batch import ColumnBatch, Kinds
from ekorn.columns.row_columns import RowColumns
from ekorn.graph.column_specs import ToColumnsSpec, ToRowsSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator
from ekorn.types.row import Row, RowKind

_KINDS = tuple(RowKind)
_PART_ROWS = 4096  # rows that are Python objects at the same time


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

    A batch leaves when it has its full size, before a watermark, at the end of an epoch, and when no more records have
    arrived: what is gathered is due at once, so a subtask without a backlog emits a batch for each run of records.
    """

    needs_out = True

    def __init__(self, operator: Operator, spec: ToColumnsSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._columns = RowColumns(spec.row_type)
        self._max_rows = spec.max_rows
        self._records: list[Any] = []
        self._times: list[int | None] = []

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        records, times = code.bind(self._records, "records"), code.bind(self._times, "times")
        code.line(f"{records}.append({value})")
        code.line(f"{times}.append({time})")
        with code.block(f"if len({records}) >= {self._max_rows}:"):
            code.line(f"{code.bind(self._flush, 'flush')}()")

    def _flush(self) -> None:
        if not self._records:
            return
        records, times = self._records.copy(), self._times.copy()
        self._records.clear()
        self._times.clear()
        self.out(ColumnBatch(self._columns.batch(records), _timestamps(times), kinds_of(records)), None)

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


def _timestamps(times: list[int | None]) -> Any:
    if None in times:
        return None
    return np.array(times, dtype=np.int64)
