"""The slots of a job: how many there are, which are replaced, and which wait for a rescale.

A subclass starts the slots: as children of the driver (`local_pool.py`), or elsewhere (`registering_pool.py`).
"""

from __future__ import annotations

import logging
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from ekorn.engine.slots.event_queue import EventQueue
from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.slot_protocol.messages import Exit
from ekorn.slot_protocol.slot_events import SlotActivity

__all__ = ["SlotPool", "SpareSlots", "end_slots"]

_log = logging.getLogger(__name__)


class SlotPool(ABC):
    """The slots of one job. One thread uses the pool, except for `prepare` and `upcoming`.

    Args:
        count: The number of slots.
        heartbeat: When a silent slot is given up.

    Attributes:
        secret: What a connection to a slot must show.
        slots: The slots in use, by number; empty before the first `ensure`.
        events: What the slots report.
        on_lost: Called from any thread with the number of a slot that was given up.
        on_activity: Called from any thread with a slot's heartbeat.
        shares_disk: Whether the slots see the driver's files.
    """

    shares_disk: bool

    def __init__(self, count: int, heartbeat: Heartbeat) -> None:
        self.secret = secrets.token_bytes(32)
        self.slots: list[SlotHandle] = []
        self.events = EventQueue()
        self.on_lost: Callable[[int], None] = lambda number: None
        self.on_activity: Callable[[int, SlotActivity], None] = lambda number, activity: None
        self._count = count
        self._heartbeat = heartbeat
        self._spare = SpareSlots()

    def ensure(self) -> list[int]:
        """Make every slot run and be connected; return the numbers of the slots that were (re)started."""
        present = {slot.number: slot for slot in self.slots if slot.process.alive}
        for slot in self.slots:
            if slot.number not in present:
                slot.close()
                _log.info("slot %d is replaced: %s", slot.number, slot.process.wait_for_end())
        missing = [number for number in range(self._count) if number not in present]
        started: dict[int, SlotHandle] = {}
        try:
            self._start(missing, started)
        except BaseException:
            for slot in started.values():
                slot.close()
            raise
        present |= started
        self.slots = [present[number] for number in range(self._count)]
        return missing

    @abstractmethod
    def begin_replacing(self) -> None:
        """Begin to replace the slots that are gone, if that can be done beside other work. `ensure` waits for them."""

    def prepare(self, count: int) -> None:
        """Start the slots that a higher number needs, while those in use go on; end those that none needs.

        They wait until `resize` takes them into use. One thread at a time calls it, beside the thread that uses the
        pool.

        Raises:
            EkornError: The slots could not be started.
        """
        started: dict[int, SlotHandle] = {}
        try:
            self._start(self._spare.missing(len(self.slots), count), started)
        finally:
            for slot in started.values():
                self._spare.add(slot)

    @abstractmethod
    def _start(self, numbers: list[int], started: dict[int, SlotHandle]) -> None:
        """Start slots and connect to them.

        Args:
            numbers: The numbers of the slots.
            started: Gets each slot as soon as it is connected, also if others cannot be started.
        """

    def _connect(self, slot: SlotHandle) -> SlotHandle:
        slot.connect(self.events.put, self.on_activity, self._lost, self._heartbeat)
        return slot

    def _lost(self, number: int) -> None:
        if number < len(self.slots):  # else the slot is spare, and nothing runs in it
            self.on_lost(number)  # read when it is called: idle slots change their owner

    def upcoming(self, count: int) -> list[SlotHandle]:
        """Return the slots that `resize` would leave: those in use, and those that were made ready. Thread-safe."""
        return self._spare.upcoming(list(self.slots), count)

    def resize(self, count: int) -> None:
        """Have another number of slots from the next `ensure` on. Slots that are too many end now."""
        self._count = count
        if self.slots:
            self.slots = self._spare.resized(self.slots, count)

    def shutdown(self) -> None:
        """Make all slots end, and release what they needed."""
        self.events.end()
        self._spare.end()
        end_slots(self.slots)
        self.slots = []
        self._release()

    @abstractmethod
    def _release(self) -> None:
        """Release what the slots needed: they have ended."""


class SpareSlots:
    """Slots that were started for a higher parallelism, and wait until the job changes to it. Thread-safe."""

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
        end_slots(surplus)
        return found

    def add(self, slot: SlotHandle) -> None:
        """Keep a slot that was started."""
        with self._lock:
            if not self._ended:
                self._slots[slot.number] = slot
                return
        end_slots([slot])  # the job has ended meanwhile

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
        end_slots([*in_use[count:], *spare.values()])
        return slots

    def end(self) -> None:
        """End all spare slots, and those that are added later."""
        with self._lock:
            self._ended = True
            spare, self._slots = self._slots, {}
        end_slots(list(spare.values()))


def end_slots(slots: Sequence[SlotHandle]) -> None:
    """Make slots end, all at the same time."""
    for slot in slots:
        slot.tell(Exit())
    for slot in slots:
        slot.close()
