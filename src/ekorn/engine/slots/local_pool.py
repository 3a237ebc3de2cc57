"""The slots of a job that runs on the driver's own machine: child processes, reached over Unix sockets."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
import sys
import tempfile
from collections.abc import Callable

from ekorn.config.settings.deployment_settings import PythonDependencies
from ekorn.engine.slots.child_process import ChildSlotProcess
from ekorn.engine.slots.event_queue import EventQueue
from ekorn.engine.slots.interpreter import prepare_interpreter
from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.engine.slots.spare_slots import SpareSlots
from ekorn.slot_protocol.messages import Exit
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.slot_protocol.slot_events import SlotActivity
from ekorn.storage.scratch_folders import LocalFolder

_log = logging.getLogger(__name__)
_PREFIX = "ekorn-job-"
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
        self._starting: dict[int, ChildSlotProcess] = {}  # by the number of the slot, until `ensure`

    def begin_start(self) -> None:
        """Start all processes without waiting for them, so that Spark can start meanwhile."""
        for number in range(self._count):
            self._starting[number] = self._start(number)

    def begin_replacing(self) -> None:
        for slot in self.slots:
            if not slot.process.alive and slot.number not in self._starting:
                with contextlib.suppress(OSError):  # `ensure` tries it again, and reports it
                    self._starting[slot.number] = self._start(slot.number)

    def ensure(self) -> list[int]:
        gone = [slot for slot in self.slots if not slot.process.alive]
        for slot in gone:
            slot.close()
            _log.info("slot %d is replaced: %s", slot.number, slot.process.wait_for_end())
        present = {slot.number: slot for slot in self.slots if slot not in gone}
        missing = [number for number in range(self._count) if number not in present]
        starting, self._starting = self._starting, {}
        for number in starting.keys() - set(missing):
            starting.pop(number).end()  # another number of slots is wanted by now
        present |= self._started(missing, starting)
        self.slots = [present[number] for number in range(self._count)]
        return missing

    def prepare(self, count: int) -> None:
        for slot in self._started(self._spare.missing(len(self.slots), count), {}).values():
            self._spare.add(slot)

    def _started(self, numbers: list[int], starting: dict[int, ChildSlotProcess]) -> dict[int, SlotHandle]:
        """Start slots and connect to them. If one of them cannot be started, all of them end.

        Args:
            numbers: The slots.
            starting: Processes that were started already.
        """
        processes, slots = dict(starting), dict[int, SlotHandle]()
        try:
            for number in numbers:
                if number not in processes:
                    processes[number] = self._start(number)
            for number in numbers:
                slots[number] = self._connected(number, processes[number])
        except BaseException:
            for slot in slots.values():
                slot.close()
            for process in processes.values():
                process.end()
            raise
        return slots

    def upcoming(self, count: int) -> list[SlotHandle]:
        return self._spare.upcoming(list(self.slots), count)

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
        # `-m ekorn...` must find the package before the slot has been told the driver's path.
        environment["PYTHONPATH"] = os.pathsep.join(path)
        environment.setdefault("PYTHONHASHSEED", "0")
        return ChildSlotProcess(config, self._interpreter, environment)

    def _connected(self, number: int, process: ChildSlotProcess) -> SlotHandle:
        slot = SlotHandle(number, process.wait_ready(), self.secret, process)
        slot.connect(self.events.put, self.on_activity, self._lost, self._heartbeat)
        return slot

    def _lost(self, number: int) -> None:
        if number < len(self.slots):  # else the slot is spare, and nothing runs in it
            self.on_lost(number)  # read when it is called: idle slots change their owner

    def shutdown(self) -> None:
        """Make all processes end and remove the folder."""
        self.events.end()
        self._spare.end()
        for slot in self.slots:
            slot.tell(Exit())
        for slot in self.slots:
            slot.close()
        for process in self._starting.values():
            process.end()
        self.slots, self._starting = [], {}
        self._scratch.close()


def _short_folder() -> LocalFolder:
    """Make a private folder whose path leaves room for a socket's name."""
    folder = LocalFolder(tempfile.gettempdir(), _PREFIX)
    if len(os.fsencode(folder.path)) > _SOCKET_PATH_BYTES - _SOCKET_NAME_BYTES:
        folder.close()
        folder = LocalFolder("/tmp", _PREFIX)
    return folder
