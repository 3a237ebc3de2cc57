"""One driver writes to a job's checkpoint directory: who it is, and what becomes of those it replaced.

Claims are numbered files, `owner/claim-<term>`, created only when the number is free. A driver owns the directory
while its own claim is there and the next one is not. Three rules make a replaced driver harmless, however slow it is
and whenever it wakes up; none of them needs a clock:

1. It publishes a checkpoint's metadata, *then* looks for a newer claim, and only then tells anyone that the checkpoint
   is complete. The new driver claims, *then* looks for checkpoints. So at least one of them sees the other: either the
   old one keeps silent (its sinks do not commit), or the new one starts from that checkpoint.
2. The new driver records the checkpoint it starts from in `owner/start-<term>`. Whatever an older term completes beyond
   it belongs to a history that was given up, and is never restored.
3. A replaced driver deletes nothing: what it holds to be rubbish may be what the new one runs on.

Clocks only decide whether a second driver is *refused*: while the owner is alive, it is.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass
from typing import Any

from tamias.errors import CheckpointError
from tamias.state.files import FileStore

__all__ = ["DirectoryInUse", "Driver", "Fenced", "History", "Ownership", "claim"]

OWNER = "owner"
LEASE_MS = 30_000
RENEW_MS = 5_000


class DirectoryInUse(CheckpointError):
    """A second driver was started on a checkpoint directory whose owner is alive."""

    def __init__(self, directory: str, host: str, pid: int) -> None:
        super().__init__(directory, host, pid)

    def __str__(self) -> str:
        directory, host, pid = self.args
        return (
            f"checkpoint directory {directory!r} is in use by the driver with process id {pid} on host {host!r}; "
            "stop that one first, or run this job under another job id"
        )


class Fenced(CheckpointError):
    """This driver was replaced by another one on the same job: it must stop, commit nothing and delete nothing."""

    def __init__(self, directory: str, term: int) -> None:
        super().__init__(directory, term)

    def __str__(self) -> str:
        directory, term = self.args
        return (
            f"this driver (term {term}) no longer owns checkpoint directory {directory!r}: another driver took the job "
            "over, or the directory was removed; this one stops without committing anything"
        )


@dataclass(frozen=True, slots=True)
class Driver:
    """A driver process, as it signs its claim."""

    host: str
    pid: int
    process_start: str | None  # a process id is reused; together with this it is not
    token: str

    @staticmethod
    def this_process() -> Driver:
        """The running one."""
        pid = os.getpid()
        return Driver(socket.gethostname(), pid, _process_start(pid), secrets.token_hex(16))

    def is_gone(self, observer: Driver) -> bool:
        """True when the observer can tell that this process has ended; False when it lives or cannot be seen."""
        if self.host != observer.host:
            return False
        if observer.process_start is None:  # this system does not tell when a process started
            return not _process_exists(self.pid)
        return _process_start(self.pid) != self.process_start


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of `owner/claim-<term>`."""

    term: int
    driver: Driver
    claimed_ms: int


class Ownership:
    """The right of one driver to write to a job's directory; may be lost at any moment."""

    def __init__(self, store: FileStore, driver: Driver, term: int, now_ms: int) -> None:
        self.term = term
        self._store = store
        self._driver = driver
        self._renewed_ms = now_ms

    def check(self) -> None:
        """Raise `Fenced` unless this driver still owns the directory."""
        if self._store.exists(_name("claim", self.term + 1)) or not self._store.exists(_name("claim", self.term)):
            raise Fenced(self._store.url, self.term)

    def start_from(self, checkpoint_id: int | None) -> None:
        """Record where this driver's history begins: beyond it, checkpoints of earlier terms do not count."""
        self.check()
        body = {"term": self.term, "checkpoint_id": checkpoint_id, "token": self._driver.token}
        self._store.publish(_name("start", self.term), _dump(body))

    def renew(self, now_ms: int) -> None:
        """Show that this driver lives; cheap to call often."""
        if now_ms - self._renewed_ms >= RENEW_MS or now_ms < self._renewed_ms:
            self._store.replace(_name("alive", self.term), _dump({"now_ms": now_ms}))
            self._renewed_ms = now_ms

    def release(self) -> None:
        """Let the next driver in at once; the claim itself stays, so that terms keep counting up."""
        self._store.replace(_name("alive", self.term), _dump({"released": True}))


def claim(
    store: FileStore, driver: Driver, now_ms: int, *, lease_ms: int = LEASE_MS, take_over: bool = False
) -> Ownership:
    """Become the owner of a job's directory.

    Args:
        store: Rooted in the job's directory.
        driver: Who asks.
        now_ms: The wall clock; compared with the last sign of life of an owner on another host.
        lease_ms: How long an owner may be silent before it is taken for dead.
        take_over: Replace a living owner too.

    Raises:
        DirectoryInUse: The owner is alive.
    """
    while True:
        claims = _read_claims(store)
        newest = claims[-1] if claims else None
        if newest is not None and not take_over and _is_alive(store, newest, driver, now_ms, lease_ms):
            raise DirectoryInUse(store.url, newest.driver.host, newest.driver.pid)
        term = newest.term + 1 if newest is not None else 1
        try:
            store.publish(_name("claim", term), _dump({"term": term, "driver": asdict(driver), "claimed_ms": now_ms}))
        except FileExistsError:
            continue  # another driver was quicker: look at it
        return Ownership(store, driver, term, now_ms)


class History:
    """Which completed checkpoints belong to the job's one history, given the drivers that wrote to its directory."""

    def __init__(self, starts: dict[int, int | None]) -> None:
        self._starts = starts

    @staticmethod
    def read(store: FileStore) -> History:
        """From a job's directory; a directory without owners (a savepoint's) has no rules."""
        starts = {}
        for term, body in _read_all(store, "start"):
            checkpoint_id = body.get("checkpoint_id")
            starts[term] = checkpoint_id if isinstance(checkpoint_id, int) else None
        return History(starts)

    def holds(self, checkpoint_id: int, term: int) -> bool:
        """False for what a replaced driver completed after a newer one had started from something older."""
        return all(base is not None and checkpoint_id <= base for newer, base in self._starts.items() if newer > term)


def _is_alive(store: FileStore, owner: Claim, observer: Driver, now_ms: int, lease_ms: int) -> bool:
    if owner.driver.is_gone(observer):
        return False
    sign = _read(store, _name("alive", owner.term)) or {}
    if sign.get("released") is True:
        return False
    if owner.driver.host == observer.host:
        return True
    last_ms = sign.get("now_ms", owner.claimed_ms)
    return isinstance(last_ms, int) and now_ms - last_ms < lease_ms


def _read_claims(store: FileStore) -> list[Claim]:
    claims = []
    for term, body in _read_all(store, "claim"):
        try:
            claims.append(Claim(term, Driver(**body["driver"]), int(body["claimed_ms"])))
        except (KeyError, TypeError, ValueError):  # it cannot be read, but its number is taken all the same
            claims.append(Claim(term, Driver("unknown", 0, None, ""), 0))
    return claims


def _read_all(store: FileStore, kind: str) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for name in store.list(OWNER):
        prefix, _, number = name.partition("-")
        if prefix == kind and number.isdigit():
            body = _read(store, f"{OWNER}/{name}")
            if body is not None:
                found.append((int(number), body))
    return sorted(found, key=lambda entry: entry[0])


def _read(store: FileStore, path: str) -> dict[str, Any] | None:
    """A small JSON object: None when there is no such file, empty when it is not one."""
    try:
        body = json.loads(store.read(path))
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _name(kind: str, term: int) -> str:
    return f"{OWNER}/{kind}-{term:06d}"


def _dump(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode("utf-8")


def _process_exists(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is there, and belongs to someone else
        return True
    return True


def _process_start(pid: int) -> str | None:
    """When a process started, in the kernel's own count; None where there is no such process or no way to ask."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in (b"Z", b"X"):  # dead, and only waiting for its parent to notice
        return None
    return fields[19].decode("ascii")
