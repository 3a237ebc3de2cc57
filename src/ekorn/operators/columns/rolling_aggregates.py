"""Aggregates per key without windows, in both forms of a stream. Both have the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.kernel_choice import chosen_kernel
from ekorn.columns.kernels import Kernel, SumOverflow
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Rows
from ekorn.columns.row_columns import RowColumns
from ekorn.columns.segments import Segments
from ekorn.columns.timed_ends import by_time
from ekorn.errors import AggregateOverflowError, StateError
from ekorn.functions.aggregate_state import AggregateStateDescriptor, parts_of_entry
from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.record_fields import read_field
from ekorn.graph.column_specs import RollingAggregateSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.columns.column_operator import ColumnOperator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_key
from ekorn.operators.operator import RuntimeOperator
from ekorn.state.column_table import ColumnTable, KeyValues
from ekorn.state.snapshots import StateInfo
from ekorn.types.data_types import RowType
from ekorn.types.row import make_row
from ekorn.types.time_bounds import MAX_TIMESTAMP

STATE = "_aggregates"


class ColumnAggregateOperator(ColumnOperator):
    """Aggregates a stream of columns."""

    keeps_state = True

    def __init__(self, operator: Operator, spec: RollingAggregateSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._keys = spec.keys
        self._schema = RowColumns(spec.row_type).schema
        self._emits_last = spec.emits == "last"
        self._batch = environment.graph.settings.batch
        self.needs_out = self._batch
        inputs = RowColumns(spec.input_type).schema
        kernels = kernels_of(spec.aggregates, inputs, self._schema, ends_by_time=self._batch)
        kept = [(name, kernel.aggregate) for (name, _), kernel in zip(spec.aggregates, kernels, strict=True)]
        self._descriptor = AggregateStateDescriptor(STATE, kept, spec.queryable_name)
        types = [inputs.field(name).type for name in spec.keys]
        key_type = RowType([spec.input_type[name] for name in spec.keys])
        assert self.backend is not None, "the program aggregates keyed streams only"
        info = StateInfo(STATE, "value")
        self.table = ColumnTable(info, KeyIndex(types), kernels, KeyValues(key_type), tracked=self.backend.tracked)

    def open(self) -> None:
        assert self.backend is not None
        self.backend.adopt(self.table)
        if self._descriptor.queryable_name is not None:
            self.backend.queryable[self._descriptor.queryable_name] = self._descriptor
        super().open()

    def process(self, batch: ColumnBatch) -> Iterable[ColumnBatch]:
        keys = [batch.data.column(name) for name in self._keys]
        return self._take(batch, keys, self.table.rows(keys))

    def attempt(self, part: ColumnBatch) -> list[ColumnBatch]:
        keys = [part.data.column(name) for name in self._keys]
        rows, take_back = self.table.attempt(keys)
        try:
            return list(self._take(part, keys, rows))
        except Exception:
            take_back()
            raise

    def _take(self, batch: ColumnBatch, keys: list[pa.Array], rows: Any) -> Iterator[ColumnBatch]:
        if self._batch:
            self._update(batch, rows)
        elif self._emits_last:
            self._update(batch, rows)
            yield self._last_of_each_key(batch, rows)
        else:
            segments = Segments(rows)
            results = take_running(self.table.kernels, batch, segments)
            data = pa.RecordBatch.from_arrays([*keys, *results], schema=self._schema)
            yield ColumnBatch(data, batch.times, None, batch.origin)

    def _update(self, batch: ColumnBatch, rows: Any) -> None:
        take(self.table.kernels, batch, rows)

    def _last_of_each_key(self, batch: ColumnBatch, rows: Any) -> ColumnBatch:
        last = np.sort(Segments(rows).last_rows())
        chosen = batch.take(last)
        keys = [chosen.data.column(name) for name in self._keys]
        results = [kernel.results(rows[last]) for kernel in self.table.kernels]
        return ColumnBatch(
            pa.RecordBatch.from_arrays([*keys, *results], schema=self._schema), chosen.times, None, chosen.origin
        )

    def finish(self) -> None:
        """Emit the result of every key. BATCH mode only."""
        if not self._batch:
            return
        for rows in self.table.parts():
            results = [kernel.results(rows) for kernel in self.table.kernels]
            data = pa.RecordBatch.from_arrays([*self.table.index.columns(rows), *results], schema=self._schema)
            if len(rows):
                self.out(ColumnBatch(data, np.full(len(rows), MAX_TIMESTAMP, dtype=np.int64)), None)


def kernels_of(
    aggregates: Sequence[tuple[str, ColumnAggregate]], inputs: pa.Schema, results: pa.Schema, *, ends_by_time: bool
) -> list[Kernel]:
    """Return a kernel for each aggregate.

    Args:
        aggregates: The aggregates by the names of their results.
        inputs: The schema of the input.
        results: The schema of the results.
        ends_by_time: `First` and `Last` go by the timestamps of rows, and give results at the end only.
    """
    types = [inputs.field(a.column).type if a.column else None for _, a in aggregates]
    kernels = [chosen_kernel(a, t, results.field(name).type) for (name, a), t in zip(aggregates, types, strict=True)]
    return [by_time(kernel, t) for kernel, t in zip(kernels, types, strict=True)] if ends_by_time else kernels


def take(kernels: Sequence[Kernel], batch: ColumnBatch, keys: Rows) -> None:
    """Let kernels take the rows of a batch.

    Args:
        kernels: The kernels.
        batch: The rows.
        keys: The number of each row's key.

    Raises:
        AggregateOverflowError: A sum does not fit 64 bits.
    """
    for number in _in_safe_order(kernels):
        _called(kernels[number], batch, lambda kernel, argument: kernel.update(keys, argument))


def take_running(kernels: Sequence[Kernel], batch: ColumnBatch, segments: Segments) -> list[pa.Array]:
    """Let kernels take the rows of a batch; return the result of each kernel for each row. See `take`."""
    results: dict[int, Any] = {}
    for number in _in_safe_order(kernels):
        results[number] = _called(kernels[number], batch, lambda kernel, argument: kernel.running(segments, argument))
    return [results[number] for number in range(len(kernels))]


def safe_groups(kernels: Sequence[Kernel]) -> list[list[int]]:
    """Return the positions of kernels: first those that are put back, and alone those that are not.

    Where a batch is taken in several steps, one group takes all of them before the next one begins.
    """
    groups = [[n for n, kernel in enumerate(kernels) if kernel.can_be_put_back is first] for first in (True, False)]
    return [group for group in groups if group]


def _in_safe_order(kernels: Sequence[Kernel]) -> list[int]:
    """Return the positions of kernels: first those whose accumulators are put back if a later one fails."""
    return sorted(range(len(kernels)), key=lambda number: not kernels[number].can_be_put_back)


def _called(kernel: Kernel, batch: ColumnBatch, call: Callable[[Kernel, Any], Any]) -> Any:
    try:
        return call(kernel, kernel.argument(batch.data, batch.times))
    except SumOverflow as overflow:
        error = AggregateOverflowError(str(kernel.aggregate), overflow.total)
        error.row_in_batch = overflow.row
        raise error from None
    except Exception as error:
        if kernel.can_be_put_back:
            raise
        raise StateError(f"{kernel.aggregate} cannot take {batch!r}: {error}") from error


class RowAggregateOperator(RuntimeOperator):
    """Aggregates a stream of rows. Its state is that of the operator on columns."""

    def __init__(self, operator: Operator, spec: RollingAggregateSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._keys = spec.keys
        self._aggregates = [aggregate for _, aggregate in spec.aggregates]
        self._names = spec.row_type.field_names()
        self._descriptor = AggregateStateDescriptor(STATE, spec.aggregates, spec.queryable_name)
        self._batch = environment.graph.settings.batch
        self.needs_out = self._batch

    def open(self) -> None:
        assert self.backend is not None, "the program aggregates keyed streams only"
        self._state = self.backend.state(self._descriptor)
        super().open()

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        result = code.fresh("v")
        code.line(f"{result} = {code.bind(self._take, 'aggregate')}({value})")
        if not self._batch:
            emit(result, time)

    def _take(self, record: Any) -> Any:
        parts = parts_of_entry(self._aggregates, self._state.value())
        for number, aggregate in enumerate(self._aggregates):
            parts[number] = aggregate.add_record(parts[number], record)
        self._state.update(sum(parts, ()))
        self._last_keys = [read_field(record, name) for name in self._keys]
        return self._row(self._last_keys, parts)

    def _row(self, keys: list[Any], parts: list[tuple[Any, ...]]) -> Any:
        results = [a.result(part) for a, part in zip(self._aggregates, parts, strict=True)]
        return make_row([*keys, *results], self._names)

    def end_key(self) -> None:
        entry = self._state.value()
        if entry is not None:
            self.out(self._row(self._last_keys, parts_of_entry(self._aggregates, entry)), MAX_TIMESTAMP)
