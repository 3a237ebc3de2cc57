"""The slots of a job that runs on the driver's own machine: child processes, reached over Unix sockets."""

from __future__ import annotations

import itertools
import logging
import os
import secrets
import sys
import tempfile
from collections.abc import Callable

from tamias.config.python_dependencies import PythonDependencies
from tamias.engine.slots.child_process import ChildSlotProcess
from tamias.engine.slots.event_queue import EventQueue
from tamias.engine.slots.interpreter import prepare_interpreter
from tamias.engine.slots.slot_handle import Heartbeat, SlotHandle
from tamias.engine.slots.spare_slots import SpareSlots
from tamias.slot.messages import Exit
from tamias.slot.slot_config import SlotConfig
from tamias.slot.slot_events import SlotActivity
from tamias.storage.scratch_folders import LocalFolder

_log = logging.getLogger(__name__)
_PREFIX = "tamias-job-"
_SOCKET_PATH_BYTES = 107  # the longest path that a Unix socket can have
_SOCKET_NAME_BYTES = 27  # room for a name such as s12-345 in the folder


class LocalSlotPool:
    """Starts as many slot processes as a job needs, and replaces those that are gone."""

    shares_disk = True

    def __init__(
        self,
        count: int,
        dependencies: PythonDependencies,
        *,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        self.secret = secrets.token_bytes(32)
        self.on_lost: Callable[[int], None] = lambda number: None
        self.on_activity: Callable[[int, SlotActivity], None] = lambda number, activity: None
        self._heartbeat = heartbeat or Heartbeat()
        self.events = EventQueue()
        self._count = count
        self._scratch = _short_folder()
        self.folder = self._scratch.path
        try:
            self._interpreter = prepare_interpreter(dependencies, self.folder)
        except BaseException:
            self._scratch.close()
            raise
        self._generations = itertools.count(1)
        self.slots: list[SlotHandle] = []
        self._spare = SpareSlots()
        self._starting: list[ChildSlotProcess] | None = None

    def begin_start(self) -> None:
        """Start all processes without waiting for them, so that Spark can start meanwhile."""
        self._starting = [self._start(number) for number in range(self._count)]

    def ensure(self) -> list[int]:
        if not self.slots:
            processes = self._starting or [self._start(number) for number in range(self._count)]
            self._starting = None
            self.slots = [self._connected(number, process) for number, process in enumerate(processes)]
            return list(range(self._count))
        replaced: list[int] = []
        for slot in list(self.slots):
            if not slot.process.alive:
                slot.close()
                _log.info("slot %d is replaced: %s", slot.number, slot.process.wait_for_end())
                self.slots[slot.number] = self._connected(slot.number, self._start(slot.number))
                replaced.append(slot.number)
        added = {number: self._start(number) for number in range(len(self.slots), self._count)}
        self.slots = [*self.slots, *(self._connected(number, process) for number, process in added.items())]
        return [*replaced, *added]

    def prepare(self, count: int) -> None:
        in_use = len(self.slots)
        processes = {number: self._start(number) for number in self._spare.missing(in_use, count)}
        try:
            for number in list(processes):
                self._spare.add(self._connected(number, processes[number]))
                del processes[number]
        finally:
            for process in processes.values():  # one before them did not start
                process.end()

    def resize(self, count: int) -> None:
        self._count = count
        if self.slots:
            self.slots = self._spare.resized(self.slots, count)

    def _start(self, number: int) -> ChildSlotProcess:
        path = [*self._interpreter.path, *(p or os.getcwd() for p in sys.path)]
        config = SlotConfig(
            slot=number,
            address=os.path.join(self.folder, f"s{number}-{next(self._generations)}"),
            secret=self.secret,
            folder=self.folder,
            python_path=path,
            heartbeat_s=self._heartbeat.interval_s,
        )
        environment = os.environ | dict(self._interpreter.variables)
        # `-m tamias...` must find the package before the slot has been told the driver's path.
        environment["PYTHONPATH"] = os.pathsep.join(path)
        environment.setdefault("PYTHONHASHSEED", "0")
        return ChildSlotProcess(config, self._interpreter, environment)

    def _connected(self, number: int, process: ChildSlotProcess) -> SlotHandle:
        slot = SlotHandle(number, process.wait_ready(), self.secret, process)
        slot.connect(self.events.put, self.on_activity, self._lost, self._heartbeat)
        return slot

    def _lost(self, number: int) -> None:
        if number < len(self.slots):  # else the slot is spare, and nothing runs in it
            self.on_lost(number)  # who is told may change while the slots live

    def shutdown(self) -> None:
        """Make all processes end and remove the folder."""
        self.events.end()
        self._spare.end()
        for slot in self.slots:
            slot.tell(Exit())
        for slot in self.slots:
            slot.close()
        for process in self._starting or ():
            process.end()
        self.slots, self._starting = [], None
        self._scratch.close()


def _short_folder() -> LocalFolder:
    """Make a private folder whose path leaves room for a socket's name."""
    folder = LocalFolder(tempfile.gettempdir(), _PREFIX)
    if len(os.fsencode(folder.path)) > _SOCKET_PATH_BYTES - _SOCKET_NAME_BYTES:
        folder.close()
        folder = LocalFolder("/tmp", _PREFIX)
    return folder
