"""One subtask of a vertex: opened, run epoch by epoch, snapshotted, closed.

The parts of a subtask stand in modules of their own: the operators' life (`lifecycle.py`), the input of an epoch
(`epoch_input.py`), the way of records into the chain (`intake.py`), the way of watermarks through it (`time_flow.py`),
the way out (`outbox.py`) and snapshots (`capture.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tamias.codegen.blame import Blame
from tamias.codegen.chain_compiler import compile_chain
from tamias.codegen.record_errors import RecordErrors
from tamias.functions.dead_letters import OnRecordError
from tamias.operators.driver_output import DriverOutput
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.epoch import Ack, EpochOrder, SavepointOrder
from tamias.operators.operator import RuntimeOperator
from tamias.operators.source_head import SourceHead
from tamias.state.snapshots import SubtaskRestore
from tamias.storage.file_store import FileStore
from tamias.subtask.capture import CapturedSubtask, Declined, capture
from tamias.subtask.epoch_input import ChannelInput, EpochInput, SourceInput
from tamias.subtask.intake import Intake, held_in_batch
from tamias.subtask.lifecycle import OperatorLifecycle
from tamias.subtask.outbox import Emitted, Outbox
from tamias.subtask.time_flow import TimeFlow
from tamias.subtask.wire.frames import ReceivedBlob
from tamias.types.time_bounds import MAX_TIMESTAMP


class Subtask:
    """One parallel instance of a vertex, in one attempt of the job."""

    ack: Ack  # of the last epoch, once its blobs have been taken
    intake: Intake
    time_flow: TimeFlow
    _input: EpochInput

    def __init__(self, environment: SubtaskEnvironment) -> None:
        self.environment = environment
        self.finished = False
        self._drained = False  # the input was ended by a request to stop, with more to read
        self._ended_before = False  # restored from a checkpoint that was taken after the input had ended
        settings = environment.graph.settings
        self._driver_output = DriverOutput(
            environment.vertex,
            environment.index,
            part_bytes=settings.blob_bytes,
            max_record_bytes=settings.max_record_bytes,
        )
        self._blame = Blame(environment.vertex, environment.index)
        self._lifecycle = OperatorLifecycle(environment, self._driver_output, self._blame)
        self._outbox = Outbox(environment.graph, environment.vertex, environment.index, self._driver_output)

    @property
    def operators(self) -> list[RuntimeOperator]:
        return self._lifecycle.operators

    def open(self, restored: SubtaskRestore | None, store: FileStore | None) -> None:
        """Open the operators with their restored state, compile their chain and connect the chain to its input."""
        environment, outbox = self.environment, self._outbox
        graph, vertex = environment.graph, environment.vertex
        self._ended_before = restored is not None and restored.finished
        self._lifecycle.open(restored, store)
        for number, operator in enumerate(self.operators):
            if outbox.holds_output:
                operator.relief = outbox.relief
            operator.record_errors = self._record_errors(number, operator)
        routers = outbox.routers(graph, seed=vertex.id * 100_003 + environment.index)
        chain = compile_chain(graph, vertex, self.operators, routers)
        self._blame.compiled = chain.code
        head = self.operators[0]
        held = None
        if graph.settings.batch:
            assert environment.scratch is not None, "a slot has a folder for files"
            held = held_in_batch(head, environment.scratch, environment.graph.settings.batch_records_in_memory)
        self.intake = Intake(head, chain.loops, held, outbox)
        self.time_flow = TimeFlow(vertex, self.operators, outbox, self._blame)
        parts = environment, self.intake, self.time_flow, outbox
        if isinstance(head, SourceHead):
            self._input = SourceInput(head, *parts, ended_before=self._ended_before)
        else:
            self._input = ChannelInput(*parts, first_input=head.first_input)

    def _record_errors(self, number: int, running: RuntimeOperator) -> RecordErrors | None:
        """Return what decides about exceptions of single records; None if each of them fails the job."""
        environment, operator = self.environment, running.operator
        if operator.on_record_error is OnRecordError.FAIL:
            return None
        return RecordErrors(
            self._blame,
            number,
            operator,
            subtask=environment.index,
            limit=environment.graph.settings.record_error_limit,
            clock=environment.clock,
            count=running.metric_group().counter("numRecordErrors").inc,
        )

    def run_epoch(
        self, order: EpochOrder, blobs: Iterable[ReceivedBlob], send: Callable[[Emitted], None] | None = None
    ) -> Iterator[Emitted]:
        """Push one epoch's input through the chain in order; yield what leaves it. Sets `ack` at the end.

        Args:
            send: Called with what leaves while records are being emitted; if None, that is yielded later.
        """
        if send is not None:
            self._outbox.send = send
        started = self.environment.clock.monotonic()
        ack = Ack(self.environment.vertex.id, self.environment.index, order.number)
        self.intake.record_count = 0
        self._drained = self._drained or (order.drain and not self.finished)
        with self._blame.operator():
            if not self.finished:
                self._lifecycle.advance_clock()
                self._lifecycle.begin_epoch(order)
            yield from self._input.read(order, blobs, ack)
            if self._input.ended and not self.finished:
                yield from self._finish_if_over()
            if not self.finished:
                self._lifecycle.end_epoch()
                self._lifecycle.advance_clock()
            yield from self._outbox.flush()
            rest = self._driver_output.take_rest()
            ack.lines, ack.collected, ack.output_bytes = rest.lines, rest.collected, self._driver_output.bytes_taken()
        self._complete(ack)
        ack.busy_ms = (self.environment.clock.monotonic() - started) * 1000
        self.ack = ack

    def _finish_if_over(self) -> Iterator[Emitted]:
        """Finish, unless an operator may still get records: from a feedback loop, or from requests in flight."""
        may_finish = self._lifecycle.may_finish()
        if not may_finish and not self._ended_before:
            yield from self._outbox.take_full()
            return
        if self.intake.holds_records:
            yield from self.intake.run_held(self._outbox)
            self.time_flow.advance(MAX_TIMESTAMP)
        if not self._ended_before:
            self._lifecycle.finish()
        self._outbox.end()
        self.finished = True

    def _complete(self, ack: Ack) -> None:
        """Fill in what is known once the epoch has ended."""
        ack.records_in = self.intake.record_count
        ack.records_out, ack.bytes_out = self._outbox.taken()
        ack.finished = self.finished
        ack.watermark = self._input.watermark_ms
        ack.next_timer_ms = self._lifecycle.next_timer_ms()
        if not self.finished:
            ack.open_loops = self._lifecycle.open_loops()
        ack.accumulators = {name: a.clone() for name, a in self.environment.accumulators.items()}
        ack.metrics = {
            (operator, name): report
            for operator, group in self.environment.metrics.items()
            for name, report in group.reports().items()
        }

    def snapshot(
        self, checkpoint_id: int, savepoint: SavepointOrder | None = None, triggered_ms: int | None = None
    ) -> CapturedSubtask | Declined:
        """Capture the state at the end of the epoch that carries the checkpoint."""
        started = self.environment.clock.monotonic()
        if triggered_ms is None:
            triggered_ms = self.environment.clock.now_ms()
        operators = capture(
            self.operators, self._blame, checkpoint_id=checkpoint_id, triggered_ms=triggered_ms, savepoint=savepoint
        )
        if isinstance(operators, Declined):
            return operators
        sync_ms = (self.environment.clock.monotonic() - started) * 1000
        # A drained source has more to read: the job that starts from the savepoint reads it.
        finished = self.finished and not self._drained
        return CapturedSubtask(self.environment, checkpoint_id, operators, finished, sync_ms, savepoint)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        self._lifecycle.checkpoint_completed(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._lifecycle.checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        """Close the operators, then raise the first error."""
        try:
            self._lifecycle.close()
        finally:
            if self._blame.compiled is not None:
                self._blame.compiled.release()
