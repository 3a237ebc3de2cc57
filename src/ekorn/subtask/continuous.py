"""The life of a subtask where jobs run continuously: an epoch ends where its mark stands in the stream.

The subtask takes one thing at a time, on one thread: a blob that arrived, a few records of its source, an order, the
clock. Records leave as soon as nothing more waits to be taken; none waits for the end of an epoch. The mark of an epoch
begins at the sources, which get the order from the driver, and travels in every channel. A subtask that has it on every
channel has processed exactly what belongs to the epoch: it passes the mark on, captures its state if the epoch carries
a checkpoint, and acknowledges. See docs/decisions/0033-continuous.md.

Where checkpoints are unaligned, every subtask gets the order as well, and need not wait for the mark: the mark
overtakes what is on its way (docs/decisions/0039-unaligned-checkpoints.md).
"""

from __future__ import annotations

from collections import deque

from ekorn.operators.epoch import Ack, EpochOrder
from ekorn.operators.sources.source_head import Budget, SourceProgress
from ekorn.state.snapshots import AlignmentStats
from ekorn.subtask.continuous_channels import ContinuousChannels
from ekorn.subtask.continuous_subtask import NEVER, ContinuousSubtask, Surroundings
from ekorn.subtask.epoch_input import SourceInput
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.turn_length import TurnLength

__all__ = ["ContinuousChannels", "ContinuousSource", "ContinuousSubtask", "Surroundings", "run_continuously"]


class ContinuousSource(ContinuousSubtask):
    """A subtask that reads a source, and puts the marks into the stream when the driver orders them."""

    def __init__(self, subtask: Subtask, surroundings: Surroundings) -> None:
        super().__init__(subtask, surroundings)
        assert isinstance(subtask.input, SourceInput)
        self._input = subtask.input
        self._orders: deque[EpochOrder] = deque()
        self.turn = TurnLength()
        self._group_watermarks: dict[str, int] = {}
        self._backlog = False
        self._is_held = False  # nothing is read until the next order

    @property
    def has_input(self) -> bool:
        return bool(self._orders)

    def give(self, order: EpochOrder) -> None:
        """Let an order wait for its turn. Thread-safe."""
        self._orders.append(order)

    def hold(self) -> None:
        """Read nothing until the next order. Thread-safe."""
        self._is_held = True

    @property
    def may_read(self) -> bool:
        """Whether the source may have more to read, and the operators behind it take it."""
        return not self._input.ended and not self._is_held and not self.is_full

    def poll(self, max_records: int, max_ms: int, max_bytes: int = 1 << 62) -> SourceProgress:
        """Read what is available, up to a limit. What was read leaves, unless there is more to read at once."""
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
        self.turn.measure(progress.records, took_s)
        self._busy_s += took_s
        return progress

    def attend(self) -> float:
        if self._orders and self._orders[0].overtakes_after_ms is not None:
            self.take()
        return NEVER

    def _take(self) -> None:
        order = self._orders.popleft()
        self._group_watermarks = order.group_watermarks
        self._is_held = order.holds_sources or order.suspends
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

    def _fill(self, ack: Ack) -> None:
        if not self._input.ended:
            ack.backlog = self._backlog
            ack.group_watermarks = self._input.group_watermarks()

    def abandon(self, checkpoint_id: int) -> None:
        """Do nothing: the snapshot of a source is whole from the start."""

    def _alignment_stats(self, order: EpochOrder) -> AlignmentStats:
        return AlignmentStats(self._delay_ms(order))


def run_continuously(subtask: Subtask, surroundings: Surroundings) -> ContinuousChannels | ContinuousSource:
    """Return what runs an open subtask continuously."""
    kind = ContinuousSource if isinstance(subtask.input, SourceInput) else ContinuousChannels
    return kind(subtask, surroundings)
