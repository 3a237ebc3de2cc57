"""The slots of a job that runs on the driver's own machine: child processes, reached over Unix sockets."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

from ekorn.config.settings.deployment_settings import PythonDependencies
from ekorn.engine.slots.interpreter import Interpreter, prepare_interpreter
from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.engine.slots.slot_output import SlotOutput
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.errors import DeploymentError
from ekorn.links.link import Address
from ekorn.slot_protocol.slot_config import SlotConfig
from ekorn.storage.result_modes import PRIVATE_UMASK, with_users_umask
from ekorn.storage.scratch_folders import LocalFolder

_PREFIX = "ekorn-job-"
_SOCKET_PATH_BYTES = 107  # the longest path that a Unix socket can have
_SOCKET_NAME_BYTES = 27  # room for a name such as s12-345 in the folder
_START_S = 60.0  # until a process that was started listens


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
        self._output = SlotOutput()
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
        here = [p or os.getcwd() for p in sys.path]
        config = SlotConfig(
            slot=number,
            address=os.path.join(self.folder, f"s{number}-{next(self._generations)}"),
            secret=self.secret,
            folder=self.folder,
            python_path=[*self._interpreter.path, *here],
            heartbeat_s=self._heartbeat.interval_s,
        )
        environment = os.environ | dict(self._interpreter.variables)
        # `-m ekorn...` must find the package before the slot has been told its path. The job's files and requirements
        # come later: a requirement must not replace the cloudpickle that the deployment was pickled with.
        environment["PYTHONPATH"] = os.pathsep.join(here)
        environment.setdefault("PYTHONHASHSEED", "0")
        return ChildSlotProcess(config, self._interpreter, environment, self._output)

    def _end_starting(self) -> None:
        starting, self._starting = self._starting, {}
        for process in starting.values():
            process.end()

    def _release(self) -> None:
        self._end_starting()
        self._output.close()
        self._scratch.close()


def _short_folder() -> LocalFolder:
    """Make a private folder whose path leaves room for a socket's name."""
    folder = LocalFolder(tempfile.gettempdir(), _PREFIX)
    if len(os.fsencode(folder.path)) > _SOCKET_PATH_BYTES - _SOCKET_NAME_BYTES:
        folder.close()
        folder = LocalFolder("/tmp", _PREFIX)
    return folder


class ChildSlotProcess:
    """Starts a slot process, and keeps the pipe on which its life depends."""

    def __init__(
        self, config: SlotConfig, interpreter: Interpreter, environment: dict[str, str], output: SlotOutput
    ) -> None:
        ready, theirs = os.pipe()
        self._ready = ready
        self._process = subprocess.Popen(
            [interpreter.executable, "-m", "ekorn.slot.slot_main"],
            cwd=interpreter.working_directory,
            stdin=subprocess.PIPE,
            stdout=output.stdout,
            stderr=output.stderr,
            pass_fds=(theirs,),
            env=with_users_umask(environment) | {"EKORN_READY_FD": str(theirs)},
            umask=PRIVATE_UMASK,
            # ctrl-C is for the driver, which ends its slots in order. The children of a slot are in its process group.
            start_new_session=True,
        )
        os.close(theirs)
        data = pickle.dumps(config)
        assert self._process.stdin is not None
        self._process.stdin.write(len(data).to_bytes(8, "little") + data)
        self._process.stdin.flush()
        self.pid = self._process.pid
        self._given_up: str | None = None
        self._reaping = threading.Lock()

    def wait_ready(self) -> Address:
        """Wait until the slot listens; return its address.

        Raises:
            DeploymentError: The process ended, or did not listen in time.
        """
        with os.fdopen(self._ready, "rb") as pipe:
            data = _read_within(pipe.fileno(), _START_S)
        if not data:
            raise DeploymentError(f"a slot process did not start: {self.wait_for_end() or 'no answer in time'}")
        address: Address = pickle.loads(data)
        return address

    @property
    def alive(self) -> bool:
        return self._given_up is None and not self._has_ended()

    def wait_for_end(self) -> str | None:
        if self._given_up is not None:
            return f"its process {self.pid} was killed: {self._given_up}"
        if not self._wait(0.5):
            return None
        code = self._process.returncode
        if code < 0:
            return f"its process {self.pid} was killed by signal {-code}"
        return f"its process exited with code {code}"

    def end(self) -> None:
        """Close the pipe that keeps the slot alive; kill the process if it does not end."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # the slot has closed its end already
            self._process.stdin.close()
        if not self._wait(10.0):
            self._kill()

    def give_up(self, why: str) -> None:
        """Kill the process, even if it is stopped."""
        self._given_up = why
        self._kill()

    def _kill(self) -> None:
        self._process.kill()
        self._wait(None)

    def _wait(self, seconds: float | None) -> bool:
        """Wait for the end of the process; return whether it has ended."""
        until = None if seconds is None else time.monotonic() + seconds
        delay_s = 0.0005
        while not self._has_ended():
            if until is not None and time.monotonic() >= until:
                return False
            time.sleep(delay_s)
            delay_s = min(delay_s * 2, 0.05)
        return True

    def _has_ended(self) -> bool:
        """Return whether the process has ended. If it has, processes that user code forked in it are killed.

        They are killed before the process is reaped: until then no other process group can have its number.
        """
        if self._process.returncode is not None:
            return True
        with self._reaping:
            if self._process.returncode is None:
                with contextlib.suppress(ChildProcessError):  # the program waits for every child and has reaped it
                    if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                        return False
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
                self._process.wait()
        return True


def _read_within(fd: int, seconds: float) -> bytes:
    """Read a pipe to its end; return nothing if it is silent for that long."""
    data = b""
    while select.select([fd], [], [], seconds)[0]:
        part = os.read(fd, 65536)
        if not part:
            return data
        data += part
    return b""
