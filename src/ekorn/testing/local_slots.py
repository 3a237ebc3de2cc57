"""Slots in this process, for the resident tables of iterations that run without Spark."""

from __future__ import annotations

import os
import tempfile

from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.links.link import Link
from ekorn.slot.slot_server import SlotServer
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.storage.scratch_folders import LocalFolder

__all__ = ["InProcessSlots"]


class _Server:
    """A slot's server as `SlotHandle` sees a process."""

    pid = os.getpid()

    def __init__(self, server: SlotServer) -> None:
        self._server = server
        self.events: Link | None = None  # the connection of the handle

    @property
    def alive(self) -> bool:
        return not self._server.ended.is_set()

    def wait_for_end(self) -> str | None:
        return None if self.alive else "its server was stopped"

    def end(self) -> None:
        self._server.stop()
        if self.events is not None:
            self.events.shut_down()  # a process that ends does it

    def give_up(self, why: str) -> None:
        self._server.stop()


class InProcessSlots(SlotPool):
    """A pool of slots that are threads of this process."""

    shares_disk = True

    def __init__(self, count: int) -> None:
        super().__init__(count, Heartbeat())
        self._scratch = LocalFolder(tempfile.gettempdir(), "ekorn-job-")

    def begin_replacing(self) -> None:
        """Do nothing: a slot starts at once."""

    def prepare(self, count: int) -> None:
        """Do nothing: a slot starts at once."""

    def _start(self, numbers: list[int], started: dict[int, SlotHandle]) -> None:
        for number in numbers:
            folder = self._scratch.path
            server = SlotServer(SlotConfig(number, os.path.join(folder, f"s{number}"), self.secret, folder, []))
            server.start()
            process = _Server(server)
            started[number] = self._connect(SlotHandle(number, server.address, self.secret, process))
            process.events = started[number].events

    def _release(self) -> None:
        self._scratch.close()
