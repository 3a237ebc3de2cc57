"""Keeps the slots of an iteration that has ended for the next one, as Spark keeps its Python workers.

A slot takes a third of a second of a core to start, as much as a superstep over 200,000 records. A program that runs
several iterations, or a notebook that runs one again, finds the slots of the last one. Idle slots have no data. They
end a few seconds after the last use, and with the driver.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from dataclasses import dataclass

from ekorn.config.settings.deployment_settings import PythonDependencies
from ekorn.engine.slots.local_pool import LocalSlotPool
from ekorn.engine.slots.resident_tables import next_attempt
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.errors import SlotLostError
from ekorn.slot_protocol.table_messages import BeginTables

__all__ = ["IDLE_POOLS", "IdlePools", "PoolKind", "ReusedSlotPool"]


@dataclass(frozen=True)
class PoolKind:
    """Describes slots. Slots of one kind can replace each other."""

    size: int
    python: PythonDependencies
    heartbeat: Heartbeat
    import_path: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]

    @classmethod
    def of_this_driver(cls, size: int, python: PythonDependencies, heartbeat: Heartbeat) -> PoolKind:
        """Return the kind of slots that this driver would start now."""
        path = (os.getcwd(), *sys.path)
        return cls(size, python, heartbeat, path, tuple(sorted(os.environ.items())))


class ReusedSlotPool(LocalSlotPool):
    """Slots that go to the idle ones when they are no longer needed.

    Args:
        kind: The slots.
        idle: Where they go.
    """

    def __init__(self, kind: PoolKind, idle: IdlePools) -> None:
        super().__init__(kind.size, kind.python, heartbeat=kind.heartbeat)
        self.kind = kind
        self._idle = idle

    def shutdown(self) -> None:
        """Drop all data of the slots and keep them. If one is gone, end all."""
        self.on_lost = lambda number: None
        try:
            is_empty = self._is_empty()
        except BaseException:
            self.end()
            raise
        if is_empty:
            self._idle.keep(self)
        else:
            self.end()

    def end(self) -> None:
        """Make all processes end."""
        super().shutdown()

    def _is_empty(self) -> bool:
        """Drop the data of all slots; return whether all slots are there."""
        if not self.slots or not all(slot.process.alive for slot in self.slots):
            return False
        attempt = next_attempt()
        for slot in self.slots:
            slot.tell(BeginTables(attempt, (), 0))
        answers = [slot.answer() for slot in self.slots]
        for error in answers:
            if error is not None and not isinstance(error, SlotLostError):
                raise error
        return not any(answers)


class IdlePools:
    """The idle slots of a driver.

    Args:
        seconds: How long they wait for the next iteration.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._waiting: dict[ReusedSlotPool, threading.Event] = {}  # the event is set when they are needed, or ended

    def take(self, kind: PoolKind) -> ReusedSlotPool:
        """Return idle slots of a kind, or slots that are started now."""
        with self._lock:
            for pool in self._waiting:
                if pool.kind == kind:
                    self._waiting.pop(pool).set()
                    return pool
        pool = ReusedSlotPool(kind, self)
        pool.begin_start()
        return pool

    def keep(self, pool: ReusedSlotPool) -> None:
        """Let slots wait for the next iteration."""
        wanted = threading.Event()
        with self._lock:
            self._waiting[pool] = wanted
        threading.Thread(target=self._end_later, args=(pool, wanted), name="ekorn-idle-slots", daemon=True).start()

    def end_all(self) -> None:
        """End all idle slots."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            for wanted in waiting.values():
                wanted.set()
        for pool in waiting:
            pool.end()

    def _end_later(self, pool: ReusedSlotPool, wanted: threading.Event) -> None:
        wanted.wait(self._seconds)
        with self._lock:
            if wanted.is_set():
                return
            del self._waiting[pool]
        pool.end()


IDLE_POOLS = IdlePools(seconds=10.0)
atexit.register(IDLE_POOLS.end_all)
