"""Sinks with one commit per checkpoint for all subtasks: writers, and one committer behind them.

A writer prepares its output at the end of the epoch that carries a checkpoint, and sends a description of it to the
committer, which receives the description in the same epoch. The committer's part of the checkpoint therefore holds the
output of all writers. When the checkpoint is complete, the committer makes all of it visible at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.columns.columns_type import has_columns
from ekorn.faults import point
from ekorn.functions.sink_contract import CommitId, GloballyCommittedSink
from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import GlobalCommitterSpec, PreparingWriterSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import SubtaskOrder
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.sinks.sink_operators import generate_write, sink_for, writer_context

_WRITERS = ListStateDescriptor("_writers")
_GLOBAL_COMMITS = ListStateDescriptor("_global_commits")


class PreparingWriterOperator(RuntimeOperator):
    """The writer of a `GloballyCommittedSink`: it emits descriptions of the output it has prepared."""

    needs_out = True

    def __init__(self, operator: Operator, spec: PreparingWriterSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._sink = sink_for(spec.sink, operator)
        self.handles_record_errors = has_columns(operator.input_type)
        self._prepares = False  # whether output is prepared at the end of this epoch

    def initialize(self) -> None:
        super().initialize()
        at_once = self.environment.graph.settings.releases_at_once
        context = writer_context(self.environment, self.operator, exactly_once=not at_once)
        self._writer = self._sink.create_writer(context, list(self.states.get_list_state(_WRITERS).get()))

    def begin_epoch(self, order: SubtaskOrder) -> None:
        self._prepares = order.checkpoint_id is not None

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_write(code, value, time, operator=self, writer=self._writer)

    def end_epoch(self) -> None:
        self._writer.end_epoch()
        if self._prepares:
            self._send()

    def finish(self) -> None:
        self._writer.finish()
        self._send()

    def _send(self) -> None:
        for committable in self._writer.prepare_commit():
            self.out(committable, None)

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        self.states.get_list_state(_WRITERS).update(list(self._writer.snapshot_state()))

    def close(self) -> None:
        writer = getattr(self, "_writer", None)
        if writer is not None:
            writer.close()
        super().close()


class _Pending(NamedTuple):
    """A commit that waits for its checkpoint. Checkpoints hold it as a plain tuple."""

    checkpoint_id: int
    lineage: str
    number: int
    committables: list[Any]


class GlobalCommitterOperator(RuntimeOperator):
    """The committer of a `GloballyCommittedSink`: one subtask, one commit per checkpoint."""

    def __init__(self, operator: Operator, spec: GlobalCommitterSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        self._sink: GloballyCommittedSink[Any] = spec.sink
        self._committer = self._sink.create_global_committer()
        # Numbers begin again with every instance, under a new name. A job that goes back to an older checkpoint would
        # otherwise use numbers again, for other output.
        self._lineage = self._committer.new_lineage()
        self._number = 0
        self._received: list[Any] = []  # committables received since the last snapshot
        self._waiting: list[_Pending] = []  # oldest first
        settings = environment.graph.settings
        self._checkpointing = settings.checkpointing
        self._at_once = settings.checkpointing and settings.releases_at_once

    def initialize(self) -> None:
        super().initialize()
        for saved in self.states.get_list_state(_GLOBAL_COMMITS).get():
            point("sink-recover", self.environment.index)
            self._commit(_Pending(*saved))

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self, 'committer')}._received.append({value})")

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        self._gather(checkpoint_id)
        if self._at_once:
            self._commit_up_to(checkpoint_id)
        self.states.get_list_state(_GLOBAL_COMMITS).update([tuple(pending) for pending in self._waiting])

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        super().checkpoint_completed(checkpoint_id)
        self._commit_up_to(checkpoint_id)

    def finish(self) -> None:
        if not self._checkpointing:
            # The waiting commits were prepared for a savepoint, and savepoints commit nothing.
            self._gather(0)
            self._commit_up_to(None)

    def _gather(self, checkpoint_id: int) -> None:
        if self._received:
            self._number += 1
            self._waiting.append(_Pending(checkpoint_id, self._lineage, self._number, self._received))
            self._received = []

    def _commit_up_to(self, checkpoint_id: int | None) -> None:
        while self._waiting and (checkpoint_id is None or self._waiting[0].checkpoint_id <= checkpoint_id):
            self._commit(self._waiting[0])
            del self._waiting[0]

    def _commit(self, pending: _Pending) -> None:
        point("sink-commit", self.environment.index)
        self._committer.commit(CommitId(pending.lineage, pending.number), pending.committables)
        point("sink-committed", self.environment.index)

    def close(self) -> None:
        self._committer.close()
        super().close()
