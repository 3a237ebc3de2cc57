"""The timers of keyed operators, in both time domains.

A timer is a key, or a pair of key and window, and a time. Registering a timer twice has no further effect. Timers are
keyed state: they are checkpointed, restored and redistributed with their keys. In memory they are in buckets by time,
with a heap of the distinct times. A timer costs one dictionary entry. Timers fire in ascending order of time, and those
of one time in order of registration.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator
from heapq import heapify, heappop, heappush
from itertools import compress
from typing import Any

from ekorn.clock import Clock
from ekorn.functions.timer_service import TimerService
from ekorn.state.canonical_format import TableEntries
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.snapshots import StateInfo
from ekorn.state.table import Table
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

OnTimer = Callable[[Any, int], None]
"""Called with the entry of a timer (a key, or a pair of key and window) and its time."""

_MAX_STALE = 1024  # clean up only if more buckets than this are empty


class TimerTable(Table):
    """The timers of one operator in one time domain.

    An entry is a key, or in a windowed table a pair of key and window. In a checkpoint the address of a timer is
    (key, time), or (key, (time, window)).
    """

    __slots__ = (
        "_added",
        "_by_time",
        "_firing",
        "_firing_ms",
        "_heap",
        "_removed",
        "_stale",
        "_tracked",
        "_windowed",
        "fired_count",
    )

    def __init__(self, name: str, *, tracked: bool, windowed: bool = False) -> None:
        super().__init__(StateInfo(name, "timers"), tracked=tracked)
        self._tracked = tracked
        self._windowed = windowed
        self._by_time: dict[int, dict[Any, None]] = {}
        self._heap: list[int] = []
        self._stale = 0  # the number of buckets that deletions have emptied
        # Net changes since the last snapshot: a timer that was registered and removed in between is in neither.
        # in order of registration, which is the order in which restored timers fire
        self._added: dict[tuple[Any, int], None] = {}
        self._removed: set[tuple[Any, int]] = set()
        self._firing: dict[Any, None] = {}
        self._firing_ms: int | None = None
        self.fired_count = 0

    def add(self, entry: Any, time_ms: int) -> None:  # hot
        """Register a timer. Does nothing if it is registered already."""
        bucket = self._by_time.get(time_ms)
        if bucket is None:
            if time_ms.__class__ is not int:
                time_ms = operator.index(time_ms)
            if not MIN_TIMESTAMP <= time_ms <= MAX_TIMESTAMP:
                raise ValueError(
                    f"a timer at {time_ms} ms is out of range: timestamps go from {MIN_TIMESTAMP} to {MAX_TIMESTAMP} ms"
                )
            bucket = self._by_time[time_ms] = {}
            heappush(self._heap, time_ms)
        elif entry in bucket:
            return
        bucket[entry] = None
        if self._tracked:
            timer = (entry, time_ms)
            if timer in self._removed:
                self._removed.discard(timer)
            else:
                self._added[timer] = None

    def remove(self, entry: Any, time_ms: int) -> None:
        """Delete a timer. Does nothing if there is none."""
        bucket = self._by_time.get(time_ms)
        if (bucket is None or entry not in bucket) and time_ms == self._firing_ms:
            bucket = self._firing
        if bucket is None or entry not in bucket:
            return
        del bucket[entry]
        self._note_removed(entry, time_ms)
        if not bucket and bucket is not self._firing:
            self._stale += 1
            if self._stale > _MAX_STALE and self._stale > len(self._by_time) // 2:
                self._drop_stale()

    def fire(self, limit_ms: int, call: OnTimer, relief: Iterator[bool]) -> None:
        """Fire all timers up to a time in ascending order, including timers that are registered meanwhile.

        Args:
            relief: Lets full blobs leave between two timers (`operators/results.py`).
        """
        heap, by_time = self._heap, self._by_time
        while heap and heap[0] <= limit_ms:
            time_ms = heappop(heap)
            bucket = by_time.pop(time_ms)
            if not bucket:
                self._stale -= 1
                continue
            self._firing, self._firing_ms = bucket, time_ms
            for entry in compress(list(bucket), relief):
                if entry in bucket:  # false if a timer that fired before has deleted this one
                    del bucket[entry]
                    if self._tracked:
                        self._note_removed(entry, time_ms)
                    self.fired_count += 1
                    call(entry, time_ms)
            self._firing_ms = None

    def take_all(self) -> list[tuple[Any, int]]:
        """Remove and return all timers, in ascending order of time."""
        found = [(entry, time_ms) for time_ms in sorted(self._by_time) for entry in self._by_time[time_ms]]
        self.drop()
        return found

    def next_ms(self) -> int | None:
        """Return the time of the earliest timer."""
        while self._heap and not self._by_time[self._heap[0]]:
            del self._by_time[heappop(self._heap)]
            self._stale -= 1
        return self._heap[0] if self._heap else None

    def __len__(self) -> int:
        return sum(map(len, self._by_time.values()))

    def _note_removed(self, entry: Any, time_ms: int) -> None:
        timer = (entry, time_ms)
        if timer in self._added:
            del self._added[timer]
        else:
            self._removed.add(timer)

    def _drop_stale(self) -> None:
        for time_ms in [t for t, bucket in self._by_time.items() if not bucket]:
            del self._by_time[time_ms]
        self._heap[:] = self._by_time
        heapify(self._heap)
        self._stale = 0

    # ------------------------------------------------------------------------------------------- checkpoints

    def some_key(self) -> Any:
        entry = next((entry for bucket in self._by_time.values() for entry in bucket), None)
        return entry[0] if entry is not None and self._windowed else entry

    def take_changed(self) -> Collection[Any]:
        changed = [self._address(*timer) for timer in (*self._added, *self._removed)]
        self._added.clear()
        self._removed.clear()
        return changed

    def whole(self) -> TableEntries:
        there = [self._address(e, time_ms) for time_ms, bucket in self._by_time.items() for e in bucket]
        return TableEntries(self.info, there, [None] * len(there), [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        there = [a for a in keys if self._has(a)]
        gone = [a for a in keys if not self._has(a)]
        return TableEntries(self.info, there, [None] * len(there), gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for address in entries:
            entry, time_ms = self._timer(address)
            if time_ms <= MAX_TIMESTAMP:  # earlier versions accepted later ones, which never fire
                self.add(entry, time_ms)
        self._added.clear()

    def drop(self) -> None:
        self._by_time.clear()
        self._heap.clear()
        self._stale = 0
        self._added.clear()
        self._removed.clear()

    def _address(self, entry: Any, time_ms: int) -> tuple[Any, Any]:
        return (entry[0], (time_ms, entry[1])) if self._windowed else (entry, time_ms)

    def _timer(self, address: tuple[Any, Any]) -> tuple[Any, int]:
        key, namespace = address
        return ((key, namespace[1]), namespace[0]) if self._windowed else (key, namespace)

    def _has(self, address: tuple[Any, Any]) -> bool:
        entry, time_ms = self._timer(address)
        return entry in self._by_time.get(time_ms, ())


class Timers(TimerService):
    """The timer service of a keyed operator: both clocks, and the timers of the current entry.

    `cell[0]` is the current entry: a key, or in a window operator a pair of key and window.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        cell: list[Any],
        clock: Clock,
        *,
        prefix: str = "_timers",
        windowed: bool = False,
    ) -> None:
        self._clock = clock
        self.cell = cell
        self.watermark_ms = MIN_TIMESTAMP
        self.event = TimerTable(f"{prefix}/event", tracked=backend.tracked, windowed=windowed)
        self.processing = TimerTable(f"{prefix}/processing", tracked=backend.tracked, windowed=windowed)
        self._add_event, self._add_processing = self.event.add, self.processing.add
        self._backend = backend

    def open(self) -> None:
        """Take over the restored timers."""
        self._backend.adopt(self.event)
        self._backend.adopt(self.processing)

    def current_processing_time(self) -> int:
        return self._clock.now_ms()

    def current_watermark(self) -> int:
        return self.watermark_ms

    def register_event_time_timer(self, timestamp: int) -> None:  # hot
        self._add_event(self.cell[0], timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:  # hot
        self._add_processing(self.cell[0], timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.event.remove(self.cell[0], timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.processing.remove(self.cell[0], timestamp)

    def advance_watermark(self, watermark_ms: int, call: OnTimer, relief: Iterator[bool]) -> None:
        """Advance event time and fire the timers that are due. The watermark is the new one while they fire."""
        self.watermark_ms = watermark_ms
        self.event.fire(watermark_ms, call, relief)

    def advance_clock(self, now_ms: int, call: OnTimer, relief: Iterator[bool]) -> None:
        """Fire the processing-time timers that the clock has passed."""
        # Flink: a timer at t fires once t is over, so a record of the same millisecond is processed before it.
        self.processing.fire(now_ms - 1, call, relief)

    def fired_count(self) -> int:
        """Return how many timers have fired since the subtask was opened. BATCH mode counts none."""
        return self.event.fired_count + self.processing.fired_count

    def next_timer_ms(self) -> int | None:
        """Return the clock time at which the next processing-time timer fires."""
        time_ms = self.processing.next_ms()
        return None if time_ms is None else time_ms + 1

    def end_key(self, on_event: OnTimer, on_processing: OnTimer, relief: Iterator[bool]) -> None:
        """Fire all timers of the current key, whose records have ended in BATCH mode.

        Event-time timers fire first. Processing-time timers fire whatever the clock says. Timers that are registered
        meanwhile are dropped.
        """
        self.watermark_ms = MAX_TIMESTAMP
        for timers, call in ((self.event, on_event), (self.processing, on_processing)):
            for entry, time_ms in compress(timers.take_all(), relief):
                call(entry, time_ms)
        self.event.drop()
        self.processing.drop()
        self.watermark_ms = MIN_TIMESTAMP
