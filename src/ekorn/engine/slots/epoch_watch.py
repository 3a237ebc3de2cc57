"""Decides when a running epoch has stalled: no slot exchanges blobs with a task, and none is inside user code.

A lost slot is noticed by its silence. What hangs here is something between the slots: a Spark task whose Python worker
was stopped or blocked asks no slot for anything, and Spark itself waits for that worker for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Collection

from ekorn.graph.addresses import SubtaskId
from ekorn.slot_protocol.slot_events import SlotActivity


class EpochWatch:
    """Collects what the slots report about their activity during one epoch at a time. Thread-safe.

    Args:
        timeout_s: How long an epoch may make no progress.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._epoch: int | None = None  # None while no epoch runs
        self._quiet_since = 0.0
        self._quiet_until: dict[int, float] = {}  # by slot: when it last reported that nothing happened
        self._reports: dict[int, SlotActivity] = {}  # the last one of each slot
        self._stalled = False

    def begin(self, epoch: int, slots: Collection[int], now: float) -> None:
        """Watch a new epoch that runs in these slots."""
        with self._lock:
            self._epoch = epoch
            self._quiet_since = now
            self._quiet_until = dict.fromkeys(slots, now)
            self._stalled = False

    def end(self) -> bool:
        """Stop watching; return whether the epoch had stalled."""
        with self._lock:
            self._epoch = None
            return self._stalled

    def observe(self, slot: int, activity: SlotActivity, now: float) -> bool:
        """Take in a slot's report; return True if it shows that the epoch has stalled. That happens once an epoch."""
        with self._lock:
            before = self._reports.get(slot)
            self._reports[slot] = activity
            if self._epoch is None or slot not in self._quiet_until:
                return False
            self._quiet_until[slot] = now
            if activity.in_user_code or before is None or activity.messages != before.messages:
                self._quiet_since = now
                return False
            # Every slot must have confirmed the silence: one that has not reported may be inside user code.
            if self._stalled or min(self._quiet_until.values()) - self._quiet_since < self._timeout_s:
                return False
            self._stalled = True
            return True

    def excuse(self, now: float) -> None:
        """Take back that the epoch has stalled: it waits for something that is known, and gets the full time again."""
        with self._lock:
            self._quiet_since = now
            self._stalled = False

    def unanswered(self, epoch: int, subtasks: Collection[SubtaskId]) -> list[SubtaskId]:
        """Return the subtasks whose part of the epoch no slot has reported as run to its end."""
        with self._lock:
            answered = {of for report in self._reports.values() if report.epoch == epoch for of in report.answered}
        return sorted(subtask for subtask in subtasks if subtask not in answered)
