"""The timers of one operator in one time domain, all in memory: a table that its backend adopts."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from ekorn.state.canonical_format import TableEntries
from ekorn.state.snapshots import StateInfo
from ekorn.state.table import Table
from ekorn.state.timers import TIMERS, TimerQueue, timer_address, timer_at
from ekorn.types.time_bounds import MAX_TIMESTAMP


class HeapTimers(TimerQueue, Table):
    """Timers in memory. In a checkpoint the address of a timer is (key, time), or (key, (time, window))."""

    def __init__(self, name: str, *, tracked: bool, windowed: bool = False) -> None:
        Table.__init__(self, StateInfo(name, TIMERS), tracked=tracked)
        TimerQueue.__init__(self, noting=tracked)
        self._windowed = windowed
        # Net changes since the last snapshot: a timer that was registered and removed in between is in neither.
        # in order of registration, which is the order in which restored timers fire
        self._added: dict[tuple[Any, int], None] = {}
        self._removed: set[tuple[Any, int]] = set()

    def add(self, entry: Any, time_ms: int) -> None:  # hot
        bucket = self._by_time.get(time_ms)
        if bucket is None:
            bucket = self._open_bucket(time_ms)
        elif entry in bucket:
            return
        bucket[entry] = None
        if self._noting:
            timer = (entry, time_ms)
            if timer in self._removed:
                self._removed.discard(timer)
            else:
                self._added[timer] = None

    def timers(self) -> Iterator[tuple[Any, int]]:
        return ((entry, time_ms) for time_ms, bucket in self._by_time.items() for entry in bucket)

    def in_memory(self) -> Collection[Any]:
        return self._by_time

    def __len__(self) -> int:
        return sum(map(len, self._by_time.values()))

    def _note_removed(self, entry: Any, time_ms: int) -> None:
        timer = (entry, time_ms)
        if timer in self._added:
            del self._added[timer]
        else:
            self._removed.add(timer)

    def _remove_elsewhere(self, entry: Any, time_ms: int) -> None:
        """Do nothing: all timers are in memory."""

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
        there = [self._address(*timer) for timer in self.timers()]
        return TableEntries(self.info, there, [None] * len(there), [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        there = [a for a in keys if self._has(a)]
        gone = [a for a in keys if not self._has(a)]
        return TableEntries(self.info, there, [None] * len(there), gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        for address in entries:
            entry, time_ms = timer_at(address, windowed=self._windowed)
            if time_ms <= MAX_TIMESTAMP:  # earlier versions accepted later ones, which never fire
                self.add(entry, time_ms)
        self._added.clear()

    def drop(self) -> None:
        self._drop_buckets()
        self._added.clear()
        self._removed.clear()

    def _address(self, entry: Any, time_ms: int) -> tuple[Any, Any]:
        return timer_address(entry, time_ms, windowed=self._windowed)

    def _has(self, address: tuple[Any, Any]) -> bool:
        entry, time_ms = timer_at(address, windowed=self._windowed)
        return entry in self._by_time.get(time_ms, ())
