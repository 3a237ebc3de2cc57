"""The slots of a job as an engine needs them, wherever they run: `local_pool.py` or `registering_pool.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ekorn.engine.slots.event_queue import EventQueue
from ekorn.engine.slots.slot_handle import SlotHandle
from ekorn.slot_protocol.slot_events import SlotActivity


class SlotPool(Protocol):
    """The slots of one job."""

    secret: bytes
    slots: list[SlotHandle]  # by number; empty before the first `ensure`
    events: EventQueue  # what the slots report
    on_lost: Callable[[int], None]  # called from any thread with the number of a slot that was given up
    on_activity: Callable[[int, SlotActivity], None]  # called from any thread with a slot's heartbeat
    shares_disk: bool  # whether the slots see the driver's files

    def ensure(self) -> list[int]:
        """Make every slot run and be connected; return the numbers of the slots that were (re)started."""

    def begin_replacing(self) -> None:
        """Begin to replace the slots that are gone, if that can be done beside other work. `ensure` waits for them."""

    def prepare(self, count: int) -> None:
        """Start the slots that a higher number needs, while those in use go on; end those that none needs.

        They wait until `resize` takes them into use. One thread at a time calls it, beside the thread that uses the
        pool.

        Raises:
            EkornError: The slots could not be started.
        """

    def upcoming(self, count: int) -> list[SlotHandle]:
        """Return the slots that `resize` would leave: those in use, and those that were made ready. Thread-safe."""

    def resize(self, count: int) -> None:
        """Have another number of slots from the next `ensure` on. Slots that are too many end now."""

    def shutdown(self) -> None:
        """Make all slots end."""
