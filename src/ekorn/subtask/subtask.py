"""One subtask of a vertex: opened, run epoch by epoch, snapshotted, closed.

The parts of a subtask have modules of their own: the lifecycle of its operators (`lifecycle.py`), its input
(`epoch_input.py`), the entry of records into the chain (`intake.py`), the flow of watermarks through it
(`time_flow.py`), its output (`outbox.py`) and its snapshots (`capture.py`). `continuous/` runs a subtask without a
pause between epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ekorn.codegen.blame import Blame
from ekorn.codegen.chain_compiler import compile_chain
from ekorn.codegen.key_code import key_function
from ekorn.codegen.record_errors import RecordErrors
from ekorn.columns.columns_type import has_columns
from ekorn.functions.dead_letters import OnRecordError
from ekorn.functions.record_functions import FieldKeySelector
from ekorn.graph.specs import Hash
from ekorn.keygroups import key_group_range
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.epoch import Ack, EpochAck, EpochOrder, SavepointOrder
from ekorn.operators.firings import firing_text
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.sinks.driver_output import DriverOutput
from ekorn.operators.sources.source_head import SourceHead
from ekorn.state.snapshots import SubtaskRestore
from ekorn.storage.file_store import FileStore
from ekorn.subtask.capture import CapturedSubtask, Declined, capture
from ekorn.subtask.epoch_input import ChannelInput, EpochInput, SourceInput
from ekorn.subtask.in_flight import KeyShare, restored_blobs
from ekorn.subtask.intake import Intake, batch_buffer, counts_of
from ekorn.subtask.lifecycle import OperatorLifecycle
from ekorn.subtask.outbox import Emitted, Outbox
from ekorn.subtask.periodic_watermarks import PeriodicWatermarks
from ekorn.subtask.time_flow import TimeFlow
from ekorn.subtask.wire.frames import ReceivedBlob
from ekorn.types.time_bounds import MAX_TIMESTAMP


class Subtask:
    """One parallel instance of a vertex, in one attempt of the job."""

    ack: EpochAck  # the acknowledgement of the last epoch, once its blobs have been taken
    intake: Intake
    time_flow: TimeFlow
    input: EpochInput
    _periodic: PeriodicWatermarks

    def __init__(self, environment: SubtaskEnvironment) -> None:
        self.environment = environment
        self.finished = False
        self._ended_before = False  # restored from a checkpoint that was taken after the input had ended
        settings = environment.graph.settings
        self.driver_output = DriverOutput(
            environment.vertex,
            environment.index,
            part_bytes=settings.blob_bytes,
            max_record_bytes=settings.max_record_bytes,
        )
        self.blame = Blame(environment.vertex, environment.index, firing_text, all_frames=settings.all_frames)
        self.lifecycle = OperatorLifecycle(environment, self.driver_output, self.blame)
        blob_bytes = min(settings.blob_bytes, environment.most_blob_bytes or settings.blob_bytes)
        self.outbox = Outbox(
            environment.graph, environment.vertex, environment.index, self.driver_output, blob_bytes=blob_bytes
        )

    @property
    def operators(self) -> list[RuntimeOperator]:
        return self.lifecycle.operators

    def open(self, restored: SubtaskRestore | None, store: FileStore | None) -> None:
        """Open the operators with their restored state, compile their chain and connect the chain to its input."""
        environment, outbox = self.environment, self.outbox
        graph, vertex = environment.graph, environment.vertex
        self._ended_before = restored is not None and restored.finished
        self.lifecycle.open(restored, store)
        for number, operator in enumerate(self.operators):
            if outbox.has_output:
                operator.relief = outbox.relief
            operator.record_errors = self._record_errors(number, operator)
        routers = outbox.routers(graph, seed=vertex.id * 100_003 + environment.index)
        chain = compile_chain(graph, vertex, self.operators, routers)
        self.blame.compiled = chain.code
        head = self.operators[0]
        buffer = None
        if graph.settings.batch:
            assert environment.scratch is not None, "a slot has a folder for files"
            buffer = batch_buffer(head, environment.scratch, environment.graph.settings.batch_records_in_memory)
        self.intake = Intake(head, chain.loops, buffer, outbox, environment, counts=counts_of(head.operator))
        self.time_flow = TimeFlow(vertex, self.operators, outbox, self.blame)
        self._periodic = PeriodicWatermarks(
            graph.settings, environment.clock, self._emit_periodic_watermarks, continuous=environment.continuous
        )
        parts = environment, self.intake, self.time_flow, outbox
        if isinstance(head, SourceHead):
            self.input = SourceInput(head, *parts, periodic=self._periodic, ended_before=self._ended_before)
        else:
            self.input = ChannelInput(*parts, periodic=self._periodic, first_input=head.first_input)
            if restored is not None and restored.in_flight:
                channels = self.input.channel_ids
                blobs = restored_blobs(restored.in_flight, store, channels=channels, key_share=self._key_share)
                self.input.restore(blobs)

    def _key_share(self, exchange: int) -> KeyShare:
        """Return which records of an exchange belong to this subtask by their keys."""
        graph, vertex = self.environment.graph, self.environment.vertex
        (found,) = (e for e in graph.inputs_of(vertex.id) if e.id == exchange)
        key = vertex.operators[0].key_of(found.input_index)
        if key is None:  # the records are partitioned by a key, and processed without
            assert isinstance(found.partitioning, Hash), "the plan of a restore asks for keys of keyed exchanges"
            key = found.partitioning.key
        own = key_group_range(vertex.max_parallelism, vertex.parallelism, self.environment.index)
        if has_columns(found.type_info):
            from ekorn.subtask.column_key_share import ColumnKeyShare  # which loads PyArrow

            assert isinstance(key.selector, FieldKeySelector), "columns are keyed by their names"
            names = [str(name) for name in key.selector.fields]
            return ColumnKeyShare(key.selector.get_key, vertex.max_parallelism, own, names)
        return KeyShare(key_function(key), vertex.max_parallelism, own)

    def _record_errors(self, number: int, running: RuntimeOperator) -> RecordErrors | None:
        """Return what decides about exceptions of single records; None if each of them fails the job."""
        environment, operator = self.environment, running.operator
        if operator.on_record_error is OnRecordError.FAIL:
            return None
        return RecordErrors(
            self.blame,
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
            self.outbox.send = send
        started = self.environment.clock.monotonic()
        ack = EpochAck(self.environment.vertex.id, self.environment.index, order.number)
        with self.blame.operator():
            if not self.finished:
                self.lifecycle.advance_clock()
                self.lifecycle.set_open_loops(order.open_loops)
                self.lifecycle.begin_epoch(order)
            yield from self.input.read(order, blobs, ack)
            yield from self.finish_if_over()
            if not self.finished:
                self.lifecycle.end_epoch(emits_watermarks=self._periodic.ends_epoch)
                self.lifecycle.advance_clock()
            yield from self.outbox.flush()
            self.take_driver_output(ack)
        self.complete(ack)
        if not self.finished:
            ack.open_loops = self.lifecycle.open_loops()
        ack.busy_ms = (self.environment.clock.monotonic() - started) * 1000
        self.ack = ack

    def _emit_periodic_watermarks(self) -> None:
        """Emit the periodic watermarks of the source and of all operators."""
        if isinstance(self.input, SourceInput):
            self.input.emit_periodic_watermark()
            self.input.advance_ingestion_time()
        self.lifecycle.emit_periodic_watermarks()

    def finish_if_over(self) -> Iterator[Emitted]:
        """Finish after the last record, unless an operator may still get records from a loop or from requests."""
        if not self.input.ended or self.finished:
            return
        may_finish = self.lifecycle.may_finish()
        if not may_finish and not self._ended_before:
            yield from self.outbox.take_full()
            return
        if self.intake.buffers_records:
            yield from self.intake.run_buffered(self.outbox)
            self.time_flow.advance(MAX_TIMESTAMP)
        if not self._ended_before:
            self.lifecycle.finish()
        self.outbox.end(is_drained=self.input.is_drained)
        self.finished = True

    def take_driver_output(self, ack: Ack) -> None:
        """Move the output for the driver that has not left in parts into the acknowledgement."""
        rest = self.driver_output.take_rest()
        ack.lines, ack.collected, ack.output_bytes = rest.lines, rest.collected, self.driver_output.bytes_taken()

    def complete(self, ack: Ack) -> None:
        """Fill in what is known once the epoch has ended, and begin to count for the next one."""
        ack.records_in, self.intake.record_count = self.intake.record_count, 0
        ack.bytes_in, self.intake.byte_count = self.intake.byte_count, 0
        if ack.records_in:
            self.lifecycle.hint_at_undeclared_states()
        ack.records_out, ack.bytes_out = self.outbox.taken()
        ack.finished = self.finished
        ack.watermark = self.input.watermark_ms
        ack.output_watermark = self.time_flow.output_watermark_ms
        ack.ended_ms = self.environment.clock.now_ms()
        ack.next_timer_ms = self.lifecycle.next_timer_ms()
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
            self.operators, self.blame, checkpoint_id=checkpoint_id, triggered_ms=triggered_ms, savepoint=savepoint
        )
        if isinstance(operators, Declined):
            return operators
        sync_ms = (self.environment.clock.monotonic() - started) * 1000
        # A drained source has more to read: the job that starts from the savepoint reads it.
        finished = self.finished and not self.input.is_drained
        return CapturedSubtask(self.environment, checkpoint_id, operators, finished, sync_ms, savepoint)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        self.lifecycle.checkpoint_completed(checkpoint_id)

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.lifecycle.checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        """Close the operators, then raise the first error."""
        try:
            self.lifecycle.close()
        finally:
            if self.blame.compiled is not None:
                self.blame.compiled.release()
