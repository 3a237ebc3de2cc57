"""Collects cyclic garbage in a process when its memory or the number of its objects has grown.

Python's own collector counts objects alone, and walks them by the thousand. Records come and go by the ten thousand,
each of any size. So a thread watches the process: in slots, and in Spark's Python workers while tasks of DataSet
programs run. Growing memory tells of large objects. It does not tell of small ones for long: what a collection frees
stays in Python's arenas between objects that are in use, so later garbage fills these gaps before the memory grows, and
with every collection there are more gaps. So the watch counts objects too.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["GarbageWatch", "collect", "collect_by_growth", "collecting_by_growth"]

_INTERVAL_S = 0.02  # a function that makes large objects fills hundreds of megabytes in a tenth of a second
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_LEAST_GROWTH_BYTES = 64 << 20
_YOUNG_SHARE = 0.1  # a collection of young objects walks those made since the last collection
_FULL_SHARE = 0.5  # a full collection walks everything: the share makes its cost proportional to what was allocated
_YOUNG_OBJECTS = 500_000  # small ones take about as much memory as the least growth


class GarbageWatch:
    """Decides what to collect from the memory that the process uses, and from the number of its objects. Pure.

    Args:
        resident_bytes: The memory in use at the beginning.

    Example:
        >>> watch = GarbageWatch(100 << 20)
        >>> watch.due(150 << 20), watch.due(170 << 20)
        (None, 1)
        >>> watch.collected_young(170 << 20)
        >>> watch.due(190 << 20), watch.due(190 << 20, 500_000)
        (None, 1)
    """

    def __init__(self, resident_bytes: int) -> None:
        self._after_young = self._after_full = resident_bytes
        self._blocks = 0  # that Python's allocator had given out after the last full collection
        self._survivors = 0  # those that have survived a collection of young objects since

    def due(self, resident_bytes: int, young_objects: int = 0) -> int | None:
        """Return the oldest generation to collect now, or None if neither memory nor objects have grown enough.

        Args:
            resident_bytes: The memory in use.
            young_objects: The objects made since the last collection that can be part of a cycle.
        """
        self._after_young = min(self._after_young, resident_bytes)
        self._after_full = min(self._after_full, resident_bytes)
        if resident_bytes - self._after_full >= max(2 * _LEAST_GROWTH_BYTES, _FULL_SHARE * self._after_full):
            return 2
        if self._survivors >= max(2 * _YOUNG_OBJECTS, _FULL_SHARE * self._blocks):
            return 2
        if resident_bytes - self._after_young >= max(_LEAST_GROWTH_BYTES, _YOUNG_SHARE * self._after_young):
            return 1
        return 1 if young_objects >= _YOUNG_OBJECTS else None

    def collected_young(self, resident_bytes: int, survivors: int = 0) -> None:
        """Note a collection of young objects, the memory in use after it, and how many objects it left."""
        self._after_young = resident_bytes
        self._survivors += survivors

    def collected_all(self, resident_bytes: int, blocks: int = 0) -> None:
        """Note a full collection, the memory in use after it, and the blocks that Python's allocator has given out."""
        self._after_young = self._after_full = resident_bytes
        self._survivors, self._blocks = 0, blocks


def collect_by_growth(ended: threading.Event, look: Callable[[int], None] = lambda resident_bytes: None) -> None:
    """Turn Python's own collector off, and start a thread that collects when this process has grown.

    Where the system does not tell how much memory a process uses, Python's own collector stays on.

    Args:
        ended: Set when the process ends.
        look: Called with the memory of the process, after each look at it.
    """
    resident_bytes = _resident_bytes()
    if resident_bytes is None:
        return
    gc.disable()
    _start_watch(GarbageWatch(resident_bytes), ended, look)


class _SharedWatch:
    """Watches the memory of this process as long as a block of code runs that wants it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._ended = threading.Event()

    def enter(self) -> None:
        """Begin a block; the first one starts the watch."""
        with self._lock:
            self._blocks += 1
            if self._blocks == 1 and (resident_bytes := _resident_bytes()) is not None:
                self._ended = threading.Event()
                _start_watch(GarbageWatch(resident_bytes), self._ended, lambda resident_bytes: None)

    def leave(self) -> None:
        """End a block; the last one ends the watch."""
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._ended.set()


_shared = _SharedWatch()


@contextmanager
def collecting_by_growth() -> Iterator[None]:
    """Collect in a block when the memory of this process has grown, beside Python's own collector.

    Blocks may overlap, in any order.
    """
    _shared.enter()
    try:
        yield
    finally:
        _shared.leave()


def _start_watch(watch: GarbageWatch, ended: threading.Event, look: Callable[[int], None]) -> None:
    threading.Thread(target=_watch, args=(watch, ended, look), name="garbage-watch", daemon=True).start()


def _watch(watch: GarbageWatch, ended: threading.Event, look: Callable[[int], None]) -> None:
    while not ended.wait(_INTERVAL_S):
        resident_bytes, young_objects = _resident_bytes() or 0, gc.get_count()[0]
        generation = watch.due(resident_bytes, young_objects)
        if generation is not None:
            garbage = collect(generation)
            resident_bytes = _resident_bytes() or 0
            if generation == 2:
                watch.collected_all(resident_bytes, sys.getallocatedblocks())
            else:
                watch.collected_young(resident_bytes, max(0, young_objects - garbage))
        look(resident_bytes)


def collect(generation: int) -> int:
    """Collect garbage, and give the memory that it took back to the system; return how many objects were garbage.

    The C library keeps what is freed in the middle of its heap. The next growth would then begin above it, and the
    process would take more memory with every collection.
    """
    garbage = gc.collect(generation)
    if _MALLOC_TRIM is not None:
        _MALLOC_TRIM(0)
    return garbage


def _malloc_trim() -> Callable[[int], int] | None:
    """Return the function of the GNU C library that gives free memory back; None where the library has none."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    return trim


_MALLOC_TRIM = _malloc_trim()


def _resident_bytes() -> int | None:
    """Return the memory that this process uses; None if the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:  # not Linux
        return None
