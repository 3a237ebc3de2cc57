"""Timers as the operators see them, and what the two backends have in common: timers in memory, in buckets by time.

A timer is an entry (a key, or in a windowed operator a pair of key and window) and a time. Registering a timer twice
has no further effect. Timers are keyed state: they are checkpointed, restored and redistributed with their keys. They
fire in ascending order of time, and those of one time in order of registration.

    heap/heap_timers.py          all timers are in memory
    rocksdb/rocks_timers.py      timers are in RocksDB; the next ones to fire are in memory as well
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import compress
from typing import Any

from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

TIMERS = "timers"
"""The kind of state (`StateInfo.kind`) that timers are. Its entries have addresses and no values."""

OnTimer = Callable[[Any, int], None]
"""Called with the entry of a timer (a key, or a pair of key and window) and its time."""

_MAX_STALE = 1024  # clean up only if more buckets than this are empty


def timer_address(entry: Any, time_ms: int, *, windowed: bool) -> tuple[Any, Any]:
    """Return the address of a timer in a checkpoint: (key, time), or (key, (time, window))."""
    return (entry[0], (time_ms, entry[1])) if windowed else (entry, time_ms)


def timer_at(address: tuple[Any, Any], *, windowed: bool) -> tuple[Any, int]:
    """Return the entry and the time of the timer at an address."""
    key, namespace = address
    return ((key, namespace[1]), namespace[0]) if windowed else (key, namespace)


class TimerQueue(ABC):
    """The timers of one operator in one time domain.

    Those in memory are in buckets by time, with a heap of the distinct times, so a timer costs one dictionary entry.
    """

    def __init__(self, *, noting: bool) -> None:
        """Create a queue without timers.

        Args:
            noting: Whether `_note_removed` is called for timers that fire.
        """
        self._noting = noting
        self._by_time: dict[int, dict[Any, Any]] = {}
        self._heap: list[int] = []
        self._stale = 0  # the number of buckets that deletions have emptied
        self._firing: dict[Any, Any] = {}
        self._firing_ms: int | None = None
        self.fired_count = 0

    @abstractmethod
    def add(self, entry: Any, time_ms: int) -> None:
        """Register a timer. Does nothing if it is registered already."""

    @abstractmethod
    def timers(self) -> Iterator[tuple[Any, int]]:
        """Yield the entry and the time of every timer."""

    @abstractmethod
    def drop(self) -> None:
        """Remove all timers."""

    @abstractmethod
    def _note_removed(self, entry: Any, time_ms: int) -> None:
        """Note for the next snapshot that a timer that was in memory has fired or was deleted."""

    @abstractmethod
    def _remove_elsewhere(self, entry: Any, time_ms: int) -> None:
        """Delete a timer that is not in memory. Does nothing if there is none."""

    def remove(self, entry: Any, time_ms: int) -> None:
        """Delete a timer. Does nothing if there is none."""
        if time_ms.__class__ is not int:
            time_ms = operator.index(time_ms)
        bucket = self._by_time.get(time_ms)
        if (bucket is None or entry not in bucket) and time_ms == self._firing_ms:
            bucket = self._firing
        if bucket is None or entry not in bucket:
            self._remove_elsewhere(entry, time_ms)
            return
        del bucket[entry]
        if not bucket and bucket is not self._firing:
            self._stale += 1
            if self._stale > _MAX_STALE and self._stale > len(self._by_time) // 2:
                self._drop_stale()
        if self._noting:
            self._note_removed(entry, time_ms)

    def fire(self, limit_ms: int, call: OnTimer, relief: Iterator[bool]) -> None:
        """Fire all timers up to a time in ascending order, including timers that are registered meanwhile.

        Args:
            limit_ms: The time.
            call: Called for every timer, after the timer was removed.
            relief: Lets full blobs leave between two timers (`operators/results.py`).
        """
        while (time_ms := self.next_ms()) is not None and time_ms <= limit_ms:
            bucket = self._by_time.pop(heappop(self._heap))
            self._firing, self._firing_ms = bucket, time_ms
            for entry in compress(list(self._in_order(bucket, time_ms)), relief):
                if entry in bucket:  # false if a timer that fired before has deleted this one
                    del bucket[entry]
                    if self._noting:
                        self._note_removed(entry, time_ms)
                    self.fired_count += 1
                    call(entry, time_ms)
            self._firing_ms = None

    def _in_order(self, bucket: dict[Any, Any], time_ms: int) -> Iterable[Any]:
        """Return the entries of a bucket in order of registration."""
        return bucket

    def take_all(self) -> list[tuple[Any, int]]:
        """Remove and return all timers, in ascending order of time."""
        found = sorted(self.timers(), key=operator.itemgetter(1))
        self.drop()
        return found

    def next_ms(self) -> int | None:
        """Return the time of the earliest timer."""
        heap, by_time = self._heap, self._by_time
        while heap and not by_time[heap[0]]:
            del by_time[heappop(heap)]
            self._stale -= 1
        return heap[0] if heap else None

    def _open_bucket(self, time_ms: int) -> dict[Any, Any]:
        """Create the bucket of a time that has none, and return it."""
        if time_ms.__class__ is not int:
            time_ms = operator.index(time_ms)
        if not MIN_TIMESTAMP <= time_ms <= MAX_TIMESTAMP:
            raise ValueError(
                f"a timer at {time_ms} ms is out of range: timestamps go from {MIN_TIMESTAMP} to {MAX_TIMESTAMP} ms"
            )
        bucket = self._by_time[time_ms] = {}
        heappush(self._heap, time_ms)
        return bucket

    def _drop_stale(self) -> None:
        for time_ms in [t for t, bucket in self._by_time.items() if not bucket]:
            del self._by_time[time_ms]
        self._heap[:] = self._by_time
        heapify(self._heap)
        self._stale = 0

    def _drop_buckets(self) -> None:
        self._by_time.clear()
        self._heap.clear()
        self._stale = 0
