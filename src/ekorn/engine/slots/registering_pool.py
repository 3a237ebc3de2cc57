"""The slots of a job on a cluster: started elsewhere, they connect to the driver and register.

Where a slot runs matters for speed only: it is reached over TCP from anywhere. A slot and its driver watch the
connection that the slot opened at its start. When that connection ends, so does the slot, whatever became of the
process that started it; and when the slot ends, the driver sees the connection end. The driver gives up a slot that
neither ends nor answers by closing the connection; if the slot ever wakes up, it finds the connection closed and ends.
A slot also ends when the driver's heartbeats fail to come, because a host that vanishes closes no connection.

Every start of slots has a generation number. A restart starts slots beside a rescale that waits for its own, however
long these take. When a start fails, the slots that have registered are made to end, and slots of that generation that
register later are refused. Spark may run the task that starts a slot twice, when it tries a failed task again or
speculates: the slot that registers first is taken, and the other is refused. A slot that is refused ends.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ekorn.engine.slots.slot_handle import Heartbeat, SlotHandle
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.errors import DeploymentError
from ekorn.links.encryption import Certificate
from ekorn.links.link import Address, Link
from ekorn.links.listener import Listener
from ekorn.slot_protocol.slot_config import DriverContact, Registration, Welcome
from ekorn.types.by_value import dumps


class RemoteSlotProcess:
    """A slot process that the driver did not start, known by the connection that the slot keeps open."""

    def __init__(self, registration: Registration, lifeline: Link, heartbeat_s: float) -> None:
        self.pid = registration.pid
        self.host = registration.host
        self.lifeline = lifeline
        self._gone = threading.Event()
        self._given_up: str | None = None
        threading.Thread(target=self._watch, name=f"slot-{registration.slot}-lifeline", daemon=True).start()
        threading.Thread(
            target=self._beat, args=(heartbeat_s,), name=f"slot-{registration.slot}-heartbeat", daemon=True
        ).start()

    def _beat(self, interval_s: float) -> None:
        """Tell the slot that the driver is alive."""
        with contextlib.suppress(OSError):  # the slot is gone, which `_watch` notices
            while not self._gone.wait(interval_s):
                self.lifeline.send(b"")

    def _watch(self) -> None:
        try:
            while True:
                self.lifeline.receive()
        except (OSError, EOFError):
            self._gone.set()

    @property
    def alive(self) -> bool:
        return not self._gone.is_set()

    def wait_for_end(self) -> str | None:
        if self._given_up is not None:
            return f"its process {self.pid} on {self.host} was abandoned: {self._given_up}"
        # A killed process's connections end at once, but another thread notices it: wait for that a moment.
        return f"its process {self.pid} on {self.host} is gone" if self._gone.wait(0.5) else None

    def end(self) -> None:
        """Close the lifeline: the slot then ends by itself."""
        self.lifeline.close()

    def give_up(self, why: str) -> None:
        """Close the lifeline and count the slot as gone. A slot that cannot be reached may run on for a while."""
        self._given_up = why
        self._gone.set()
        self.lifeline.close()


@dataclass
class _Start:
    """One start of slots.

    Attributes:
        generation: Its number.
        awaited: The slots that have not registered.
        registered: The slots that have registered and were not taken yet.
    """

    generation: int
    awaited: set[int]
    registered: queue.SimpleQueue[SlotHandle] = field(default_factory=queue.SimpleQueue)


class RegisteringSlotPool(SlotPool):
    """Has slots started elsewhere, and waits for them to register.

    Args:
        count: The number of slots.
        host: This machine's address, as the slots can reach it.
        launch: Starts the slots with the given numbers somewhere; returns when they are on their way.
        heartbeat: When a silent slot is given up.
        release: Called when the slots are no longer needed.
        locate: Returns the host of the executor beside which a slot was started, if it is known.
        certificate: With one, the links of the job are encrypted.
        register_s: How long to wait for slots that were started.
    """

    shares_disk = False

    def __init__(
        self,
        count: int,
        host: str,
        launch: Callable[[DriverContact, list[int]], None],
        heartbeat: Heartbeat,
        release: Callable[[], None] = lambda: None,
        *,
        locate: Callable[[int], str | None] = lambda number: None,
        certificate: Certificate | None = None,
        register_s: float = 120.0,
    ) -> None:
        super().__init__(count, heartbeat)
        self._launch = launch
        self._on_released = release
        self._locate = locate
        self._register_s = register_s
        self._registering = threading.Lock()  # over the generation, and the starts
        self._generation = 0
        self._starts: dict[int, _Start] = {}  # under way, by generation: a restart's, and that of a rescale beside it
        self._certificate = certificate
        self._listener = Listener((host, 0), self.secret, self._register, "slot-registration", certificate)
        self.address: Address = self._listener.address
        self._listener.start()

    @property
    def waiting_count(self) -> int:
        """The number of slots that have registered and are not in use."""
        return sum(start.registered.qsize() for start in list(self._starts.values()))

    def begin_replacing(self) -> None:
        """Do nothing: Spark starts slots where the tasks of the attempt before have left."""

    def _start(self, numbers: list[int], started: dict[int, SlotHandle]) -> None:
        if not numbers:
            return
        heartbeat = self._heartbeat
        with self._registering:
            self._generation += 1
            start = self._starts[self._generation] = _Start(self._generation, set(numbers))
        contact = DriverContact(
            self.address, self.secret, heartbeat.interval_s, generation=start.generation, timeout_s=heartbeat.timeout_s
        )
        try:
            self._launch(contact, numbers)
            deadline = time.monotonic() + self._register_s
            while len(started) < len(numbers):
                slot = self._connect(self._next_registered(start, deadline, len(started), len(numbers)))
                slot.beside = self._locate(slot.number)
                started[slot.number] = slot
        finally:
            self._end(start)

    def _end(self, start: _Start) -> None:
        """Refuse slots that register from now on, and end those that have registered and were not taken."""
        with self._registering:
            self._starts.pop(start.generation, None)
            with contextlib.suppress(queue.Empty):
                while True:
                    start.registered.get_nowait().close()

    def _next_registered(self, start: _Start, deadline: float, arrived: int, started: int) -> SlotHandle:
        try:
            return start.registered.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise DeploymentError(
                f"only {arrived} of {started} slots registered within {self._register_s:.0f} s; check that "
                f"their machines can reach the driver at {self.address[0]}:{self.address[1]} and import ekorn"
            ) from None

    def _register(self, link: Link) -> None:
        try:
            link.send(dumps(Welcome(self._certificate)))
            registration: Registration = pickle.loads(link.receive())
        except (OSError, EOFError):
            return  # the slot ended before it registered: `ensure` will miss it
        with self._registering:
            start = self._starts.get(registration.generation)
            if start is None or registration.slot not in start.awaited:
                link.close()  # the slot then ends by itself
                return
            start.awaited.remove(registration.slot)
            process = RemoteSlotProcess(registration, link, self._heartbeat.interval_s)
            start.registered.put(SlotHandle(registration.slot, registration.address, self.secret, process))

    def _release(self) -> None:
        for start in list(self._starts.values()):
            self._end(start)
        self._listener.close()
        self._on_released()
