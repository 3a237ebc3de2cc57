"""Slots in this process, for the resident tables of iterations that run without Spark."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable

from ekorn.engine.slots.event_queue import EventQueue
from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.slot.slot_server import SlotServer
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.slot_events import SlotActivity
from ekorn.storage.scratch_folders import LocalFolder

__all__ = ["InProcessSlots"]


class _Server:
    """A slot's server as `SlotHandle` sees a process."""

    pid = os.getpid()

    def __init__(self, server: SlotServer) -> None:
        self._server = server

    @property
    def alive(self) -> bool:
        return not self._server.ended.is_set()

    def wait_for_end(self) -> str | None:
        return None if self.alive else "its server was stopped"

    def end(self) -> None:
        self._server.stop()

    def give_up(self, why: str) -> None:
        self._server.stop()


class InProcessSlots:
    """A pool of slots that are threads of this process."""

    shares_disk = True

    def __init__(self, count: int) -> None:
        self.secret = secrets.token_bytes(32)
        self.slots: list[SlotHandle] = []
        self.events = EventQueue()
        self.on_lost: Callable[[int], None] = lambda number: None
        self.on_activity: Callable[[int, SlotActivity], None] = lambda number, activity: None
        self._count = count
        self._scratch = LocalFolder(tempfile.gettempdir(), "ekorn-job-")

    def ensure(self) -> list[int]:
        started = [number for number in range(self._count) if number >= len(self.slots)]
        for number in started:
            folder = self._scratch.path
            server = SlotServer(SlotConfig(number, os.path.join(folder, f"s{number}"), self.secret, folder, []))
            server.start()
            slot = SlotHandle(number, server.address, self.secret, _Server(server))
            slot.connect(self.events.put, self.on_activity, self.on_lost, Heartbeat())
            self.slots.append(slot)
        return started

    def begin_replacing(self) -> None:
        """Do nothing: a slot starts at once."""

    def prepare(self, count: int) -> None:
        """Do nothing: a slot starts at once."""

    def upcoming(self, count: int) -> list[SlotHandle]:
        return self.slots[:count]

    def resize(self, count: int) -> None:
        self._count = count
        surplus, self.slots = self.slots[count:], self.slots[:count]
        self._end(surplus)

    def shutdown(self) -> None:
        self.events.end()
        self._end(self.slots)
        self.slots = []
        self._scratch.close()

    @staticmethod
    def _end(slots: list[SlotHandle]) -> None:
        for slot in slots:
            slot.close()
            if slot.events is not None:
                slot.events.shut_down()  # a process that ends does it
