"""The life of a subtask where jobs run continuously: an epoch ends where its mark stands in the stream.

The subtask takes one thing at a time, on one thread: a blob that arrived, a few records of its source, an order, the
clock. Records leave as soon as nothing more waits to be taken; none waits for the end of an epoch. The mark of an epoch
begins at the sources, which get the order from the driver, and travels in every channel. A subtask that has it on every
channel has processed exactly what belongs to the epoch: it passes the mark on, captures its state if the epoch carries
a checkpoint, and acknowledges. See docs/decisions/0033-continuous.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from tamias.errors import DeploymentError
from tamias.operators.epoch import Ack, EpochOrder
from tamias.operators.source_head import Budget, SourceProgress
from tamias.subtask.alignment import Alignment
from tamias.subtask.epoch_input import ChannelInput, SourceInput
from tamias.subtask.outbox import Emitted
from tamias.subtask.subtask import Subtask
from tamias.subtask.wire.frames import EPOCH, ReceivedBlob

__all__ = ["ContinuousChannels", "ContinuousSource", "ContinuousSubtask", "Surroundings", "run_continuously"]


class Surroundings(Protocol):
    """What a slot does for a subtask that runs continuously."""

    def send(self, item: Emitted) -> None:
        """Send what leaves the subtask. Returns at once."""

    def taken(self, blob: ReceivedBlob) -> None:
        """Take note that a blob that arrived is being processed, or is held."""

    def hold(self, blob: ReceivedBlob) -> ReceivedBlob:
        """Keep a blob of a channel that is ahead; return it in the form in which it waits."""

    def released(self) -> None:
        """Take note that all blobs that were held are processed next."""

    def capture(self, subtask: Subtask, order: EpochOrder) -> None:
        """Capture the subtask's state if the order wants that."""

    def acknowledge(self, ack: Ack) -> None:
        """Tell the driver that the subtask's part of an epoch has ended."""


class ContinuousSubtask(ABC):
    """What every subtask does: take its input in turns, follow the clock, end epochs."""

    def __init__(self, subtask: Subtask, surroundings: Surroundings) -> None:
        self.subtask = subtask
        self._surroundings = surroundings
        self._busy_s = 0.0  # since the last mark
        self.blocked_s = 0.0  # how long the output was full since the last mark
        self._suspended = False  # the job stops with what the last mark has saved
        subtask.outbox.send = surroundings.send

    @property
    @abstractmethod
    def has_input(self) -> bool:
        """Whether something waits to be taken."""

    @abstractmethod
    def _take(self) -> None:
        """Take what waits first. Errors of the slot pass as they are; only those of operators are blamed on one."""

    @abstractmethod
    def _emit_input_watermark(self) -> None:
        """Emit the periodic watermark of the input itself, if it has one."""

    @abstractmethod
    def _fill(self, ack: Ack) -> None:
        """Fill in what the input tells the driver."""

    def take(self) -> None:
        """Take what waits first; send what is full then, and everything once nothing waits any more."""
        started = self.subtask.environment.clock.monotonic()
        self._take()
        with self.subtask.blame.operator():
            self._send(self.subtask.finish_if_over())
            self._send(self.subtask.outbox.take_full() if self.has_input else self.subtask.outbox.take_all())
        self._busy_s += self.subtask.environment.clock.monotonic() - started

    def advance_clock(self) -> None:
        """Fire the processing-time timers that are due, and take the answers to requests. Called once before `take`."""
        if self.subtask.finished or self._suspended:
            return
        with self.subtask.blame.operator():
            self.subtask.lifecycle.advance_clock()
            self._send(self.subtask.finish_if_over())

    def emit_periodic_watermarks(self) -> None:
        """Emit the periodic watermarks of all operators."""
        if self.subtask.finished or self._suspended:
            return
        with self.subtask.blame.operator():
            self._emit_input_watermark()
            self.subtask.lifecycle.emit_periodic_watermarks()

    def flush(self) -> None:
        """Send everything that has not left."""
        with self.subtask.blame.operator():
            self._send(self.subtask.outbox.take_all())

    def next_timer_ms(self) -> int | None:
        """Return the earliest processing time at which an operator has something to do."""
        return None if self.subtask.finished or self._suspended else self.subtask.lifecycle.next_timer_ms()

    def _end_epoch(self, order: EpochOrder) -> None:
        """Complete an epoch: everything before its mark has been processed, and nothing behind it."""
        subtask = self.subtask
        ack = Ack(subtask.environment.vertex.id, subtask.environment.index, order.number)
        with subtask.blame.operator():
            self._send(subtask.finish_if_over())
            if not subtask.finished:
                subtask.lifecycle.advance_clock()
                subtask.lifecycle.begin_epoch(order)
                subtask.lifecycle.end_epoch(emits_watermarks=False)
            subtask.outbox.mark((EPOCH, order))
            self._send(subtask.outbox.take_all())  # the mark is the last frame of its blob; the receivers can align
            subtask.take_driver_output(ack)
        subtask.complete(ack)
        self._fill(ack)
        ack.busy_ms, self._busy_s = self._busy_s * 1000, 0.0
        ack.blocked_ms, self.blocked_s = self.blocked_s * 1000, 0.0
        self._suspended = order.suspends
        self._surroundings.capture(subtask, order)
        self._surroundings.acknowledge(ack)

    def _send(self, items: Iterable[Emitted]) -> None:
        send = self._surroundings.send
        for item in items:
            send(item)


class ContinuousChannels(ContinuousSubtask):
    """A subtask that reads the blobs of other subtasks. Blobs of a channel that is ahead wait for the others' marks.

    One order is on its way at a time, so a channel has at most one mark more than another.
    """

    def __init__(self, subtask: Subtask, surroundings: Surroundings) -> None:
        super().__init__(subtask, surroundings)
        assert isinstance(subtask.input, ChannelInput)
        self._input = subtask.input
        self._alignment = Alignment(self._input.channel_ids)
        # Flink: AT_LEAST_ONCE does not align. Records behind the mark of a channel that is ahead are in the snapshot
        # already, and count twice after a failure.
        self._aligns = not subtask.environment.graph.settings.releases_at_once
        self._sequences = dict.fromkeys(self._input.channel_ids, 0)
        self._arrived: deque[ReceivedBlob] = deque()
        self._aligning_since: float | None = None
        self._aligned_s, self._held_blobs = 0.0, 0  # in the last alignment
        self._waiting: deque[ReceivedBlob] = deque()  # of channels that are ahead, in the order of their arrival
        self._released: deque[ReceivedBlob] = deque()  # those that waited for the last mark; taken before new ones

    @property
    def has_input(self) -> bool:
        return bool(self._arrived or self._released)

    def give(self, blob: ReceivedBlob) -> None:
        """Let a blob wait for its turn. Thread-safe."""
        self._arrived.append(blob)

    def take(self) -> None:
        if not self._released:
            self._check_next(self._arrived[0])
        super().take()

    def _check_next(self, blob: ReceivedBlob) -> None:
        """Check that no blob of a channel is missing: Spark's shuffle carries each once, in order."""
        expected = self._sequences[blob.channel]
        if blob.sequence != expected:
            raise DeploymentError(f"blob {blob.sequence} of {blob.channel} came in place of blob {expected}")
        self._sequences[blob.channel] = expected + 1

    def _take(self) -> None:
        if self._released:
            blob = self._released.popleft()
        else:
            blob = self._arrived.popleft()
            self._surroundings.taken(blob)
        channel = blob.channel
        if self._aligns and self._alignment.is_ahead(channel):
            self._held_blobs += 1
            self._waiting.append(self._surroundings.hold(blob))
            return
        with self.subtask.blame.operator():
            order = self._input.take(blob)
        if order is None:
            return
        now = self.subtask.environment.clock.monotonic()
        if self._aligning_since is None:
            self._aligning_since = now
        if self._alignment.arrive(channel):
            self._aligned_s, self._aligning_since = now - self._aligning_since, None
            self._input.warn_if_held()
            self._end_epoch(order)
            self._released.extendleft(reversed(self._waiting))  # each channel stays in its own order
            self._waiting.clear()
            self._surroundings.released()

    def _emit_input_watermark(self) -> None:
        """Do nothing: watermarks come with the blobs."""

    def _fill(self, ack: Ack) -> None:
        ack.aligned_ms, ack.held_blobs, self._held_blobs = self._aligned_s * 1000, self._held_blobs, 0


class ContinuousSource(ContinuousSubtask):
    """A subtask that reads a source, and puts the marks into the stream when the driver orders them."""

    def __init__(self, subtask: Subtask, surroundings: Surroundings) -> None:
        super().__init__(subtask, surroundings)
        assert isinstance(subtask.input, SourceInput)
        self._input = subtask.input
        self._orders: deque[EpochOrder] = deque()
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
        """Whether the source may have more to read."""
        return not self._input.ended and not self._is_held

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
        self._busy_s += self.subtask.environment.clock.monotonic() - started
        return progress

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


def run_continuously(subtask: Subtask, surroundings: Surroundings) -> ContinuousChannels | ContinuousSource:
    """Return what runs an open subtask continuously."""
    kind = ContinuousSource if isinstance(subtask.input, SourceInput) else ContinuousChannels
    return kind(subtask, surroundings)
