"""Decides how many steps a subtask gets before the next one of its slot, where jobs run continuously.

A subtask with a backlog keeps its turn for some time: each change of subtasks fills the processor's caches anew. See
docs/decisions/0050-turns-under-backlog.md.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from ekorn.clock import Clock
from ekorn.slot.user_code_lock import UserCodeLock

__all__ = ["Rounds", "SteppedSubtask"]

_STAY_S = 0.025  # that one subtask gets in a round


class SteppedSubtask(Protocol):
    """A subtask that gets steps."""

    @property
    def due_at(self) -> float:
        """When a timer, a periodic watermark or a mark that overtakes is due, as of the last step."""

    def step(self, now: float) -> float:
        """Do what is due; return how long nothing is due, or 0 if something was done."""


class Rounds:
    """The rounds of a mailbox, in each of which every subtask gets steps."""

    def __init__(self, turn: UserCodeLock, clock: Clock) -> None:
        self._turn = turn
        self._clock = clock
        self._has_order = False  # one has come since the round began
        self._hurries = False  # every subtask gets one step in this round

    def order_given(self) -> None:
        """Let every subtask see an order soon: each gets one step, in this round and the next. Thread-safe."""
        self._has_order = True

    def begin(self) -> None:
        """Begin a round."""
        self._hurries, self._has_order = self._has_order, False

    def give_steps(self, subtask: SteppedSubtask, all_subtasks: Collection[SteppedSubtask]) -> float:
        """Give a subtask steps until it has nothing to do or something else must not wait.

        That is an order, a request of the driver, or the clock of another subtask. Readers of state are answered
        between two steps.

        Returns:
            How long nothing is due. 0 if something was done: others, which were asked before it, may be due by now.
        """
        began = self._clock.monotonic()
        pause_s = subtask.step(began)
        if pause_s > 0:
            return pause_s
        while not (self._hurries or self._has_order or self._turn.has_waiting_requests):
            now = self._clock.monotonic()
            if now >= began + _STAY_S or any(each.due_at <= now for each in all_subtasks):
                break
            self._turn.give_way()
            if subtask.step(now) > 0:
                break
        return 0.0
