"""Sinks with transactions: one is open, prepared ones wait for their checkpoint, a restart commits or aborts all."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import preview
from ekorn.faults import point
from ekorn.functions.sink_contract import TwoPhaseCommitSinkFunction
from ekorn.functions.state.state_descriptors import ListStateDescriptor
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import SinkFunctionSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.sinks.sink_operators import SinkFunctionOperator

log = logging.getLogger(__name__)

# One element per subtask, {"prepared": [(checkpoint, begun, transaction), ...], "open": (begun, transaction) or None,
# "context": ...}. After a change of parallelism another subtask may settle the transactions of this one.
_TRANSACTIONS = ListStateDescriptor("_transactions")


class _Prepared(NamedTuple):
    """A transaction that waits for its checkpoint. Checkpoints hold it as a plain tuple."""

    checkpoint_id: int
    begun_ms: int
    transaction: Any


class TwoPhaseOperator(SinkFunctionOperator):
    """A `TwoPhaseCommitSinkFunction`: one open transaction, and prepared ones that wait for their checkpoint."""

    _function: TwoPhaseCommitSinkFunction[Any, Any]

    def __init__(self, operator: Operator, spec: SinkFunctionSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._waiting: list[_Prepared] = []  # oldest first
        self._open: Any = None
        self._begun_ms = 0
        self._is_open = False
        self._wrote = False  # whether records were written to the open transaction in this epoch
        self._ended = False  # whether the input has ended
        settings = environment.graph.settings
        self._checkpointing = settings.checkpointing
        self._at_once = settings.checkpointing and settings.releases_at_once

    # ----------------------------------------------------------------------------------------------- the start

    def initialize(self) -> None:
        super().initialize()
        function = self._function
        function._user_context = None
        for saved in self.states.get_list_state(_TRANSACTIONS).get():
            self._settle(saved)
        if function._user_context is None:
            function._user_context = function.initialize_user_context()

    def _settle(self, saved: dict[str, Any]) -> None:
        """Commit the transactions that a subtask had prepared, and abort the one that it had open."""
        function, handled = self._function, []
        function._user_context = saved["context"]
        for _, begun_ms, transaction in saved["prepared"]:
            point("sink-recover", self.environment.index)
            self._recover(transaction, begun_ms)
            handled.append(transaction)
        if saved["open"] is not None:
            function.recover_and_abort(saved["open"][1])
            handled.append(saved["open"][1])
        if function._user_context is not None:
            function.finish_recovering_context(handled)

    def _recover(self, transaction: Any, begun_ms: int) -> None:
        function, timeout_ms = self._function, self._function._transaction_timeout_ms
        self._warn_if_late(transaction, begun_ms)
        try:
            function.recover_and_commit(transaction)
        except Exception:
            elapsed_ms = self.environment.clock.now_ms() - begun_ms
            if not function._ignores_late_failures or timeout_ms is None or elapsed_ms <= timeout_ms:
                raise
            log.exception(
                "%s: transaction %s could not be committed %d ms after it was begun, later than its timeout of %d ms; "
                "what was written in it is lost",
                self.environment.name,
                preview(transaction),
                elapsed_ms,
                timeout_ms,
            )

    def open(self) -> None:
        super().open()
        self._begin()

    def _begin(self) -> None:
        self._open, self._begun_ms = self._function.begin_transaction(), self.environment.clock.now_ms()
        self._is_open, self._wrote = True, False

    # ------------------------------------------------------------------------------------------------- records

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        context, sink = code.bind(self._context, "context"), code.bind(self, "sink")
        code.line(f"{context}.time = {time}")
        code.line(f"{code.bind(self._invoke, 'invoke')}({sink}._open, {value}, {context})")
        if self._at_once:
            code.line(f"{sink}._wrote = True")

    def end_epoch(self) -> None:
        if self._at_once and self._wrote:
            self._release()
            self._begin()

    def finish(self) -> None:
        super().finish()
        self._function.finish_processing(self._open)
        self._ended = True
        # The waiting transactions were prepared for a savepoint, and savepoints commit nothing.
        if not self._checkpointing:
            self._commit_up_to(None)
        if not self._checkpointing or self._at_once:
            self._release()

    def _release(self) -> None:
        """Prepare and commit the open transaction at once."""
        self._function.pre_commit(self._open)
        self._commit(self._begun_ms, self._open)
        self._open, self._is_open = None, False

    # ---------------------------------------------------------------------------------------------- checkpoints

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        if self._is_open and not self._at_once:
            self._function.pre_commit(self._open)
            self._waiting.append(_Prepared(checkpoint_id, self._begun_ms, self._open))
            self._open, self._is_open = None, False
            if not self._ended:
                self._begin()
        # A transaction that is released at once must not be in a checkpoint: a restore would abort it after its commit.
        is_known = self._is_open and not self._at_once
        saved = {
            "prepared": [tuple(prepared) for prepared in self._waiting],
            "open": (self._begun_ms, self._open) if is_known else None,
            "context": self._function.get_user_context(),
        }
        self.states.get_list_state(_TRANSACTIONS).update([saved])

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        super().checkpoint_completed(checkpoint_id)
        self._commit_up_to(checkpoint_id)

    def _commit_up_to(self, checkpoint_id: int | None) -> None:
        while self._waiting and (checkpoint_id is None or self._waiting[0].checkpoint_id <= checkpoint_id):
            self._commit(self._waiting[0].begun_ms, self._waiting[0].transaction)
            del self._waiting[0]

    def _commit(self, begun_ms: int, transaction: Any) -> None:
        self._warn_if_late(transaction, begun_ms)
        point("sink-commit", self.environment.index)
        self._function.commit(transaction)
        point("sink-committed", self.environment.index)

    def _warn_if_late(self, transaction: Any, begun_ms: int) -> None:
        timeout_ms, ratio = self._function._transaction_timeout_ms, self._function._warning_ratio
        elapsed_ms = self.environment.clock.now_ms() - begun_ms
        if timeout_ms is not None and ratio is not None and elapsed_ms > timeout_ms * ratio:
            log.warning(
                "%s: transaction %s is %d ms old, its timeout is %d ms",
                self.environment.name,
                preview(transaction),
                elapsed_ms,
                timeout_ms,
            )

    def close(self) -> None:
        # Prepared transactions belong to a checkpoint that may still be restored: only the open one is aborted.
        if self._is_open:
            self._function.abort(self._open)
            self._open, self._is_open = None, False
        super().close()
