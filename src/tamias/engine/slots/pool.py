"""The driver's side of the slots: starting processes, talking to them, noticing when one is gone.

A slot is gone when its process has ended, or when nothing was heard of it for the heartbeat's timeout: then it may
hang, be stopped, or live on a machine that cannot be reached, and whatever it does later must not matter. It is
killed where it can be, and replaced in any case.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import queue
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tamias.config.python_dependencies import PythonDependencies
from tamias.engine.slots.interpreter import Interpreter, prepare_interpreter
from tamias.errors import DeploymentError, SlotLostError
from tamias.slot.deployment import SlotEvent
from tamias.slot.link import Address, Link, connect
from tamias.slot.messages import Done, Exit, Request, Subscribe
from tamias.slot.server import SlotConfig
from tamias.types.by_value import dumps

_log = logging.getLogger(__name__)
_START_S = 60.0


@dataclass(frozen=True)
class Heartbeat:
    """How often a slot shows that it lives, and how long it may be silent."""

    interval_s: float = 10.0
    timeout_s: float = 50.0


class Process(Protocol):
    """The process of a slot, here or elsewhere."""

    pid: int

    @property
    def alive(self) -> bool:
        """Whether it runs."""

    def how_it_ended(self) -> str | None:
        """Words for its end, or None while it runs."""

    def end(self) -> None:
        """Make sure that it ends."""

    def give_up(self, why: str) -> None:
        """It is of no use any more, whether it can be made to end or not: from now on it is not alive."""


class Slot:
    """One slot process, as the driver sees it."""

    def __init__(self, number: int, address: Address, secret: bytes, process: Process) -> None:
        self.number = number
        self.address = address
        self.process = process
        self._secret = secret
        self._control: Link | None = None
        self._over = False  # we are about to let it go: that its connections end is no news

    def connect(
        self, on_event: Callable[[SlotEvent], None], on_lost: Callable[[int], None], heartbeat: Heartbeat
    ) -> None:
        """Open the connections for requests and for events.

        Raises:
            SlotLostError: It is gone already; its process, if there is one, is ended.
        """
        try:
            self._control = connect(self.address, self._secret)
            events = connect(self.address, self._secret)
            events.send(dumps(Subscribe()))
            events.receive()
        except (OSError, EOFError) as error:
            self.close()
            raise SlotLostError(self.number, f"it could not be reached: {error}") from error
        events.settimeout(heartbeat.timeout_s)
        threading.Thread(
            target=self._listen, args=(events, on_event, on_lost), name=f"slot-{self.number}-events", daemon=True
        ).start()

    def _listen(self, link: Link, on_event: Callable[[SlotEvent], None], on_lost: Callable[[int], None]) -> None:
        """Hand on what the slot reports, until it is gone or too long silent."""
        try:
            while True:
                message = link.receive()
                if message:  # an empty one is a heartbeat
                    on_event(pickle.loads(message))
        except TimeoutError:
            self.process.give_up("it has not been heard of for longer than heartbeat.timeout")
            _log.warning("slot %d is given up: %s", self.number, self.process.how_it_ended())
            if self._control is not None:
                self._control.close()
            on_lost(self.number)
        except (OSError, EOFError) as error:
            if self._give_up_if_alive(error):  # otherwise it is gone, and requests to it will say so
                on_lost(self.number)
        finally:
            link.close()

    def _give_up_if_alive(self, error: BaseException) -> bool:
        """A slot that lives but has lost a connection will not be heard of again, or not hear of us: replace it."""
        # A process that dies loses its connections first; each look waits a moment for its end, which says more.
        if self._over or any(self.process.how_it_ended() is not None for _ in range(4)):
            return False
        self.process.give_up(f"a connection to it broke: {error}")
        _log.warning("slot %d is given up: %s", self.number, self.process.how_it_ended())
        if self._control is not None:
            self._control.close()
        return True

    def tell(self, request: Request) -> None:
        """Send a request; `answer` waits for its end."""
        self._over |= isinstance(request, Exit)
        if self._control is not None:
            with contextlib.suppress(OSError):  # `answer` reports a slot that is gone
                self._control.send(dumps(request))

    def answer(self, timeout_s: float | None = None) -> BaseException | None:
        """Wait for the end of the request sent last; the error it ended with. A slot that is gone is one."""
        try:
            if self._control is None:
                raise EOFError("not connected")
            self._control.settimeout(timeout_s)
            done: Done = pickle.loads(self._control.receive())
            return done.error
        except TimeoutError as error:
            return SlotLostError(self.number, self.process.how_it_ended() or str(error))
        except (OSError, EOFError) as error:
            self._give_up_if_alive(error)
            return SlotLostError(self.number, self.process.how_it_ended() or str(error))

    def close(self) -> None:
        """Drop the connection and make sure that the process ends."""
        self._over = True
        if self._control is not None:
            self._control.close()
        self.process.end()


class SlotProcess:
    """The operating system's side of a slot that this process started."""

    def __init__(self, config: SlotConfig, interpreter: Interpreter, environment: dict[str, str]) -> None:
        ready, theirs = os.pipe()
        self._ready = ready
        self._process = subprocess.Popen(
            [interpreter.executable, "-m", "tamias.slot.slot_main"],
            cwd=interpreter.working_directory,
            stdin=subprocess.PIPE,
            pass_fds=(theirs,),
            env=environment | {"TAMIAS_READY_FD": str(theirs)},
            start_new_session=True,  # ctrl-C is for the driver, which ends its slots in order
        )
        os.close(theirs)
        data = pickle.dumps(config)
        assert self._process.stdin is not None
        self._process.stdin.write(len(data).to_bytes(8, "little") + data)
        self._process.stdin.flush()
        self.pid = self._process.pid
        self._given_up: str | None = None

    def wait_ready(self) -> Address:
        """Wait until the slot listens; where it does."""
        with os.fdopen(self._ready, "rb") as pipe:
            data = _read_within(pipe.fileno(), _START_S)
        if not data:
            raise DeploymentError(f"a slot process did not start: {self.how_it_ended() or 'no answer in time'}")
        address: Address = pickle.loads(data)
        return address

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def how_it_ended(self) -> str | None:
        """Words for the process's end, or None while it runs."""
        if self._given_up is not None:
            return f"its process {self.pid} was killed: {self._given_up}"
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=0.5)
            return (
                f"its process {self.pid} was killed by signal {-code}"
                if code < 0
                else f"its process exited with {code}"
            )
        return None

    def end(self) -> None:
        """Close the pipe that keeps the slot alive; kill it if it does not go."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def give_up(self, why: str) -> None:
        """Kill it, even if it is stopped."""
        self._given_up = why
        self._process.kill()
        self._process.wait()


def _read_within(fd: int, seconds: float) -> bytes:
    data = b""
    while select.select([fd], [], [], seconds)[0]:
        part = os.read(fd, 65536)
        if not part:
            return data
        data += part
    return b""


class SlotPool:
    """The slots of one job: as many as it needs, one replaced when it is gone."""

    shares_disk = True

    def __init__(
        self, count: int, wanted: PythonDependencies, *, heartbeat: Heartbeat | None = None, log_file: str | None = None
    ) -> None:
        self.secret = secrets.token_bytes(32)
        self.on_lost: Callable[[int], None] = lambda number: None
        self._heartbeat = heartbeat or Heartbeat()
        self.events: queue.SimpleQueue[SlotEvent | None] = queue.SimpleQueue()
        self._count = count
        self._log_file = log_file
        self.folder = _short_folder()
        try:
            self._interpreter = prepare_interpreter(wanted, self.folder)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._generation = 0
        self.slots: list[Slot] = []
        self._starting: list[SlotProcess] | None = None

    def begin_start(self) -> None:
        """Start all processes, without waiting for them: Spark starts meanwhile."""
        self._starting = [self._start(number) for number in range(self._count)]

    def ensure(self) -> list[int]:
        """Have every slot running and connected; the numbers of those that were (re)started."""
        fresh: list[int] = []
        if not self.slots:
            processes = self._starting or [self._start(number) for number in range(self._count)]
            self._starting = None
            self.slots = [self._connected(number, process) for number, process in enumerate(processes)]
            return list(range(self._count))
        for slot in list(self.slots):
            if not slot.process.alive:
                slot.close()
                _log.info("slot %d is replaced: %s", slot.number, slot.process.how_it_ended())
                self.slots[slot.number] = self._connected(slot.number, self._start(slot.number))
                fresh.append(slot.number)
        return fresh

    def _start(self, number: int) -> SlotProcess:
        self._generation += 1
        path = [*self._interpreter.path, *(p or os.getcwd() for p in sys.path)]
        config = SlotConfig(
            slot=number,
            address=os.path.join(self.folder, f"s{number}-{self._generation}"),
            secret=self.secret,
            folder=self.folder,
            python_path=path,
            heartbeat_s=self._heartbeat.interval_s,
            log_file=self._log_file,
        )
        environment = os.environ | dict(self._interpreter.variables)
        # `-m tamias...` must find the package before the slot has been told the driver's path.
        environment["PYTHONPATH"] = os.pathsep.join(path)
        environment.setdefault("PYTHONHASHSEED", "0")
        return SlotProcess(config, self._interpreter, environment)

    def _connected(self, number: int, process: SlotProcess) -> Slot:
        slot = Slot(number, process.wait_ready(), self.secret, process)
        slot.connect(self.events.put, self.on_lost, self._heartbeat)
        return slot

    def shutdown(self) -> None:
        """End all processes and remove the folder."""
        for slot in self.slots:
            slot.tell(Exit())
        for slot in self.slots:
            slot.close()
        for process in self._starting or ():
            process.end()
        self.slots, self._starting = [], None
        shutil.rmtree(self.folder, ignore_errors=True)


def _short_folder() -> str:
    """A private folder whose path leaves room for a socket's name: at most 107 bytes in all."""
    folder = tempfile.mkdtemp(prefix="tamias-")
    if len(os.fsencode(folder)) > 80:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="tamias-", dir="/tmp")
    return folder
