"""Collects cyclic garbage in a slot when its memory has grown.

Python's own collector is off in a slot: it counts objects, and records come and go by the ten thousand. The server
collects between epochs. An epoch can be long, above all in BATCH, so a thread also watches the memory of the process.
"""

from __future__ import annotations

import gc
import os
import threading

__all__ = ["GarbageWatch", "ProcessGarbage", "SlotGarbage", "collect_by_growth"]

_INTERVAL_S = 0.02  # a function that makes large objects fills hundreds of megabytes in a tenth of a second
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_LEAST_GROWTH_BYTES = 64 << 20
_YOUNG_SHARE = 0.1  # a collection of young objects walks those made since the last collection
_FULL_SHARE = 0.5  # a full collection walks everything: the share makes its cost proportional to what was allocated
_EPOCHS_BETWEEN_FULL_COLLECTIONS = 512


class SlotGarbage:
    """What the server of a slot collects between two requests: nothing, where other code shares the process."""

    def deploying(self) -> None:
        """Prepare for an attempt that replaces the subtasks."""

    def deployed(self) -> None:
        """Collect what the last attempt left, and exempt restored state from collections."""

    def epoch_ended(self) -> None:
        """Collect garbage of the last epochs, and now and then of everything."""


class ProcessGarbage(SlotGarbage):
    """Collects in a process that belongs to one slot."""

    def __init__(self) -> None:
        self._epochs_run = 0

    def deploying(self) -> None:
        gc.unfreeze()

    def deployed(self) -> None:
        # Restored state lives as long as the attempt: keep the collector from walking it again.
        gc.collect()
        gc.freeze()

    def epoch_ended(self) -> None:
        self._epochs_run += 1
        gc.collect(2 if self._epochs_run % _EPOCHS_BETWEEN_FULL_COLLECTIONS == 0 else 1)


class GarbageWatch:
    """Decides what to collect from the memory that the process uses. Pure.

    Args:
        resident_bytes: The memory in use at the beginning.

    Example:
        >>> watch = GarbageWatch(100 << 20)
        >>> watch.due(150 << 20), watch.due(170 << 20)
        (None, 1)
        >>> watch.collected(1, 170 << 20)
        >>> watch.due(190 << 20)
    """

    def __init__(self, resident_bytes: int) -> None:
        self._after_young = self._after_full = resident_bytes

    def due(self, resident_bytes: int) -> int | None:
        """Return the oldest generation to collect now, or None if memory has not grown enough."""
        self._after_young = min(self._after_young, resident_bytes)
        self._after_full = min(self._after_full, resident_bytes)
        if resident_bytes - self._after_full >= max(2 * _LEAST_GROWTH_BYTES, _FULL_SHARE * self._after_full):
            return 2
        if resident_bytes - self._after_young >= max(_LEAST_GROWTH_BYTES, _YOUNG_SHARE * self._after_young):
            return 1
        return None

    def collected(self, generation: int, resident_bytes: int) -> None:
        """Note the memory in use after a collection."""
        self._after_young = resident_bytes
        if generation == 2:
            self._after_full = resident_bytes


def collect_by_growth(ended: threading.Event) -> None:
    """Turn Python's own collector off, and start a thread that collects when the memory of this process has grown.

    Where the system does not tell how much memory a process uses, Python's own collector stays on.
    """
    resident_bytes = _resident_bytes()
    if resident_bytes is None:
        return
    gc.disable()
    arguments = GarbageWatch(resident_bytes), ended
    threading.Thread(target=_watch, args=arguments, name="garbage-watch", daemon=True).start()


def _watch(watch: GarbageWatch, ended: threading.Event) -> None:
    while not ended.wait(_INTERVAL_S):
        generation = watch.due(_resident_bytes() or 0)
        if generation is not None:
            gc.collect(generation)
            watch.collected(generation, _resident_bytes() or 0)


def _resident_bytes() -> int | None:
    """Return the memory that this process uses; None if the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:  # not Linux
        return None
