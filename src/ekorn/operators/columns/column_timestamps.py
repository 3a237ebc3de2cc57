"""The operator that takes timestamps from a column, and emits watermarks between batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.column_batch import ColumnBatch, Times
from ekorn.errors import InvalidTimestampError, preview
from ekorn.functions.source_contract import Batch
from ekorn.graph.column_specs import ColumnTimestampsSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns.column_operator import ColumnOperator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.time.timestamps import OnIdle, OnWatermark, WatermarkEmitter
from ekorn.operators.time.watermarks import SourceEvent, SplitWatermarks, make_generator
from ekorn.types.time_bounds import MAX_TIMESTAMP


class ColumnTimestampsOperator(ColumnOperator):
    """`assign_timestamps_and_watermarks` with a timestamp column.

    The generators of the built-in strategies use the highest timestamp alone, so a batch is one event to them.
    """

    holds_watermarks = True

    def __init__(self, operator: Operator, spec: ColumnTimestampsSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        settings = environment.graph.settings
        self._column = spec.column
        self._generator = make_generator(spec.watermarks, environment.clock)
        self._generates = not settings.batch
        self._periodic = settings.auto_watermark_interval_ms > 0
        self.emitter = WatermarkEmitter()

    def connect_time(self, forward_watermark: OnWatermark, forward_idle: OnIdle) -> None:
        super().connect_time(forward_watermark, forward_idle)
        self.emitter.on_watermark = forward_watermark
        self.emitter.on_idle = forward_idle

    def process(self, batch: ColumnBatch) -> tuple[ColumnBatch]:
        return (batch.with_times(times_of(batch.data, self._column)),)

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        def emit_and_note(result: str, result_time: str) -> None:
            emit(result, result_time)
            if self._generates:
                code.line(f"{code.bind(self._note, 'note')}({result})")

        super().generate(code, value, time, emit_and_note, side)

    def _note(self, batch: ColumnBatch) -> None:
        if batch.times is not None and len(batch):
            self._generator.on_event(None, int(batch.times.max()), self.emitter)

    def emit_periodic_watermark(self) -> None:
        if self._generates and self._periodic:
            self._generator.on_periodic_emit(self.emitter)

    def on_watermark(self, watermark_ms: int) -> None:
        """Forward the last watermark, which ends the input. All others are replaced by the generator's."""
        if watermark_ms == MAX_TIMESTAMP:
            self.emitter.mark_active()
            self.forward_watermark(watermark_ms)


class ColumnSplitWatermarks(SplitWatermarks):
    """The watermarks of a source of columns, with built-in strategies: `from_source` draws others behind the source."""

    def stamp(self, split_id: str, batch: Batch) -> Iterator[Batch | SourceEvent]:
        name = self._strategy.timestamp_column
        values = batch.values
        if name is not None:
            values = [each.with_times(times_of(each.data, name)) for each in values]
        yield Batch(values)
        if self._batch:
            return
        generator, output, _ = self._splits[split_id]
        highest = [int(each.times.max()) for each in values if each.times is not None and len(each)]
        if highest:
            generator.on_event(None, max(highest), output)


def times_of(data: pa.RecordBatch, name: str) -> Times:
    """Return the timestamps in a column: points in time, or whole numbers of milliseconds since 1970.

    Raises:
        InvalidTimestampError: A row has none, or the column has neither.
    """
    column = data.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).view(pa.int64())
    elif not pa.types.is_integer(column.type):
        raise _wrong(data, name, 0, f"the column has the type {column.type}; use a column of timestamps or of LONG")
    if column.null_count:
        at = int(np.flatnonzero(~column.is_valid().to_numpy(zero_copy_only=False))[0])
        raise _wrong(data, name, at, "filter such rows out before timestamps are assigned, or fill the column")
    times: Times = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return times


def _wrong(data: pa.RecordBatch, name: str, at: int, advice: str) -> InvalidTimestampError:
    value = data.column(name)[at].as_py()
    record = preview(data.slice(at, 1).to_pylist()[0])
    return InvalidTimestampError(
        f"the timestamp column {name!r} holds", preview(value), type(value).__name__, record, advice
    )
