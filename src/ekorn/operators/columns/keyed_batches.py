"""`process` with a `KeyedBatchFunction`: state and timers per key, by the vector over the keys of a batch.

State and timers are those of `KeyedProcessOperator`, under the same names. So a savepoint moves between a function of
rows and a batch function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.batch_parts import BatchRow, row_at_fault
from ekorn.columns.column_batch import MOST_ROWS, ColumnBatch
from ekorn.columns.declared import as_declared
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_rows import KeyRows
from ekorn.columns.key_words import Rows
from ekorn.columns.row_columns import RowColumns
from ekorn.errors import ColumnValueError, InvalidProgramError, preview
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.state.batch_states import BatchRuntimeContext
from ekorn.functions.state.state_descriptors import StateDescriptor, ValueStateDescriptor
from ekorn.functions.timer_service import TimeDomain
from ekorn.graph.column_specs import KeyedBatchSpec
from ekorn.graph.job_graph import Operator
from ekorn.operators.co_streams import FIRST, SECOND, TwoInputOperator
from ekorn.operators.columns.batch_functions import of_batch, schema_of_side
from ekorn.operators.columns.batch_states import batch_state
from ekorn.operators.columns.batch_values import ValuesOfBatch, VectorCells, has_vectors, without_default
from ekorn.operators.columns.column_operator import ColumnOperator
from ekorn.operators.columns.keyed_batch_context import BatchContext, OfRows
from ekorn.operators.columns.state_of_batch import StateOfBatch
from ekorn.operators.columns.state_values import dtype_of
from ekorn.operators.contexts.subtask_context import SubtaskContext
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import NO_RELIEF
from ekorn.operators.time.timers import Timers
from ekorn.state.column_table import KeyValues
from ekorn.state.declared import declare, says_the_same
from ekorn.state.timers import TimerQueue
from ekorn.state.value_vectors import KeyVectors, ValueVectors
from ekorn.types.data_types import RowType
from ekorn.types.time_bounds import MAX_TIMESTAMP

__all__ = ["KeyedBatchOperator", "KeyedCoBatchOperator"]

Sent = tuple[str, ColumnBatch]


class KeyedBatchOperator(ColumnOperator):
    """Calls the user's function with each batch, and with the timers that are due."""

    keeps_state = True
    needs_out = True
    emits_to_sides = True

    def __init__(self, operator: Operator, spec: KeyedBatchSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        assert self.backend is not None, "the program puts this operator on keyed streams only"
        self._function = spec.function
        self._batch = environment.graph.settings.batch
        self._schema = RowColumns(spec.row_type).schema
        key_type = RowType([spec.input_type[name] for name in spec.keys])
        self._names = spec.keys
        self._key_schema = RowColumns(key_type).schema
        self._key_values = KeyValues(key_type)
        self._vectors = KeyVectors(self._key_schema.types, self._key_values)
        # Only while the function opens: a vector that appears later would not have the keys of the batch.
        self._keeps_vectors = environment.graph.settings.state_latency is None
        self._states: dict[str, StateOfBatch] = {}
        self._side_schemas: dict[str, pa.Schema] = {}
        self._sent: list[Sent] = []  # to side outputs, by the call that is running
        self._context: BatchContext | None = None
        self.timers = Timers(self.backend, self.backend.cell, environment.clock)
        self.metric_group().gauge("numFiredTimers", self.timers.fired_count)
        self.emits_from = self._function.on_timers

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def open(self) -> None:
        self.timers.open()
        super().open()
        self._keeps_vectors = False

    def runtime_context(self) -> RuntimeContext:
        return _Context(self, self.environment, self.backend, self.metric_group(), self.operator.parameters)

    def state_of(self, descriptor: StateDescriptor, handle_of: Callable[[StateDescriptor], Any]) -> StateOfBatch:
        """Return the state that a descriptor declares."""
        assert self.backend is not None
        known = self._states.get(descriptor.name)
        if known is not None and says_the_same(known.descriptor, descriptor):
            return known  # some functions ask for their state with every batch
        if known is None and self._keeps_vectors and has_vectors(descriptor):
            state = self._states[descriptor.name] = self._in_vectors(descriptor)
            return state
        handle = handle_of(without_default(descriptor))
        state = self._states[descriptor.name] = batch_state(self, self.backend, descriptor, handle)
        return state

    def _in_vectors(self, descriptor: StateDescriptor) -> StateOfBatch:
        assert self.backend is not None and isinstance(descriptor, ValueStateDescriptor)
        declared = declare(descriptor, descriptor.kind, self.backend.key_type)
        table = ValueVectors(declared, self._vectors, dtype_of(descriptor.value_type), tracked=self.backend.tracked)
        self.backend.adopt(table)
        return ValuesOfBatch(self, self.backend, descriptor, None, VectorCells(self, table))

    # -------------------------------------------------------------------------------------------- the scope of states

    @property
    def rows(self) -> KeyRows:
        """The rows of the batch that is processed, by their keys."""
        return self._current().rows

    def stored_keys(self) -> list[Any]:
        """Return the keys of the batch that is processed, in the form of tables."""
        return self._current().stored_keys()

    def numbers(self) -> Rows:
        """Return the numbers of the keys of the batch in the vectors of the operator."""
        self._current()
        return self._numbers

    def _current(self) -> BatchContext:
        if self._context is None:
            raise InvalidProgramError(
                "the state of a batch function belongs to the keys of a batch; use it in process_batch() and "
                "on_timers()"
            )
        return self._context

    # ------------------------------------------------------------------------------------------------ rows

    def process(self, batch: ColumnBatch) -> Iterator[ColumnBatch]:
        if len(batch):
            yield from self._called(self._context_of(batch), self._method(), batch.data)

    def _method(self) -> Callable[..., Any]:
        """Return the method of the function that takes the batch."""
        method: Callable[..., Any] = self._function.process_batch
        return method

    def attempt(self, part: ColumnBatch) -> list[ColumnBatch]:
        return list(self.process(part))  # which writes to state at its end

    def _row_at_fault(self, batch: ColumnBatch, error: Exception) -> BatchRow | None:
        return super()._row_at_fault(batch, error) or row_at_fault(batch, self._try, error)

    def _try(self, part: ColumnBatch) -> None:
        """Process rows and write nothing."""
        for _ in self._called(self._context_of(part), self._method(), part.data, writes=False):
            pass

    def _context_of(self, batch: ColumnBatch) -> BatchContext:
        columns = [batch.data.column(name) for name in self._names]
        vectors = self._vectors
        if vectors.tables:
            numbers, index = vectors.numbers(columns), vectors.index
        else:
            index = KeyIndex(self._key_schema.types)
            numbers = index.rows(columns)
        rows, self._numbers = KeyRows.numbered(numbers)
        keys = pa.RecordBatch.from_arrays(index.columns(self._numbers), schema=self._key_schema)
        stored: list[Any] = []

        def stored_keys() -> list[Any]:
            if not stored:
                stored.extend(self._key_values.keys(keys.columns))
            return stored

        return BatchContext(
            batch, rows, keys, timers=self.timers, stored_keys=stored_keys, emit_side=self._send_to_side
        )

    def _called(
        self, context: BatchContext, method: Callable[..., Any], *arguments: Any, writes: bool = True
    ) -> Iterator[ColumnBatch]:
        """Call the function; yield what it emits, and write what it has written to state when it has succeeded."""
        assert self.backend is not None
        self._context = context
        try:
            self._clean_up(context.key_count)
            results = method(*arguments, context)
            yield from self._results(context, results, method.__name__)
            if not writes:
                return
            for state in self._states.values():
                state.commit()
            context.commit()
            sent = self._sent.copy()
        finally:
            self._context = None
            self._sent.clear()
            for state in self._states.values():
                state.forget()
        for tag, batch in sent:
            self.side_out[tag](batch, None)

    def _clean_up(self, keys: int) -> None:
        assert self.backend is not None
        for clean_up in self.backend.every_record:  # a batch has its keys, as a record has one
            for _ in range(keys):
                clean_up()

    def _results(self, context: BatchContext, results: Any, name: str) -> Iterator[ColumnBatch]:
        if results is None:
            return
        for result in (results,) if _is_one(results) else results:
            if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], OutputTag):
                context.output(*result)
            else:
                yield from self._as_batch(context, result, self._schema, f"{name}() returned").bounded()

    def _as_batch(self, context: BatchContext, result: Any, schema: pa.Schema, giver: str) -> ColumnBatch:
        data = result.data if isinstance(result, OfRows) else result
        if isinstance(data, pa.Table):
            batches = data.combine_chunks().to_batches()
            data = batches[0] if batches else schema.empty_table().to_batches()[0]
        if not isinstance(data, pa.RecordBatch):
            raise InvalidProgramError(
                f"{giver} {preview(data)}, a {type(data).__name__}; return a RecordBatch, a pair of an OutputTag and a "
                "RecordBatch, an iterable of them, or None"
            )
        try:
            data = as_declared(data, schema, giver)
        except ColumnValueError as error:
            if error.row_in_batch is not None and isinstance(result, OfRows):
                error.row_in_batch = int(result.rows[error.row_in_batch])
            elif data.num_rows != len(context.batch):
                error.row_in_batch = None  # the value is not in a row of the input
            raise
        source = context.batch.take(result.rows) if isinstance(result, OfRows) else context.batch
        return of_batch(source, data)

    def _send_to_side(self, context: BatchContext, tag: OutputTag, result: Any) -> None:
        if tag.tag_id not in self.side_out:  # side outputs without a reader are dropped
            return
        schema = self._side_schemas.get(tag.tag_id)
        if schema is None:
            schema = self._side_schemas[tag.tag_id] = schema_of_side(tag)
        batch = self._as_batch(context, result, schema, f"the side output {tag.tag_id!r} was given")
        self._sent += ((tag.tag_id, part) for part in batch.bounded() if len(part))

    # ------------------------------------------------------------------------------------------------ time

    def on_watermark(self, watermark_ms: int) -> None:
        self.timers.watermark_ms = watermark_ms
        self._fire(self.timers.event, watermark_ms, TimeDomain.EVENT_TIME)

    def on_clock(self, now_ms: int) -> None:
        if not self._batch:
            self._fire(self.timers.processing, now_ms - 1, TimeDomain.PROCESSING_TIME)

    def next_timer_ms(self) -> int | None:
        return None if self._batch else self.timers.next_timer_ms()

    def finish(self) -> None:
        """Fire the timers that are left. BATCH mode only."""
        if self._batch:
            self.on_watermark(MAX_TIMESTAMP)
            self._fire(self.timers.processing, MAX_TIMESTAMP, TimeDomain.PROCESSING_TIME)

    def _fire(self, queue: TimerQueue, limit_ms: int, domain: TimeDomain) -> None:
        """Fire the timers that are due. Those of one key fire one after the other, those of many keys in one call."""
        due: dict[Any, int] = {}
        later: list[tuple[Any, int]] = []

        def note(key: Any, time_ms: int) -> None:  # hot
            if key in due:
                later.append((key, time_ms))
            else:
                due[key] = time_ms

        time_ms = queue.next_ms()
        while time_ms is not None and time_ms <= limit_ms:
            while time_ms is not None and time_ms <= limit_ms and len(due) < MOST_ROWS and len(later) <= len(due):
                queue.fire(time_ms, note, NO_RELIEF)
                time_ms = queue.next_ms()
            for key, again_ms in later:  # back in the queue, where the function may delete them
                queue.add(key, again_ms)
            queue.fired_count -= len(later)
            keys, times = list(due), list(due.values())
            due.clear()
            later.clear()
            for first in range(0, len(keys), MOST_ROWS):
                self._call_timers(keys[first : first + MOST_ROWS], times[first : first + MOST_ROWS], domain)
            time_ms = queue.next_ms()

    def _call_timers(self, stored: list[Any], times: list[int], domain: TimeDomain) -> None:
        keys = pa.RecordBatch.from_arrays(self._key_values.columns(stored), schema=self._key_schema)
        at = np.array(times, dtype=np.int64)
        batch = ColumnBatch(keys, at if domain is TimeDomain.EVENT_TIME and not self._batch else None)
        rows = KeyRows(np.arange(len(stored)), len(stored))
        context = BatchContext(
            batch,
            rows,
            keys,
            timers=self.timers,
            stored_keys=lambda: stored,
            emit_side=self._send_to_side,
            domain=domain,
        )
        self._numbers = self._vectors.numbers(keys.columns) if self._vectors.tables else rows.key_of_row
        for result in compress(self._called(context, self._function.on_timers, keys, at), self.relief):
            if len(result):
                self.out(result, None)


class KeyedCoBatchOperator(KeyedBatchOperator, TwoInputOperator):
    """Calls the user's function with the batches of two inputs, which share state and timers."""

    def __init__(self, operator: Operator, spec: KeyedBatchSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._keys_of_inputs = spec.keys, spec.second_keys
        self._reads = [FIRST]  # the input of the batch in process, which the loop of each input sets

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._reads, 'reads')}[0] = {FIRST}")
        super().generate(code, value, time, emit, side)

    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._reads, 'reads')}[0] = {SECOND}")
        super().generate(code, value, time, emit, side)

    def _context_of(self, batch: ColumnBatch) -> BatchContext:
        self._names = self._keys_of_inputs[self._reads[0]]
        return super()._context_of(batch)

    def _method(self) -> Callable[..., Any]:
        second: bool = self._reads[0] == SECOND
        method: Callable[..., Any] = self._function.process_batch2 if second else self._function.process_batch1
        return method


class _Context(SubtaskContext, BatchRuntimeContext):
    """The runtime context of a batch function."""

    def __init__(self, operator: KeyedBatchOperator, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._operator = operator

    def _state(self, descriptor: StateDescriptor) -> Any:
        return self._operator.state_of(descriptor, super()._state)


def _is_one(results: Any) -> bool:
    """Return whether a function returned one result, and not an iterable of results."""
    if isinstance(results, tuple):
        return len(results) == 2 and isinstance(results[0], OutputTag)
    return isinstance(results, pa.RecordBatch | pa.Table | OfRows | str | dict) or not isinstance(results, Iterable)
