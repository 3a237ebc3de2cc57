"""Slots on a cluster: a Spark job starts them beside the executors, and they register with the driver.

Where a slot lands is Spark's choice and matters for speed only: tasks reach it over TCP from anywhere. Its life
hangs on the connection it opened to the driver at its start: when that ends, so does the slot, whatever became
of the executor that started it; and when the slot ends, the driver sees it there.
"""

from __future__ import annotations

import logging
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
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamias.engine.base import SlotEvent
from tamias.engine.slots.dependencies import Dependencies
from tamias.engine.slots.link import Address, Link, accept, listen
from tamias.engine.slots.messages import Exit
from tamias.engine.slots.pool import Slot
from tamias.engine.slots.slot import Registration, SlotConfig
from tamias.errors import DeploymentError

_log = logging.getLogger(__name__)
_REGISTER_S = 120.0


class RemoteProcess:
    """A slot's process on another machine, known by the connection it keeps open."""

    def __init__(self, registration: Registration, lifeline: Link) -> None:
        self.pid = registration.pid
        self.host = registration.host
        self._lifeline = lifeline
        self._gone = threading.Event()
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
        # A killed process's connections end at once, but on another thread: give that a moment.
        return f"its process {self.pid} on {self.host} is gone" if self._gone.wait(0.5) else None

    def end(self) -> None:
        """Let go of the slot: it ends by itself."""
        self._lifeline.close()


class ClusterSlots:
    """The slots of one job on a cluster."""

    def __init__(self, count: int, context: Any, wanted: Dependencies) -> None:
        self.secret = secrets.token_bytes(32)
        self.events: queue.SimpleQueue[SlotEvent | None] = queue.SimpleQueue()
        self.slots: list[Slot] = []
        self._count = count
        self._context = context
        self._arrived: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        host = context.getConf().get("spark.driver.host") or socket.gethostname()
        self._listener = listen((socket.gethostbyname(host), 0))
        self._address: Address = self._listener.getsockname()[:2]
        threading.Thread(target=self._register, name="slot-registration", daemon=True).start()
        ship_package(context)
        for file in wanted.files:
            context.addPyFile(file)
        if wanted.archives or wanted.requirements_file or wanted.executable:
            raise DeploymentError(
                "on a cluster the executors' Python is Spark's to choose: instead of archives, requirements and an "
                "executable of the job, use --archives and spark.pyspark.python, or an image that has what you need"
            )

    def begin_start(self) -> None:
        """Slots need the cluster: they start with the first deployment."""

    def ensure(self) -> list[int]:
        """Have every slot running and connected; the numbers of those that were (re)started."""
        present = {slot.number: slot for slot in self.slots if slot.process.alive}
        missing = [n for n in range(self._count) if n not in present]
        if missing:
            for slot in self.slots:
                if slot.number in missing:
                    slot.close()
            self._launch(missing)
            deadline = time.monotonic() + _REGISTER_S
            while len(present) < self._count:
                try:
                    slot = self._arrived.get(timeout=max(0.0, deadline - time.monotonic()))
                except queue.Empty:
                    raise DeploymentError(
                        f"only {len(present)} of {self._count} slots registered within {_REGISTER_S:.0f} s; can the "
                        f"executors reach the driver at {self._address[0]}:{self._address[1]}, and import tamias?"
                    ) from None
                slot.connect(self.events.put)
                present[slot.number] = slot
            self.slots = [present[n] for n in range(self._count)]
        return missing

    def _launch(self, numbers: list[int]) -> None:
        launch = Launch(self._address, self.secret)
        self._context.setJobGroup("tamias-slots", f"start {len(numbers)} slots")
        self._context.parallelize(numbers, len(numbers)).mapPartitions(launch).count()

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


@dataclass(frozen=True)
class Launch:
    """Runs in an executor's Python worker: starts slot processes that outlive it."""

    driver: Address
    secret: bytes

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
            log_file=os.path.join(folder, "slot.log"),
            driver=self.driver,
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "tamias.engine.slots.slot_main"],
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


def ship_package(context: Any) -> None:
    """Send this very package to the executors, so that they run what the driver runs."""
    root = Path(__file__).resolve().parents[2]
    target = Path(context._temp_dir) / "tamias.zip"  # Spark serves it from there until the driver ends
    if target.exists():
        return
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(root.rglob("*")):
            if path.suffix in {".py", ".properties"}:
                archive.write(path, Path("tamias") / path.relative_to(root))
    context.addPyFile(str(target))
