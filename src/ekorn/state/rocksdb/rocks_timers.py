"""Timers in RocksDB, with the next ones to fire in memory.

Registered timers are in memory first. A snapshot writes them to RocksDB, and so does a queue that has grown too large,
which then evicts the latest ones. From then on some key groups have timers that are in RocksDB only: `_beyond` has the
first address of these in each such key group. So

* every timer before the first time in `_beyond` is in memory, and only such a timer fires;
* when no timer in memory is earlier, the key group that comes first is read on, some timers at a time;
* registering and deleting a later timer need not look into RocksDB: both are written there with the next flush.

Memory is bounded however many timers there are, at one time or at many. `StoredTimers` has their form in RocksDB.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from itertools import islice
from math import inf
from typing import Any, NamedTuple, Protocol

from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.keygroups import KeyGroupRange
from ekorn.state.declared import Declaration
from ekorn.state.rocksdb.store import WriteBatch
from ekorn.state.rocksdb.stored_timers import StoredTimers, Timer
from ekorn.state.rocksdb.tables import RocksTable, Shared
from ekorn.state.timers import TimerQueue
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

_TIMER_BYTES = 400  # the memory of a timer, with its key and a note of its change
_DELETED_BY_RANGE = 8  # a range is deleted as a whole if it has so many timers in each key group


class Instance(Protocol):
    """The instance of RocksDB, as timers use it."""

    settings: RocksDBSettings
    key_groups: KeyGroupRange
    by_name: dict[str, RocksTable]

    def table(self, declared: Declaration) -> RocksTable:
        """Return the table of a state; create it, and open the instance, on first use."""

    def flush(self) -> None:
        """Write the changes of all tables."""


class _Beyond(NamedTuple):
    """Where the timers of a key group begin that are in RocksDB only."""

    time_ms: int
    group: int
    address: bytes


class RocksTimers(TimerQueue):
    """The timers of one operator in one time domain, in an instance of RocksDB."""

    def __init__(self, rocks: Instance, declared: Declaration, *, windowed: bool) -> None:
        super().__init__(noting=True)
        self.declared = declared
        self._rocks = rocks
        self._windowed = windowed
        self._stored: StoredTimers | None = None  # None until there is a timer to be written
        # Changes since the last flush. An added timer is mapped to whether RocksDB is known not to have it.
        self._added: dict[Timer, bool] = {}
        self._removed: set[Timer] = set()
        self._beyond: list[_Beyond] = []  # a heap
        self._known_before: float = inf  # the first time in `_beyond`
        self._read_times: set[int] = set()  # times with timers that were read from RocksDB
        self._fit_to(Shared.part_of(rocks.settings.cache_bytes))
        if declared.info.name in rocks.by_name:  # restored
            self.attach()
            self._read_from(MIN_TIMESTAMP)

    def _fit_to(self, memory_bytes: int) -> None:
        """Choose how many timers are in memory: half of them stay when there are too many."""
        room = memory_bytes // _TIMER_BYTES
        first, last = self._rocks.key_groups
        groups = last - first + 1
        self._read_count = max(min(self._rocks.settings.timer_cache_count, room // (4 * groups)), 1)
        self._most = max(room, 4 * groups * self._read_count)
        self._most_changes = self._most // 4

    # ------------------------------------------------------------------------------------------------------- timers

    def add(self, entry: Any, time_ms: int) -> None:  # hot
        bucket = self._by_time.get(time_ms)
        if bucket is None:
            bucket = self._open_bucket(time_ms)
        elif entry in bucket:
            return
        bucket[entry] = None
        timer, added, removed = (entry, time_ms), self._added, self._removed
        if removed and timer in removed:
            removed.discard(timer)
            added[timer] = False
        else:
            added[timer] = time_ms < self._known_before
        if len(added) >= self._most_changes:
            self._spill()

    def _note_removed(self, entry: Any, time_ms: int) -> None:  # hot
        timer = (entry, time_ms)
        if not self._added.pop(timer, False):
            self._removed.add(timer)
            if len(self._removed) >= self._most_changes:
                self._spill()

    def _remove_elsewhere(self, entry: Any, time_ms: int) -> None:
        if self._known_before <= time_ms <= MAX_TIMESTAMP:
            self._note_removed(entry, time_ms)

    def timers(self) -> Iterator[Timer]:
        if self._stored is None:
            return ((entry, time_ms) for time_ms, bucket in self._by_time.items() for entry in bucket)
        self._rocks.flush()
        return self._stored.timers(self._rocks.key_groups)

    def __len__(self) -> int:
        return sum(1 for _ in self.timers())

    def drop(self) -> None:
        self._drop_buckets()
        self._added.clear()
        self._removed.clear()
        self._read_times.clear()
        self._firing.clear()
        if self._stored is not None:
            self._stored.delete_all(self._rocks.key_groups)
        self._beyond.clear()
        self._known_before = inf

    # ----------------------------------------------------------------------------------------------- reading in order

    def next_ms(self) -> int | None:
        first = super().next_ms()
        while self._beyond and (first is None or self._must_read(first)):
            self._read_on()
            first = super().next_ms()
        return first

    def _must_read(self, first_ms: int) -> bool:
        """Return whether timers are read before the first ones in memory fire."""
        if self._known_before == first_ms:  # they fire in order of registration, unless they are too many
            return len(self._by_time[first_ms]) < self._most_changes
        return self._known_before < first_ms

    def _read_on(self) -> None:
        """Read the next timers of the key group whose timers in RocksDB come first."""
        _, group, address = heappop(self._beyond)
        stored, removed, by_time = self._stored, self._removed, self._by_time
        assert stored is not None, "timers are beyond memory only if they are in RocksDB"
        found = list(islice(stored.read(address, stored.end_of(group)), self._read_count + 1))
        if len(found) > self._read_count:
            (_, time_ms), _, address = found.pop()
            heappush(self._beyond, _Beyond(time_ms, group, address))
        for timer, number, _ in found:
            if timer not in removed:
                entry, time_ms = timer
                bucket = by_time.get(time_ms)
                if bucket is None:
                    bucket = self._open_bucket(time_ms)
                bucket[entry] = number
                self._read_times.add(time_ms)
        self._known_before = self._beyond[0].time_ms if self._beyond else inf

    def _in_order(self, bucket: dict[Any, Any], time_ms: int) -> list[Any]:
        if time_ms not in self._read_times:
            return list(bucket)
        self._read_times.discard(time_ms)
        if len(bucket) == 1:
            return list(bucket)
        # Timers without a number were registered after those that have one.
        return sorted(bucket, key=lambda entry: inf if bucket[entry] is None else bucket[entry])

    # ---------------------------------------------------------------------------------------------- writing to RocksDB

    def attach(self) -> StoredTimers | None:
        """Return the timers' table in RocksDB; create it if there is a timer."""
        if self._stored is None and (self._by_time or self.declared.info.name in self._rocks.by_name):
            stored = self._rocks.table(self.declared)
            assert isinstance(stored, StoredTimers)
            self._stored = stored
            stored.memory = self
        return self._stored

    def flush(self, batch: WriteBatch) -> None:
        """Write the changes."""
        stored = self._stored
        assert stored is not None, "a table flushes what belongs to it"
        removed = self._delete_fired(stored, batch)
        for address, _ in stored.addresses(removed, windowed=self._windowed):
            batch.delete(address)
        stored.write(batch, self._added, windowed=self._windowed)
        self._added.clear()
        self._removed.clear()

    def _delete_fired(self, stored: StoredTimers, batch: WriteBatch) -> list[Timer]:
        """Delete the ranges of timers that have fired, if they are many; return the timers that are left to delete."""
        # Everything in RocksDB before the first timer in memory has fired, is firing, or was deleted.
        before_ms = min(self._known_before, self._heap[0] if self._heap else inf)
        first, last = self._rocks.key_groups
        left = [timer for timer in self._removed if timer[1] >= before_ms]
        fired = len(self._removed) - len(left)
        if fired < _DELETED_BY_RANGE * (last - first + 1):
            return list(self._removed)
        end_ms = MAX_TIMESTAMP + 1 if before_ms == inf else int(before_ms)
        for group in range(first, last + 1):
            batch.delete_range(stored.start_of(group, MIN_TIMESTAMP), stored.start_of(group, end_ms))
        batch.deleted_by_range(fired)
        return left

    def _spill(self) -> None:
        """Write the changes, which have become too many to keep, and evict timers if these are too many."""
        self.attach()
        self._rocks.flush()

    def evict(self) -> None:
        """Keep only the next timers in memory if there are too many. All of them are in RocksDB."""
        assert not self._added and not self._removed, "only what is written may be evicted"
        self._fit_to(Shared.part_of(self._rocks.settings.cache_bytes))
        by_time = self._by_time
        if sum(map(len, by_time.values())) <= self._most:
            return
        times, kept, end = sorted(by_time), 0, 0
        while (kept := kept + len(by_time[times[end]])) <= self._most // 2:
            end += 1
        self._by_time = {time_ms: by_time[time_ms] for time_ms in times[:end] if by_time[time_ms]}
        self._heap[:] = self._by_time  # ascending, so it is a heap
        self._stale = 0
        self._read_times.intersection_update(self._by_time)
        self._read_from(times[end])

    def _read_from(self, time_ms: int) -> None:
        """Note that all timers from a time on may be in RocksDB only."""
        assert self._stored is not None, "timers are evicted after they were written"
        first, last = self._rocks.key_groups
        earlier = {beyond.group: beyond for beyond in self._beyond if beyond.time_ms < time_ms}
        self._beyond[:] = [
            earlier.get(group) or _Beyond(time_ms, group, self._stored.start_of(group, time_ms))
            for group in range(first, last + 1)
        ]
        heapify(self._beyond)
        self._known_before = self._beyond[0].time_ms
