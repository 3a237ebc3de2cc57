"""What a source and a subtask with input channels have in common, and what the slot does for both.

A subtask does one thing at a time, on one thread: it takes a blob that arrived, reads a few records of its source,
handles an order, or follows the clock. Records leave as soon as nothing more waits to be taken; none waits for the end
of an epoch. The mark of an epoch begins at the sources, which get the order from the driver, and travels in every
channel. A subtask that has the mark on every channel has processed exactly what belongs to the epoch: it passes the
mark on, captures its state if the epoch carries a checkpoint, and acknowledges. See docs/decisions/0033-continuous.md.

If checkpoints are unaligned, every subtask gets the order as well. It need not wait for the mark, which overtakes what
is in flight (docs/decisions/0039-unaligned-checkpoints.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from ekorn.operators.mark import MarkAck, MarkOrder
from ekorn.operators.sources.source_head import SourceProgress
from ekorn.state.snapshots import AlignmentStats
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.outbox import Emitted
from ekorn.subtask.subtask import Subtask
from ekorn.subtask.wire.frames import EPOCH, ReceivedBlob

__all__ = ["NEVER", "ContinuousSubtask", "SlotServices", "StepSize"]

NEVER = float("inf")
_STEP_S = 0.01
_FIRST_STEP_RECORDS = 256  # before it is known how long a record takes
_GROWTH = 4  # the most by which a step exceeds the one before


class SlotServices(Protocol):
    """What the slot does for one of its subtasks."""

    def send(self, item: Emitted) -> None:
        """Send what leaves the subtask. Returns at once."""

    def taken(self, blob: ReceivedBlob) -> None:
        """Note that a blob has left the queue of arrived blobs: it is processed, deferred or recorded."""

    def defer(self, blob: ReceivedBlob) -> ReceivedBlob:
        """Store a blob of a channel that is ahead; return it in the form in which it waits."""

    def record(self, blob: ReceivedBlob) -> ReceivedBlob:
        """Store a blob that a mark has overtaken; return it in the form in which it waits."""

    def released(self) -> None:
        """Note that all blobs that were deferred or recorded are processed next."""

    def capture(self, subtask: Subtask, order: MarkOrder) -> CapturedSubtask | None:
        """Capture the state of the subtask if the order carries a checkpoint."""

    def write(self, captured: CapturedSubtask) -> None:
        """Write a snapshot in the background, and report it to the driver."""

    def acknowledge(self, ack: MarkAck) -> None:
        """Send the acknowledgement of an epoch to the driver."""


class StepSize:
    """How many records a step takes: as many as the last step has processed in 10 ms, and at least one.

    Timers, orders and requests wait for the end of a step. A step that was slow because the machine was busy makes the
    next one smaller; the steps after that grow again.
    """

    def __init__(self) -> None:
        self.records = _FIRST_STEP_RECORDS

    def measure(self, records: int, took_s: float) -> None:
        """Note how long the records of a step took."""
        if records:
            affordable = int(_STEP_S * records / max(took_s, 1e-9))
            self.records = max(1, min(affordable, _GROWTH * self.records))


class ContinuousSubtask(ABC):
    """Takes the input of a subtask step by step, follows the clock and ends epochs."""

    def __init__(self, subtask: Subtask, slot: SlotServices) -> None:
        self.subtask = subtask
        self._slot = slot
        self._busy_s = 0.0  # time that the subtask has worked since the last mark
        self._blocked_s = 0.0  # time that its output has been full since the last mark
        self._output_full_since: float | None = None
        self._operator_full_since: float | None = None
        self.step_size = StepSize()
        self._suspended = False  # the job stops with the savepoint of the last mark
        self._bounded = [operator for operator in subtask.operators if operator.may_be_full]
        self.gathers = False  # `take` leaves blobs that are not full to `flush`, although no more input waits
        subtask.outbox.send = slot.send

    @property
    @abstractmethod
    def has_input(self) -> bool:
        """Whether input waits to be taken."""

    @property
    def is_full(self) -> bool:
        """Whether an operator accepts no records now, because requests to other systems are pending."""
        return any(operator.is_full for operator in self._bounded) if self._bounded else False

    @property
    def may_take(self) -> bool:
        """Whether `take` may be called now."""
        return self.has_input

    @property
    def may_read(self) -> bool:
        """Whether `poll` may be called now."""
        return False

    @abstractmethod
    def give(self, blob: ReceivedBlob) -> None:
        """Queue a blob that arrived. Thread-safe."""

    @abstractmethod
    def give_order(self, order: MarkOrder) -> None:
        """Queue the order of an epoch. Thread-safe."""

    @abstractmethod
    def pause_reading(self) -> None:
        """Read nothing from the source until the next order. Thread-safe."""

    def poll(self, max_records: int, max_ms: int, max_bytes: int = 1 << 62) -> SourceProgress:
        """Read what the source has available, up to a limit. Called only if `may_read`."""
        raise AssertionError("a subtask without a source reads nothing")

    def measure(self, now: float, *, output_is_full: bool) -> None:
        """Count the time since the last call: as blocked if the output was full, as busy if an operator was full."""
        if output_is_full:
            if self._output_full_since is None:
                self._output_full_since = now
            return
        if self._output_full_since is not None:
            self._blocked_s += now - self._output_full_since
            self._output_full_since = None
        if self._operator_full_since is not None:
            self._busy_s += now - self._operator_full_since
        self._operator_full_since = now if self.is_full else None

    @abstractmethod
    def _take(self) -> None:
        """Take the oldest input. Errors of operators name the operator; errors of the slot are raised as they are."""

    @abstractmethod
    def _emit_input_watermark(self) -> None:
        """Emit the periodic watermark of the input itself, if it has one."""

    @abstractmethod
    def _fill(self, ack: MarkAck) -> None:
        """Fill in the fields of an acknowledgement that are about the input."""

    @abstractmethod
    def handle_urgent(self) -> float:
        """Do what waits neither for earlier input nor for room in the output: let a mark overtake.

        Returns:
            The seconds until a mark is due to overtake; `NEVER` if none is.
        """

    @abstractmethod
    def _alignment_stats(self, order: MarkOrder) -> AlignmentStats:
        """Return how long the mark of an order took to reach this subtask, and to be aligned."""

    def take(self) -> None:
        """Take the oldest input, and send output.

        Blobs that are full leave. So does all other output, unless more input waits or output is gathered.
        """
        started = self.subtask.environment.clock.monotonic()
        self._take()
        with self.subtask.blame.operator():
            self._send(self.subtask.finish_if_over())
            outbox, more = self.subtask.outbox, self.has_input or self.gathers
            self._send(outbox.take_full() if more else outbox.take_all())
        self._busy_s += self.subtask.environment.clock.monotonic() - started

    def advance_clock(self) -> None:
        """Fire the processing-time timers that are due, take the answers to requests, and repeat restored requests.

        Called before the first `take` if `next_timer_ms` is in the past.
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
        """Send all output that waits."""
        with self.subtask.blame.operator():
            self._send(self.subtask.outbox.take_all())

    def next_timer_ms(self) -> int | None:
        """Return the earliest processing time at which an operator has something to do; None: there is none."""
        return None if self.subtask.finished or self._suspended else self.subtask.lifecycle.next_timer_ms()

    def _end_epoch(self, order: MarkOrder) -> None:
        """End an epoch: all input before its mark has been processed, and none behind it."""
        subtask = self.subtask
        ack = MarkAck(subtask.environment.vertex.id, subtask.environment.index, order.number)
        with subtask.blame.operator():
            self._send(subtask.finish_if_over())
            if not subtask.finished:
                subtask.lifecycle.advance_clock()
                subtask.lifecycle.begin_epoch(order)
                subtask.lifecycle.end_epoch(emits_watermarks=False)
            subtask.outbox.mark((EPOCH, order))
            self._send(subtask.outbox.take_all())  # the mark is the last frame of its blob, so receivers can align
            subtask.take_driver_output(ack)
        subtask.complete(ack)
        self._fill(ack)
        ack.busy_ms, self._busy_s = self._busy_s * 1000, 0.0
        ack.blocked_ms, self._blocked_s = self._blocked_s * 1000, 0.0
        self._suspended = order.suspends
        captured = self._slot.capture(subtask, order)
        if captured is not None:
            self._keep(replace(captured, alignment=self._alignment_stats(order)))
        self._slot.acknowledge(ack)

    def _keep(self, captured: CapturedSubtask) -> None:
        """Have a snapshot written."""
        self._slot.write(captured)

    @abstractmethod
    def checkpoint_aborted(self, checkpoint_id: int) -> None:
        """Stop recording blobs for a checkpoint that was aborted."""

    def _delay_ms(self, order: MarkOrder) -> float:
        """Return the time since the checkpoint of an order was triggered, by the clocks of two hosts."""
        triggered_ms = order.checkpoint_ms
        return 0.0 if triggered_ms is None else max(0.0, self.subtask.environment.clock.now_ms() - triggered_ms)

    def _send(self, items: Iterable[Emitted]) -> None:
        send = self._slot.send
        for item in items:
            send(item)
