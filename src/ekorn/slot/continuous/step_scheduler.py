"""Decides what the thread of a slot does next: times and flags in, one action out. Pure.

`StepScheduler` chooses which subtask of the slot gets the next step, or that the thread waits. `SubtaskScheduler`
chooses what a subtask does in its step. The mailbox and the runners of its subtasks perform the actions and tell the
outcome.

The thread goes through its subtasks in rounds. A subtask with a backlog keeps the thread for a time slice, because each
change of subtasks evicts the processor's caches (docs/decisions/0050-turns-under-backlog.md). The slice ends early if
an order, a request or the clock of a subtask waits. The thread sleeps after a round in which no subtask had work.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ekorn.graph.addresses import SubtaskId

__all__ = [
    "LONGEST_WAIT_S",
    "EmitWatermarks",
    "FireTimers",
    "Flush",
    "Poll",
    "RunStep",
    "StepScheduler",
    "SubtaskScheduler",
    "TakeInput",
    "Wait",
    "Yield",
]

LONGEST_WAIT_S = 0.5
_NEVER = float("inf")
_TIME_SLICE_S = 0.025  # how long a subtask with a backlog keeps the thread
_POLL_INTERVAL_S = 0.004  # between two polls of a source without a backlog: records of that time leave together
_GATHER_S = 0.001  # output of this time after a flush leaves together, because Spark's cost is per blob
_TIMER_INTERVAL_S = 0.001  # between two looks at the timers of a subtask, so that due timers leave time for records


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is due for this time, unless something arrives."""

    seconds: float


# ------------------------------------------------------------------------------------------------- steps of the slot


@dataclass(frozen=True, slots=True)
class RunStep:
    """Run a step of a subtask.

    Attributes:
        subtask: The subtask.
        continues: Whether it had the step before, too. If so, readers of state are answered first.
    """

    subtask: SubtaskId
    continues: bool


@dataclass(frozen=True, slots=True)
class Yield:
    """Let requests of the driver run, then begin the next round."""


_YIELD = Yield()


class StepScheduler:
    """Chooses the subtask that gets the next step.

    >>> scheduler = StepScheduler()
    >>> scheduler.set_subtasks([SubtaskId(0, 0)])
    >>> scheduler.next(1.0, orders_given=0, request_waits=False)
    RunStep(subtask=SubtaskId(vertex=0, subtask=0), continues=False)
    >>> scheduler.stepped(wait_s=0.25, due_at=1.25)
    >>> scheduler.next(1.0, orders_given=0, request_waits=False)
    Wait(seconds=0.25)
    """

    def __init__(self) -> None:
        self._due_at: dict[SubtaskId, float] = {}  # when the clock of a subtask is due, as of its last step
        self._first_steps: list[RunStep] = []
        self._further_steps: list[RunStep] = []
        self._position = -1  # index of the subtask that had the last step; -1: a round begins
        self._has_worked = False  # the last step did something
        self._slice_ends_at = 0.0
        self._wait_s = LONGEST_WAIT_S  # after this round
        self._orders_seen = 0  # orders given before this round
        self._hurries = False  # every subtask gets one step in this round

    def set_subtasks(self, subtasks: Iterable[SubtaskId]) -> None:
        """Schedule these subtasks from now on, in this order. A new round begins."""
        self._due_at = {subtask: self._due_at.get(subtask, _NEVER) for subtask in subtasks}
        self._first_steps = [RunStep(subtask, continues=False) for subtask in self._due_at]
        self._further_steps = [RunStep(subtask, continues=True) for subtask in self._due_at]
        self._position, self._has_worked = -1, False

    def next(self, now: float, *, orders_given: int, request_waits: bool) -> RunStep | Yield | Wait:
        """Return the next action of the thread. `stepped` is called after each step.

        Args:
            now: The monotonic time.
            orders_given: The number of orders that the slot has received.
            request_waits: Whether a request of the driver waits for the end of the round.
        """
        if self._has_worked and not (
            self._hurries
            or orders_given != self._orders_seen
            or request_waits
            or now >= self._slice_ends_at
            or min(self._due_at.values()) <= now
        ):
            return self._further_steps[self._position]
        if self._position < 0:
            # After an order every subtask gets one step, in the round in which it came and in the next one.
            self._hurries, self._orders_seen = orders_given != self._orders_seen, orders_given
            self._wait_s = LONGEST_WAIT_S
        self._has_worked = False
        self._position += 1
        if self._position < len(self._first_steps):
            self._slice_ends_at = now + _TIME_SLICE_S
            return self._first_steps[self._position]
        self._position = -1
        # After work in a round, subtasks that were asked before that work may have something to do.
        return Wait(self._wait_s) if self._wait_s > 0 else _YIELD

    def stepped(self, wait_s: float, due_at: float) -> None:
        """Take the outcome of a step.

        Args:
            wait_s: How long the subtask has nothing to do; 0 if it has worked.
            due_at: When its clock is due: a timer, a periodic watermark or a mark that overtakes.
        """
        step = self._first_steps[self._position]
        self._due_at[step.subtask] = due_at
        self._has_worked = wait_s <= 0
        self._wait_s = min(self._wait_s, wait_s)


# ----------------------------------------------------------------------------------------------- a step of a subtask


@dataclass(frozen=True, slots=True)
class EmitWatermarks:
    """Emit the periodic watermarks, and send all output."""


@dataclass(frozen=True, slots=True)
class FireTimers:
    """Fire the processing-time timers that are due, and send all output."""


@dataclass(frozen=True, slots=True)
class TakeInput:
    """Take the oldest input: a blob, a part of one, or an order. The step ends with it.

    Attributes:
        gathers: Whether output waits for more, although no more input may wait.
        flushes: Whether output leaves that would wait: for more input, or because it is gathered.
    """

    gathers: bool
    flushes: bool


@dataclass(frozen=True, slots=True)
class Flush:
    """Send all output."""


@dataclass(frozen=True, slots=True)
class Poll:
    """Read what the source has available. The step ends with it if the source has a backlog or has finished.

    Attributes:
        flushes: Whether output leaves although the source has a backlog.
    """

    flushes: bool


_EMIT_WATERMARKS, _FIRE_TIMERS, _FLUSH = EmitWatermarks(), FireTimers(), Flush()
_TAKE = {(gathers, flushes): TakeInput(gathers, flushes) for gathers in (False, True) for flushes in (False, True)}
_POLL = {flushes: Poll(flushes) for flushes in (False, True)}


class SubtaskScheduler:
    """Chooses what a subtask does in its step.

    Args:
        watermark_interval_s: The interval of periodic watermarks; 0: there are none.
        buffer_timeout_s: How long output may wait while more is coming; None: until a blob is full.

    Attributes:
        due_at: When a timer, a periodic watermark or a mark that overtakes is due, as of the last step.
    """

    def __init__(self, watermark_interval_s: float, buffer_timeout_s: float | None) -> None:
        self._watermark_interval_s = watermark_interval_s
        self._buffer_timeout_s = buffer_timeout_s
        self._gather_s = _GATHER_S if buffer_timeout_s is None else min(_GATHER_S, buffer_timeout_s)
        self._next_watermark_at = self._next_poll_at = self._next_timers_at = 0.0
        self._flushed_at = self._gathers_until = 0.0
        self._output_waits = False  # some output may wait for the end of the gathering
        self.due_at = _NEVER

    def start(self, now: float) -> None:
        """Begin to count the interval of watermarks."""
        self._next_watermark_at = now + self._watermark_interval_s

    def next(
        self,
        now: float,
        *,
        output_is_full: bool,
        may_take: bool,
        may_read: bool,
        timer_in_s: float,
        overtakes_in_s: float,
    ) -> EmitWatermarks | FireTimers | TakeInput | Flush | Poll | Wait:
        """Return the next action of a step. All actions of one step are chosen with the same `now`.

        `took` is called after `TakeInput`, `polled` after `Poll`.

        Args:
            now: The monotonic time at which the step has begun.
            output_is_full: Whether more output waits to be sent than the receivers take.
            may_take: Whether input waits, and the operators accept it.
            may_read: Whether the source may be polled.
            timer_in_s: When the next processing-time timer is due; not above 0: now, infinite: there is none.
            overtakes_in_s: When the next mark is due to overtake; infinite: none is.
        """
        if output_is_full:
            self.due_at = now + overtakes_in_s
            return Wait(min(LONGEST_WAIT_S, overtakes_in_s))
        wait_s = LONGEST_WAIT_S
        if self._watermark_interval_s > 0:
            if now >= self._next_watermark_at:
                self._next_watermark_at = now + self._watermark_interval_s
                return _EMIT_WATERMARKS
            wait_s = self._next_watermark_at - now
        if timer_in_s < _NEVER:
            timers_wait_s = self._next_timers_at - now
            if timers_wait_s <= 0:
                if timer_in_s <= 0:
                    self._next_timers_at = now + _TIMER_INTERVAL_S
                    return _FIRE_TIMERS
                timers_wait_s = _TIMER_INTERVAL_S
            wait_s = min(wait_s, max(timers_wait_s, timer_in_s))
        wait_s = min(wait_s, overtakes_in_s)
        self.due_at = now + wait_s
        if may_take:
            return _TAKE[now < self._gathers_until, self._is_flush_due(now)]
        if self._output_waits:
            if now >= self._gathers_until:
                self._all_sent(now)
                return _FLUSH
            wait_s = min(wait_s, self._gathers_until - now)
        if may_read:
            if now >= self._next_poll_at:
                return _POLL[self._is_flush_due(now)]
            wait_s = min(wait_s, self._next_poll_at - now)
        return Wait(wait_s)

    def took(self, now: float, action: TakeInput, *, more_waits: bool) -> None:
        """Note that input was taken, and whether more of it waits."""
        if not more_waits and not action.gathers:
            self._all_sent(now)
            return
        self._output_waits = True
        if action.flushes:
            self._flushed_at = now

    def polled(self, now: float, action: Poll, *, has_backlog: bool, has_finished: bool) -> None:
        """Note that the source was polled. A source without a backlog has sent all output."""
        if action.flushes or not has_backlog:
            self._flushed_at = now
        self._next_poll_at = now if has_backlog or has_finished else now + _POLL_INTERVAL_S

    def _is_flush_due(self, now: float) -> bool:
        return self._buffer_timeout_s is not None and now - self._flushed_at >= self._buffer_timeout_s

    def _all_sent(self, now: float) -> None:
        self._flushed_at, self._gathers_until, self._output_waits = now, now + self._gather_s, False
