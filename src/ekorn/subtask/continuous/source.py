"""A subtask that reads a source and emits the marks of epochs, and the choice of what runs a subtask."""

from __future__ import annotations

from collections import deque

from ekorn.errors import DeploymentError
from ekorn.graph.broadcast_first import awaited_by_sources
from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.operators.sources.source_head import Budget, SourceProgress
from ekorn.state.snapshots import AlignmentStats
from ekorn.subtask.continuous.channels import ContinuousChannels
from ekorn.subtask.continuous.continuous_subtask import NEVER, ContinuousSubtask, SlotServices
from ekorn.subtask.epoch_input import SourceInput
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import ReceivedBlob

__all__ = ["ContinuousSource", "run_continuously"]


class ContinuousSource(ContinuousSubtask):
    """A subtask that reads a source, and emits the mark of each epoch that the driver orders."""

    def __init__(self, subtask: Subtask, slot: SlotServices) -> None:
        super().__init__(subtask, slot)
        assert isinstance(subtask.input, SourceInput)
        self._input = subtask.input
        self._orders: deque[MarkOrder] = deque()
        self._group_watermarks: dict[str, int] = {}
        self._backlog = False
        environment = subtask.environment
        self._vertex = environment.vertex.id
        # Whether nothing is read until the next order. The first orders tell when a source that waits may begin.
        self._is_paused = self._vertex in awaited_by_sources(environment.graph)

    @property
    def has_input(self) -> bool:
        return bool(self._orders)

    def give(self, blob: ReceivedBlob) -> None:
        raise DeploymentError(f"blob {blob.sequence} of {blob.channel} arrived at a source")

    def give_order(self, order: MarkOrder) -> None:
        self._orders.append(order)

    def pause_reading(self) -> None:
        self._is_paused = True

    @property
    def may_read(self) -> bool:
        return not self._input.ended and not self._is_paused and not self.is_full

    def poll(self, max_records: int, max_ms: int, max_bytes: int = 1 << 62) -> SourceProgress:
        """Read what the source has available, up to a limit. All output leaves, unless the source has a backlog."""
        started = self.subtask.environment.clock.monotonic()
        progress = SourceProgress()
        budget = Budget(max_records, max_ms, max_bytes, self._group_watermarks, wait_s=0.0)
        with self.subtask.blame.operator():
            self._send(self._input.poll(budget, progress))
            self._backlog = progress.backlog
            if progress.finished:
                self._input.end()
                self._send(self.subtask.finish_if_over())
            if not progress.backlog:
                self._send(self.subtask.outbox.take_all())
        took_s = self.subtask.environment.clock.monotonic() - started
        self.step_size.measure(progress.records, took_s)
        self._busy_s += took_s
        return progress

    def handle_urgent(self) -> float:
        if self._orders and self._orders[0].overtakes_after_ms is not None:
            self.take()
        return NEVER

    def _take(self) -> None:
        order = self._orders.popleft()
        self._group_watermarks = order.group_watermarks
        self._is_paused = order.pauses_sources or order.suspends or self._vertex in order.waiting
        if not self._input.ended:
            with self.subtask.blame.operator():
                if order.checkpoint_id is not None or order.drain:
                    self._send(self._input.cut(SourceProgress()))
                if order.drain:
                    self._input.drain()
        self._end_epoch(order)

    def _emit_input_watermark(self) -> None:
        if not self._input.ended:
            self._input.emit_periodic_watermark()
            self._input.advance_ingestion_time()

    def _fill(self, ack: MarkAck) -> None:
        if not self._input.ended:
            ack.backlog = self._backlog
            ack.group_watermarks = self._input.group_watermarks()

    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Do nothing: the snapshot of a source is whole from the start."""

    def _alignment_stats(self, order: MarkOrder) -> AlignmentStats:
        return AlignmentStats(self._delay_ms(order))


def run_continuously(subtask: Subtask, slot: SlotServices) -> ContinuousSubtask:
    """Return what runs an open subtask continuously."""
    kind = ContinuousSource if isinstance(subtask.input, SourceInput) else ContinuousChannels
    return kind(subtask, slot)
