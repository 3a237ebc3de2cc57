"""The slots of a job that runs on the driver's own machine: child processes, reached over Unix sockets."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import tempfile

from ekorn.config.settings.deployment_settings import PythonDependencies
from ekorn.engine.slots.child_process import ChildSlotProcess
from ekorn.engine.slots.interpreter import prepare_interpreter
from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.storage.scratch_folders import LocalFolder

_PREFIX = "ekorn-job-"
_SOCKET_PATH_BYTES = 107  # the longest path that a Unix socket can have
_SOCKET_NAME_BYTES = 27  # room for a name such as s12-345 in the folder


class LocalSlotPool(SlotPool):
    """Starts slots as child processes.

    Args:
        count: The number of slots.
        dependencies: What the interpreter of the slots needs.
        heartbeat: When a silent slot is given up.
    """

    shares_disk = True

    def __init__(
        self,
        count: int,
        dependencies: PythonDependencies,
        *,
        heartbeat: Heartbeat | None = None,
    ) -> None:
        super().__init__(count, heartbeat or Heartbeat())
        self._scratch = _short_folder()
        self.folder = self._scratch.path
        try:
            self._interpreter = prepare_interpreter(dependencies, self.folder)
        except BaseException:
            self._scratch.close()
            raise
        self._generations = itertools.count(1)
        self._starting: dict[int, ChildSlotProcess] = {}  # by the number of the slot, until `ensure`

    def begin_start(self) -> None:
        """Start all processes without waiting for them, so that Spark can start meanwhile."""
        for number in range(self._count):
            self._starting[number] = self._process(number)

    def begin_replacing(self) -> None:
        for slot in self.slots:
            if not slot.process.alive and slot.number not in self._starting:
                with contextlib.suppress(OSError):  # `ensure` tries it again, and reports it
                    self._starting[slot.number] = self._process(slot.number)

    def ensure(self) -> list[int]:
        started = super().ensure()
        self._end_starting()  # another number of slots is wanted by now
        return started

    def _start(self, numbers: list[int], started: dict[int, SlotHandle]) -> None:
        """Start slots and connect to them. If one of them cannot be started, all of them end."""
        processes: dict[int, ChildSlotProcess] = {}
        try:
            for number in numbers:
                begun = self._starting.pop(number, None)
                processes[number] = begun if begun is not None else self._process(number)
            for number, process in processes.items():
                started[number] = self._connect(SlotHandle(number, process.wait_ready(), self.secret, process))
        except BaseException:
            for slot in started.values():
                slot.close()
            started.clear()
            for process in processes.values():
                process.end()
            raise

    def _process(self, number: int) -> ChildSlotProcess:
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

    def _end_starting(self) -> None:
        starting, self._starting = self._starting, {}
        for process in starting.values():
            process.end()

    def _release(self) -> None:
        self._end_starting()
        self._scratch.close()


def _short_folder() -> LocalFolder:
    """Make a private folder whose path leaves room for a socket's name."""
    folder = LocalFolder(tempfile.gettempdir(), _PREFIX)
    if len(os.fsencode(folder.path)) > _SOCKET_PATH_BYTES - _SOCKET_NAME_BYTES:
        folder.close()
        folder = LocalFolder("/tmp", _PREFIX)
    return folder
