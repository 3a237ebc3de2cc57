"""Sinks: functions, two-phase transactions, writers with committers, printing, collecting.

Transactional output follows one rule: what was written before a checkpoint becomes visible only when that
checkpoint is complete, and becomes visible again, harmlessly, if the job restarts from it. Without checkpoints
there is nothing to wait for: everything is committed at the end of the input.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tamias.common.typeinfo import record_text
from tamias.common.types import Row
from tamias.contracts.sinks import SinkFunction, TwoPhaseCommitSinkFunction, WriterContext
from tamias.contracts.state import ListStateDescriptor
from tamias.graph.job_graph import Operator
from tamias.graph.specs import CollectSpec, PrintSpec, SinkFunctionSpec, WriterSpec
from tamias.runtime.code import Code
from tamias.runtime.contexts import Clocks, ElementContext
from tamias.runtime.operators.base import Emit, RuntimeOperator
from tamias.runtime.operators.keys import key_function
from tamias.runtime.place import Place
from tamias.wire.values import own

_TRANSACTIONS = ListStateDescriptor("_transactions")
_COMMITTABLES = ListStateDescriptor("_committables")
_WRITERS = ListStateDescriptor("_writers")


class SinkFunctionOperator(RuntimeOperator):
    """A `SinkFunction`: called once per record."""

    def __init__(self, operator: Operator, spec: SinkFunctionSpec, place: Place) -> None:
        super().__init__(operator, place)
        self._function: SinkFunction[Any] = spec.function
        self._clocks = Clocks(place)
        self._context = ElementContext(self._clocks, None)

    def functions(self) -> Iterable[Any]:
        return (self._function,)

    def on_watermark(self, watermark_ms: int) -> None:
        self._clocks.watermark_ms = watermark_ms

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        context = code.bind(self._context, "context")
        code.line(f"{context}.time = {time}")
        code.line(f"{code.bind(self._function.invoke, 'invoke')}({value}, {context})")

    def finish(self) -> None:
        self._function.finish()


class TwoPhaseOperator(SinkFunctionOperator):
    """A `TwoPhaseCommitSinkFunction`: one open transaction, and those that wait for their checkpoint."""

    _function: TwoPhaseCommitSinkFunction[Any, Any]

    def __init__(self, operator: Operator, spec: SinkFunctionSpec, place: Place) -> None:
        super().__init__(operator, spec, place)
        self._waiting: list[tuple[int, Any]] = []  # (checkpoint, transaction), oldest first
        self._open: Any = None
        self._checkpointing = place.graph.settings.checkpointing
        self._finished = False

    def initialize(self) -> None:
        super().initialize()
        # A union list: after a change of parallelism any subtask may finish what another began.
        for checkpoint_id, state, transaction in self.states.get_list_state(_TRANSACTIONS).get():
            if state == "prepared" and checkpoint_id is not None:
                self._function.recover_and_commit(transaction)
            else:
                self._function.recover_and_abort(transaction)

    def open(self) -> None:
        super().open()
        self._open = self._function.begin_transaction()

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        context = code.bind(self._context, "context")
        code.line(f"{context}.time = {time}")
        code.line(
            f"{code.bind(self._function.invoke_in, 'invoke')}({code.bind(self, 'sink')}._open, {value}, {context})"
        )

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        self._function.pre_commit(self._open)
        self._waiting.append((checkpoint_id, self._open))
        self._open = self._function.begin_transaction()
        state = self.states.get_list_state(_TRANSACTIONS)
        state.update([(i, "prepared", t) for i, t in self._waiting] + [(None, "open", self._open)])
        super().before_snapshot(checkpoint_id, now_ms)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        super().checkpoint_completed(checkpoint_id)
        while self._waiting and self._waiting[0][0] <= checkpoint_id:
            self._function.commit(self._waiting[0][1])
            del self._waiting[0]

    def finish(self) -> None:
        super().finish()
        if not self._checkpointing:
            self._function.pre_commit(self._open)
            self._function.commit(self._open)
            self._open, self._finished = None, True

    def close(self) -> None:
        # What is prepared belongs to a checkpoint that may yet be restored: only the open one is dropped.
        if self._open is not None and not self._finished:
            self._function.abort(self._open)
            self._open = None
        super().close()


class WriterOperator(RuntimeOperator):
    """A `Sink`: its writer, and the committables that wait for their checkpoint."""

    def __init__(self, operator: Operator, spec: WriterSpec, place: Place) -> None:
        super().__init__(operator, place)
        self._sink = spec.sink.with_input_type(operator.input_type)
        self._committer = self._sink.create_committer()
        self._waiting: list[tuple[int, Any]] = []  # (checkpoint, committable), oldest first
        self._checkpointing = place.graph.settings.checkpointing

    def initialize(self) -> None:
        super().initialize()
        restored = [c for _, c in self.states.get_list_state(_COMMITTABLES).get()]
        if restored and self._committer is not None:
            self._committer.commit(restored)
        self.states.get_list_state(_COMMITTABLES).clear()
        place = self.place
        context = WriterContext(
            subtask_index=place.index,
            subtask_count=place.vertex.parallelism,
            attempt=place.attempt,
            job_id=place.job_id,
            operator_id=self.operator.id,
        )
        self._writer = self._sink.create_writer(context, list(self.states.get_list_state(_WRITERS).get()))

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._writer.write, 'write')}({value}, {time})")

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        self._waiting += [(checkpoint_id, c) for c in self._writer.prepare_commit()]
        self.states.get_list_state(_COMMITTABLES).update(list(self._waiting))
        self.states.get_list_state(_WRITERS).update(list(self._writer.snapshot_state()))
        super().before_snapshot(checkpoint_id, now_ms)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        super().checkpoint_completed(checkpoint_id)
        due = [c for i, c in self._waiting if i <= checkpoint_id]
        if due and self._committer is not None:
            self._committer.commit(due)
        self._waiting = [(i, c) for i, c in self._waiting if i > checkpoint_id]

    def finish(self) -> None:
        self._writer.finish()
        if not self._checkpointing:
            committables = list(self._writer.prepare_commit())
            if committables and self._committer is not None:
                self._committer.commit(committables)

    def close(self) -> None:
        writer = getattr(self, "_writer", None)
        if writer is not None:
            writer.close()
        super().close()


class Report:
    """What a subtask sends to the driver with its acknowledgement: printed lines and collected records."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.records: list[Any] = []

    def take(self) -> tuple[list[str], list[Any]]:
        """What gathered since the last call."""
        lines, self.lines = self.lines, []
        records, self.records = self.records, []
        return lines, records


class PrintOperator(RuntimeOperator):
    """`print`: a line per record, shown by the driver."""

    def __init__(self, operator: Operator, spec: PrintSpec, place: Place, report: Report) -> None:
        super().__init__(operator, place)
        self._report = report
        parallelism, number = place.vertex.parallelism, place.index + 1
        parts = [p for p in (spec.identifier, str(number) if parallelism > 1 else None) if p]
        self._prefix = ":".join(parts) + "> " if parts else ""

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._print, 'show')}({value})")

    def _print(self, value: Any) -> None:
        self._report.lines.append(self._prefix + record_text(self.operator.input_type, value))


class CollectOperator(RuntimeOperator):
    """`execute_and_collect`: records travel to the driver with the epoch's acknowledgements."""

    def __init__(self, operator: Operator, spec: CollectSpec, place: Place, report: Report) -> None:
        super().__init__(operator, place)
        self._report = report
        self._key = key_function(spec.key) if spec.key is not None else None
        self._type = operator.input_type

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._collect, 'collect')}({value})")

    def _collect(self, value: Any) -> None:
        key = self._key(value) if self._key is not None else None
        if self._type is not None:
            value = self._type.collected(self._type.conform([value])[0])
        if self._key is not None:
            value = Row(f0=key, f1=value)
        self._report.records.append(own(value))
