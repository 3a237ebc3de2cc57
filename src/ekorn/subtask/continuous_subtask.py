"""What every subtask does where jobs run continuously, and what its slot does for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from ekorn.operators.epoch import Ack, EpochOrder
from ekorn.state.snapshots import AlignmentStats
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.outbox import Emitted
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import EPOCH, ReceivedBlob

__all__ = ["NEVER", "ContinuousSubtask", "Surroundings"]

NEVER = float("inf")


class Surroundings(Protocol):
    """What a slot does for a subtask that runs continuously."""

    def send(self, item: Emitted) -> None:
        """Send what leaves the subtask. Returns at once."""

    def taken(self, blob: ReceivedBlob) -> None:
        """Take note that a blob that arrived is being processed, or is held."""

    def hold(self, blob: ReceivedBlob) -> ReceivedBlob:
        """Keep a blob of a channel that is ahead; return it in the form in which it waits."""

    def record(self, blob: ReceivedBlob) -> ReceivedBlob:
        """Keep a blob that a mark has overtaken; return it in the form in which it waits."""

    def released(self) -> None:
        """Take note that all blobs that were held are processed next."""

    def capture(self, subtask: Subtask, order: EpochOrder) -> CapturedSubtask | None:
        """Capture the subtask's state if the order wants that."""

    def write(self, captured: CapturedSubtask) -> None:
        """Write a snapshot in the background, and report it to the driver."""

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
        self._bounded = [operator for operator in subtask.operators if operator.may_be_full]
        self.gathers = False  # whether `take` leaves output that fills no blob to `flush`, though nothing more waits
        subtask.outbox.send = surroundings.send

    @property
    @abstractmethod
    def has_input(self) -> bool:
        """Whether something waits to be taken."""

    @property
    def is_full(self) -> bool:
        """Whether an operator is to get no records: those that it has wait for other systems."""
        return any(operator.is_full for operator in self._bounded) if self._bounded else False

    @property
    def may_take(self) -> bool:
        """Whether `take` may be called now."""
        return self.has_input

    def count_busy(self, seconds: float) -> None:
        """Count time in which the subtask waited for other systems as time in which it worked."""
        self._busy_s += seconds

    @abstractmethod
    def _take(self) -> None:
        """Take what waits first. Errors of the slot pass as they are; only those of operators are blamed on one."""

    @abstractmethod
    def _emit_input_watermark(self) -> None:
        """Emit the periodic watermark of the input itself, if it has one."""

    @abstractmethod
    def _fill(self, ack: Ack) -> None:
        """Fill in what the input tells the driver."""

    @abstractmethod
    def attend(self) -> float:
        """Do what waits neither for its turn nor for room in the output: let a mark overtake.

        Returns:
            The seconds until something of the kind is due.
        """

    @abstractmethod
    def _alignment_stats(self, order: EpochOrder) -> AlignmentStats:
        """Return how the mark of an order came to this subtask."""

    def take(self) -> None:
        """Take what waits first; send what is full then, and everything once nothing waits any more or is gathered."""
        started = self.subtask.environment.clock.monotonic()
        self._take()
        with self.subtask.blame.operator():
            self._send(self.subtask.finish_if_over())
            outbox, more = self.subtask.outbox, self.has_input or self.gathers
            self._send(outbox.take_full() if more else outbox.take_all())
        self._busy_s += self.subtask.environment.clock.monotonic() - started

    def advance_clock(self) -> None:
        """Fire the processing-time timers that are due, take the answers to requests, and repeat restored requests.

        Called before the first `take` if `next_timer_ms` says that something is due.
        """
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
        captured = self._surroundings.capture(subtask, order)
        if captured is not None:
            self._keep(replace(captured, alignment=self._alignment_stats(order)))
        self._surroundings.acknowledge(ack)

    def _keep(self, captured: CapturedSubtask) -> None:
        """Have a snapshot written."""
        self._surroundings.write(captured)

    @abstractmethod
    def abandon(self, checkpoint_id: int) -> None:
        """Take note that a checkpoint was aborted."""

    def _delay_ms(self, order: EpochOrder) -> float:
        """Return the time since the checkpoint of an order was triggered, by the clocks of two hosts."""
        triggered_ms = order.checkpoint_ms
        return 0.0 if triggered_ms is None else max(0.0, self.subtask.environment.clock.now_ms() - triggered_ms)

    def _send(self, items: Iterable[Emitted]) -> None:
        send = self._surroundings.send
        for item in items:
            send(item)
