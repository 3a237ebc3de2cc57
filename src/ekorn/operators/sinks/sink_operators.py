"""Sinks: functions, writers with committers, printing, collecting. Two-phase transactions are in `two_phase.py`.

Transactional output follows one rule. Output written before a checkpoint becomes visible only when the checkpoint is
complete, and is committed again, without effect, if the job restarts from the checkpoint. Without checkpoints all
output is committed at the end of the input. In the mode AT_LEAST_ONCE a writer's output is committed when a
checkpoint is taken, before the checkpoint is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.codegen.key_code import key_function
from ekorn.columns.columns_type import has_columns
from ekorn.faults import point
from ekorn.functions.sink_contract import BufferingSinkFunction, Sink, SinkFunction, SinkWriter, WriterContext
from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import CollectSpec, PrintSpec, SinkFunctionSpec, WriterSpec
from ekorn.operators.contexts.function_contexts import Clocks, ElementContext
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator, UserFunctionOperator
from ekorn.operators.sinks.driver_output import DriverOutput
from ekorn.types.by_value import own
from ekorn.types.record_text import record_text
from ekorn.types.row import Row

_COMMITTABLES = ListStateDescriptor("_committables")
_WRITERS = ListStateDescriptor("_writers")


class SinkFunctionOperator(UserFunctionOperator):
    """A `SinkFunction`: called once per record, or per batch of columns."""

    _function: SinkFunction[Any]

    def __init__(self, operator: Operator, spec: SinkFunctionSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._buffering = spec.function if isinstance(spec.function, BufferingSinkFunction) else None
        self._clocks = Clocks(environment)
        self._context = ElementContext(self._clocks, None)

    def on_watermark(self, watermark_ms: int) -> None:
        self._clocks.watermark_ms = watermark_ms

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        context = code.bind(self._context, "context")
        code.line(f"{context}.time = {time}")
        code.line(f"{code.bind(self._invoke, 'invoke')}({value}, {context})")

    @property
    def _invoke(self) -> Callable[..., None]:
        """The method that takes what the stream carries: records, or batches of columns."""
        takes_columns = has_columns(self.operator.input_type)
        return self._function.invoke_batch if takes_columns else self._function.invoke

    def on_clock(self, now_ms: int) -> None:
        if self._buffering is not None:
            self._buffering.flush_due(now_ms)

    def next_timer_ms(self) -> int | None:
        return self._buffering.next_flush_ms() if self._buffering is not None else None

    def finish(self) -> None:
        self._function.finish()


class WriterOperator(RuntimeOperator):
    """A `Sink`: its writer, and the committables whose checkpoint is not complete yet."""

    def __init__(self, operator: Operator, spec: WriterSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._sink = sink_for(spec.sink, operator)
        self.handles_record_errors = has_columns(operator.input_type)
        self._committer = self._sink.create_committer()
        self._waiting: list[tuple[int, Any]] = []  # (checkpoint, committable), oldest first
        settings = environment.graph.settings
        self._checkpointing = settings.checkpointing
        self._at_once = settings.checkpointing and settings.releases_at_once

    def initialize(self) -> None:
        super().initialize()
        restored = [c for _, c in self.states.get_list_state(_COMMITTABLES).get()]
        if restored:
            point("sink-recover", self.environment.index)
        self._commit(restored)
        self.states.get_list_state(_COMMITTABLES).clear()
        context = writer_context(self.environment, self.operator, exactly_once=not self._at_once)
        self._writer = self._sink.create_writer(context, list(self.states.get_list_state(_WRITERS).get()))

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_write(code, value, time, operator=self, writer=self._writer)

    def end_epoch(self) -> None:
        self._writer.end_epoch()

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        prepared = list(self._writer.prepare_commit())
        if self._at_once:
            self._commit(prepared)
        else:
            self._waiting += [(checkpoint_id, c) for c in prepared]
        self.states.get_list_state(_COMMITTABLES).update(list(self._waiting))
        self.states.get_list_state(_WRITERS).update(list(self._writer.snapshot_state()))

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        super().checkpoint_completed(checkpoint_id)
        self._commit([c for i, c in self._waiting if i <= checkpoint_id])
        self._waiting = [(i, c) for i, c in self._waiting if i > checkpoint_id]

    def finish(self) -> None:
        self._writer.finish()
        if not self._checkpointing:
            # The waiting committables were prepared for a savepoint, and savepoints commit nothing.
            self._commit([c for _, c in self._waiting] + list(self._writer.prepare_commit()))
            self._waiting.clear()

    def _commit(self, committables: list[Any]) -> None:
        if committables and self._committer is not None:
            point("sink-commit", self.environment.index)
            self._committer.commit(committables)
            point("sink-committed", self.environment.index)

    def close(self) -> None:
        writer = getattr(self, "_writer", None)
        try:
            if writer is not None:
                writer.close()
        finally:
            # One object may be both writer and committer.
            if self._committer is not None and self._committer is not writer:
                self._committer.close()
            super().close()


def writer_context(environment: SubtaskEnvironment, operator: Operator, *, exactly_once: bool) -> WriterContext:
    """Return the place and mode in which the writer of a subtask runs."""
    return WriterContext(
        subtask_index=environment.index,
        subtask_count=environment.vertex.parallelism,
        attempt=environment.attempt,
        job_id=environment.job_id,
        operator_id=operator.id,
        exactly_once=exactly_once,
    )


def sink_for(sink: Sink[Any], operator: Operator) -> Sink[Any]:
    """Return a sink for the records of its operator. A sink that takes columns was told of them in the program."""
    return sink if has_columns(operator.input_type) else sink.with_input_type(operator.input_type)


def generate_write(
    code: CodeBuilder, value: str, time: str, *, operator: RuntimeOperator, writer: SinkWriter[Any, Any]
) -> None:
    """Generate the statements that write a record, or a batch of columns."""
    if has_columns(operator.operator.input_type):
        from ekorn.operators.columns.batch_writing import generate_write_batch  # which loads PyArrow

        generate_write_batch(code, value, writer.write_batch, operator.record_errors)
    else:
        code.line(f"{code.bind(writer.write, 'write')}({value}, {time})")


class PrintOperator(RuntimeOperator):
    """`print`: one line per record, printed by the driver."""

    def __init__(
        self, operator: Operator, spec: PrintSpec, environment: SubtaskEnvironment, driver_output: DriverOutput
    ) -> None:
        super().__init__(operator, environment)
        self._driver_output = driver_output
        parallelism, number = environment.vertex.parallelism, environment.index + 1
        parts = [p for p in (spec.identifier, str(number) if parallelism > 1 else None) if p]
        self._prefix = ":".join(parts) + "> " if parts else ""

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._print, 'show')}({value})")

    def _print(self, value: Any) -> None:
        self._driver_output.lines.append(self._prefix + record_text(self.operator.input_type, value))


class CollectOperator(RuntimeOperator):
    """`execute_and_collect`: records reach the driver with the acknowledgement of the epoch."""

    def __init__(
        self, operator: Operator, spec: CollectSpec, environment: SubtaskEnvironment, driver_output: DriverOutput
    ) -> None:
        super().__init__(operator, environment)
        self._driver_output = driver_output
        self._key = key_function(spec.key) if spec.key is not None else None
        self._type = operator.input_type

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._collect, 'collect')}({value})")

    def _collect(self, value: Any) -> None:
        key = self._key(value) if self._key is not None else None
        if self._type is not None:
            value = self._type.collected(self._type.conform([value])[0])
        if self._key is not None:
            value = Row(f0=key, f1=value)
        self._driver_output.records.append(own(value))
