"""Slots that were started for a higher parallelism, and wait until the job changes to it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ekorn.engine.slots.slot_handle import SlotHandle
from ekorn.slot_protocol.messages import Exit

__all__ = ["SpareSlots"]


class SpareSlots:
    """The spare slots of a pool, by number. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._slots: dict[int, SlotHandle] = {}
        self._ended = False

    def missing(self, in_use: int, count: int) -> list[int]:
        """Return the numbers of the slots that are to be started for a number of slots; end those it does not need."""
        needed = range(in_use, count)
        with self._lock:
            surplus = [slot for slot in self._slots.values() if slot.number not in needed or not slot.process.alive]
            for slot in surplus:
                del self._slots[slot.number]
            # A job that has ended needs none, although none of its slots is in use.
            found = [] if self._ended else [number for number in needed if number not in self._slots]
        _end(surplus)
        return found

    def add(self, slot: SlotHandle) -> None:
        """Keep a slot that was started."""
        with self._lock:
            if not self._ended:
                self._slots[slot.number] = slot
                return
        _end([slot])  # the job has ended meanwhile

    def upcoming(self, in_use: Sequence[SlotHandle], count: int) -> list[SlotHandle]:
        """Return the slots that `resized` would return."""
        with self._lock:
            spare = dict(self._slots)
        return [*in_use[:count], *(spare[number] for number in range(len(in_use), count) if number in spare)]

    def resized(self, in_use: Sequence[SlotHandle], count: int) -> list[SlotHandle]:
        """Return the slots in use from now on: at most `count`, and fewer if there are too few spare ones.

        All other slots end.
        """
        with self._lock:
            spare, self._slots = self._slots, {}
        slots = list(in_use[:count])
        while len(slots) < count and len(slots) in spare:
            slots.append(spare.pop(len(slots)))
        _end([*in_use[count:], *spare.values()])
        return slots

    def end(self) -> None:
        """End all spare slots, and those that are added later."""
        with self._lock:
            self._ended = True
            spare, self._slots = self._slots, {}
        _end(list(spare.values()))


def _end(slots: Sequence[SlotHandle]) -> None:
    for slot in slots:
        slot.tell(Exit())
    for slot in slots:
        slot.close()
