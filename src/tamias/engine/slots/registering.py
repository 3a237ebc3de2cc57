"""Slots that somebody else starts, anywhere: they call the driver and register with it.

Where a slot lands matters for speed only: it is reached over TCP from anywhere. Its life hangs on the connection it
opened to the driver at its start: when that ends, so does the slot, whatever became of the process that started it;
and when the slot ends, the driver sees it there. A slot that neither ends nor answers is given up: the driver closes
that connection, and the slot, should it ever wake up, finds itself alone.
"""

from __future__ import annotations

import os
import pickle
import queue
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tamias.engine.slots.pool import Heartbeat, Slot
from tamias.errors import DeploymentError
from tamias.slot.deployment import SlotEvent
from tamias.slot.link import Address, Link, accept, listen
from tamias.slot.messages import Exit
from tamias.slot.server import Registration, SlotConfig

_REGISTER_S = 120.0


class RemoteProcess:
    """A slot's process on another machine, known by the connection it keeps open."""

    def __init__(self, registration: Registration, lifeline: Link) -> None:
        self.pid = registration.pid
        self.host = registration.host
        self._lifeline = lifeline
        self._gone = threading.Event()
        self._given_up: str | None = None
        threading.Thread(target=self._watch, name=f"slot-{registration.slot}-lifeline", daemon=True).start()

    def _watch(self) -> None:
        try:
            while True:
                self._lifeline.receive()
        except (OSError, EOFError):
            self._gone.set()

    @property
    def alive(self) -> bool:
        """Whether the connection stands."""
        return not self._gone.is_set()

    def how_it_ended(self) -> str | None:
        """Words for the slot's end, or None while it lives."""
        if self._given_up is not None:
            return f"its process {self.pid} on {self.host} was given up: {self._given_up}"
        # A killed process's connections end at once, but on another thread: give that a moment.
        return f"its process {self.pid} on {self.host} is gone" if self._gone.wait(0.5) else None

    def end(self) -> None:
        """Let go of the slot: it ends by itself."""
        self._lifeline.close()

    def give_up(self, why: str) -> None:
        """Let go of it for good; it may not even notice."""
        self._given_up = why
        self._gone.set()
        self._lifeline.close()


@dataclass(frozen=True)
class Launch:
    """Starts slot processes that outlive the caller. Plain data: runs in an executor's Python worker."""

    driver: Address
    secret: bytes
    heartbeat_s: float

    def __call__(self, numbers: Iterable[int]) -> Iterator[int]:
        for number in numbers:
            self._start(number)
            yield number

    def _start(self, number: int) -> None:
        folder = tempfile.mkdtemp(prefix="tamias-")
        config = SlotConfig(
            slot=number,
            address=("", 0),
            secret=self.secret,
            folder=folder,
            python_path=list(sys.path),
            heartbeat_s=self.heartbeat_s,
            log_file=os.path.join(folder, "slot.log"),
            driver=self.driver,
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "tamias.slot.slot_main"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            start_new_session=True,
        )
        data = pickle.dumps(config)
        assert process.stdin is not None
        process.stdin.write(len(data).to_bytes(8, "little") + data)
        process.stdin.close()


class RegisteringSlots:
    """The slots of one job, started by `launch` and registered here.

    Args:
        count: How many.
        host: This machine's address, as the slots can reach it.
        launch: Has the given slots started somewhere; returns when that is under way.
        heartbeat: When a silent one is given up.
    """

    shares_disk = False

    def __init__(
        self, count: int, host: str, launch: Callable[[Launch, list[int]], None], heartbeat: Heartbeat
    ) -> None:
        self.secret = secrets.token_bytes(32)
        self.events: queue.SimpleQueue[SlotEvent | None] = queue.SimpleQueue()
        self.slots: list[Slot] = []
        self.on_lost: Callable[[int], None] = lambda number: None
        self._count = count
        self._launch = launch
        self._heartbeat = heartbeat
        self._arrived: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        self._listener = listen((host, 0))
        self._address: Address = self._listener.getsockname()[:2]
        threading.Thread(target=self._register, name="slot-registration", daemon=True).start()

    def ensure(self) -> list[int]:
        """Have every slot running and connected; the numbers of those that were (re)started."""
        present = {slot.number: slot for slot in self.slots if slot.process.alive}
        missing = [n for n in range(self._count) if n not in present]
        if missing:
            for slot in self.slots:
                if slot.number in missing:
                    slot.close()
            self._launch(Launch(self._address, self.secret, self._heartbeat.interval_s), missing)
            deadline = time.monotonic() + _REGISTER_S
            while len(present) < self._count:
                try:
                    slot = self._arrived.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    raise DeploymentError(
                        f"only {len(present)} of {self._count} slots registered within {_REGISTER_S:.0f} s; can they "
                        f"reach the driver at {self._address[0]}:{self._address[1]}, and import tamias?"
                    ) from None
                slot.connect(self.events.put, self.on_lost, self._heartbeat)
                present[slot.number] = slot
            self.slots = [present[n] for n in range(self._count)]
        return missing

    def _register(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return  # the job is over
            threading.Thread(target=self._admit, args=(sock,), daemon=True).start()

    def _admit(self, sock: socket.socket) -> None:
        link = accept(sock, self.secret)
        if link is None:
            return
        try:
            registration: Registration = pickle.loads(link.receive())
        except (OSError, EOFError):
            return
        process = RemoteProcess(registration, link)
        self._arrived.put(Slot(registration.slot, registration.address, self.secret, process))

    def shutdown(self) -> None:
        """End all slots."""
        for slot in self.slots:
            slot.tell(Exit())
        for slot in self.slots:
            slot.close()
        self._listener.close()
        self.slots = []
