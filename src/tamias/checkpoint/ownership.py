"""One driver writes to a job's checkpoint directory: who it is, and what becomes of those it replaced.

Claims are numbered files, `owner/claim-<term>`. A driver owns the directory while the claim of its term is its own and
there is none of the next term. These rules make a replaced driver harmless, however slow it is and whenever it wakes
up; none of them needs a clock, and none needs to list a directory:

1. It publishes a checkpoint's metadata, *then* looks for a newer claim, and only then tells anyone that the checkpoint
   is complete. The new driver claims, *then* looks for checkpoints. So at least one of them sees the other: either the
   old one keeps silent (its sinks do not commit), or the new one starts from that checkpoint.
2. The new driver records which checkpoint it starts from, and whose, in `owner/start-<term>`, looks again whether it is
   still the owner, and only then does anything. The starts form a chain, from the newest back to the first: it is the
   job's one history. What an older term completed beyond the point where the chain left it was given up, and is never
   restored.
3. A replaced driver deletes nothing: what it holds to be rubbish may be what the new one runs on.

A storage without exclusive creation (`FileStore.exclusive`) lets two drivers claim one term at the same moment, and the
claim written last stands. There, in addition:

4. A claim is read back, and read again at every check: whoever finds another's in its place is not the owner.
5. Before its start, a driver leaves a mark in `owner/entry-<term>` and checks. One that finds another's mark in its
   term goes on to the next. So every term has one start at most, and no two drivers that act share one.
6. Before it publishes metadata, a driver notes the number in `owner/progress-<term>` and checks. The next driver takes
   higher numbers, so nobody's metadata is overwritten; and it finds the newest checkpoint even if a listing is stale.

Everywhere, that file also names the last checkpoint that anyone was told of, so that its loss is noticed.

Clocks only decide whether a second driver is *refused*: while the owner is alive, it is.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import zlib
from dataclasses import asdict, dataclass
from typing import Any

from tamias.errors import CorruptFileError, DirectoryInUse, Fenced, JobHasFinished
from tamias.storage.file_store import FileStore

__all__ = ["Driver", "History", "Ownership", "claim", "living_owner"]

_LOG = logging.getLogger(__name__)

OWNER = "owner"
LEASE_MS = 30_000
RENEWALS = 6  # in the time of a lease


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


@dataclass(frozen=True, slots=True)
class Start:
    """The content of `owner/start-<term>`: where a driver's history begins."""

    term: int
    checkpoint_id: int | None  # None: it started empty, or from another directory
    checkpoint_term: int | None
    first_id: int = 1  # no driver before it publishes a checkpoint with this number or a higher one


class Ownership:
    """The right of one driver to write to a job's directory; may be lost at any moment."""

    def __init__(self, store: FileStore, driver: Driver, term: int, now_ms: int, lease_ms: int = LEASE_MS) -> None:
        self.term = term
        self._store = store
        self._driver = driver
        self._renewed_ms = now_ms
        self._renew_ms = lease_ms // RENEWALS
        self._completed: int | None = None

    def check(self) -> None:
        """Raise `Fenced` unless this driver still owns the directory."""
        if _read(self._store, _name("claim", self.term + 1)) is not None or not self._claim_is_mine():
            raise Fenced(self._store.url, self.term)

    def _claim_is_mine(self) -> bool:
        found = _read_claim(self._store, self.term)
        if found is None:
            return False
        # Where nobody can have overwritten it, a claim that cannot be read is damaged, and still ours.
        return found.driver.token == self._driver.token or (self._store.exclusive and not found.driver.token)

    def start_from(self, checkpoint: tuple[int, int] | None, first_id: int) -> None:
        """Record where this driver's history begins, and that it begins: rules 2 and 5.

        Args:
            checkpoint: The checkpoint of this directory that the driver starts from, and its term.
            first_id: The number of the first checkpoint it may publish.
        """
        self.check()
        if not self._store.exclusive:
            self._store.replace(_name("entry", self.term), _dump({"token": self._driver.token}))
            self.check()
        checkpoint_id, checkpoint_term = checkpoint or (None, None)
        body = {
            "term": self.term,
            "checkpoint_id": checkpoint_id,
            "checkpoint_term": checkpoint_term,
            "first_id": first_id,
            "token": self._driver.token,
        }
        self._publish_own(_name("start", self.term), _dump(body))
        self._completed = checkpoint_id
        self.check()

    def _publish_own(self, path: str, data: bytes) -> None:
        """Publish what nobody else publishes; that it is there already means that the answer was lost before."""
        try:
            self._store.publish(path, data)
        except FileExistsError:
            if self._store.read(path) != data:
                raise

    def publishing(self, checkpoint_id: int) -> None:
        """Metadata of this number is about to be published: rule 6. Raises `Fenced` when it must not be."""
        if not self._store.exclusive:
            self._note_progress(checkpoint_id)
        self.check()

    def published(self, checkpoint_id: int) -> None:
        """It has been: rule 1. Raises `Fenced` when nobody may hear of it."""
        self.check()
        self._completed = checkpoint_id
        try:
            # Not needed for the rules, but should its metadata ever be gone, the next driver knows that it was there.
            self._note_progress(checkpoint_id)
        except OSError as error:
            _LOG.warning("could not note checkpoint %d in %s: %s", checkpoint_id, self._store.url, error)

    def _note_progress(self, publishing: int) -> None:
        body = {"publishing": publishing, "completed": self._completed}
        self._store.replace(_name("progress", self.term), _dump(body))

    def renew(self, now_ms: int) -> None:
        """Show that this driver lives; cheap to call often."""
        if now_ms - self._renewed_ms >= self._renew_ms or now_ms < self._renewed_ms:
            self._store.replace(_name("alive", self.term), _dump({"now_ms": now_ms}))
            self._renewed_ms = now_ms

    def release(self, *, finished: bool = False) -> None:
        """Let the next driver in at once, or, when the job has finished, none any more.

        The claim itself stays, so that terms keep counting up.
        """
        self._store.replace(_name("alive", self.term), _dump({"released": True, "finished": finished}))


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
        JobHasFinished: There is nothing left to do; the directory is about to be removed.
    """
    least = 1
    while True:
        newest = _newest_claim(store)
        mine = newest is not None and newest.driver.token == driver.token
        if newest is not None and (_read(store, _name("alive", newest.term)) or {}).get("finished") is True:
            raise JobHasFinished(store.url)
        if newest is not None and not mine and not take_over and _is_alive(store, newest, driver, now_ms, lease_ms):
            raise DirectoryInUse(store.url, newest.driver.host, newest.driver.pid)
        if newest is not None and mine and newest.term >= least:
            term = newest.term  # it was published, and only the answer was lost
        else:
            term = max(least, newest.term + 1 if newest is not None else 1)
            body = {"term": term, "driver": asdict(driver), "claimed_ms": now_ms}
            try:
                store.publish(_name("claim", term), _dump(body))
            except FileExistsError:
                continue  # another driver was quicker: look at it
        if store.exclusive or _alone_in_term(store, term, driver):
            return Ownership(store, driver, term, now_ms, lease_ms)
        least = term + 1


def _alone_in_term(store: FileStore, term: int, driver: Driver) -> bool:
    """Rules 4 and 5: the claim that stands is this driver's, and nobody whose claim it replaced had begun to act."""
    standing = _read_claim(store, term)
    if standing is None or standing.driver.token != driver.token:
        return False
    entry = _read(store, _name("entry", term))
    return entry is None or entry.get("token") == driver.token


class History:
    """Which completed checkpoints belong to the job's one history, given the drivers that wrote to its directory.

    A directory without owners (a savepoint's) has no rules. Files are read as far as a question needs them.
    """

    def __init__(self, store: FileStore) -> None:
        self._store = store
        newest = _newest_claim(store)
        self._head = self._start_at_or_below(newest.term) if newest is not None else None

    def holds(self, checkpoint_id: int, term: int) -> bool:
        """False for what a replaced driver completed after a newer one had started from something older."""
        if self._head is None or term > self._head.term:
            return True
        bound, start = checkpoint_id, self._head
        while term < start.term:
            if start.checkpoint_id is None:
                return False
            bound = min(bound, start.checkpoint_id)
            before = self._before(start)
            if before is None:  # as far as it is known
                return checkpoint_id <= bound
            start = before
        return term == start.term and checkpoint_id <= bound

    def newest_id(self) -> int | None:
        """The newest checkpoint that anyone was told of: it exists, whatever a listing says, or it was lost."""
        completed = self._progress().get("completed")
        if isinstance(completed, int):
            return completed
        return self._head.checkpoint_id if self._head is not None else None

    def publishing_id(self) -> int | None:
        """The checkpoint that the last driver was about to publish when last heard of; it may exist or not."""
        publishing = self._progress().get("publishing")
        return publishing if isinstance(publishing, int) else None

    def highest_id(self) -> int:
        """No driver of the past publishes a checkpoint with a higher number, asleep though it may be."""
        first_id = self._head.first_id if self._head is not None else 1
        return max(self.newest_id() or 0, self.publishing_id() or 0, first_id - 1)

    def _progress(self) -> dict[str, Any]:
        return (_read(self._store, _name("progress", self._head.term)) or {}) if self._head is not None else {}

    def _before(self, start: Start) -> Start | None:
        if start.checkpoint_term is not None:
            return _read_start(self._store, start.checkpoint_term)
        return self._start_at_or_below(start.term - 1)

    def _start_at_or_below(self, term: int) -> Start | None:
        """The newest start that is not above a term: a driver may have claimed and ended before it came to that."""
        found = (_read_start(self._store, t) for t in range(term, 0, -1))
        return next((start for start in found if start is not None), None)


def living_owner(store: FileStore, now_ms: int) -> Driver | None:
    """The driver that runs on a job's directory now; None when there is none, or when it ended."""
    newest = _newest_claim(store)
    if newest is None or not _is_alive(store, newest, Driver.this_process(), now_ms, LEASE_MS):
        return None
    return newest.driver


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


def _newest_claim(store: FileStore) -> Claim | None:
    """The claim with the highest number. A listing is where to begin looking, no more: it may be stale."""
    numbers = [name.partition("-")[2] for name in store.list(OWNER) if name.startswith("claim-")]
    term = max((int(number) for number in numbers if number.isdigit()), default=0)
    newest = _read_claim(store, term) if term else None
    term = newest.term if newest is not None else 0
    while (found := _read_claim(store, term + 1)) is not None:
        newest, term = found, term + 1
    return newest


def _read_claim(store: FileStore, term: int) -> Claim | None:
    body = _read(store, _name("claim", term))
    if body is None:
        return None
    try:
        return Claim(term, Driver(**body["driver"]), int(body["claimed_ms"]))
    except (KeyError, TypeError, ValueError):  # it cannot be read, but its number is taken all the same
        return Claim(term, Driver("unknown", 0, None, ""), 0)


def _read_start(store: FileStore, term: int) -> Start | None:
    body = _read(store, _name("start", term))
    if body is None:
        return None
    if body.get("term") != term:
        # Without it nobody knows which checkpoints count: to guess would be to lose or to repeat something.
        where = f"{store.url}/{_name('start', term)}"
        raise CorruptFileError(where, "a damaged file", f"where driver {term} of the job started from")

    def number(key: str) -> int | None:
        found = body.get(key)
        return found if isinstance(found, int) else None

    return Start(term, number("checkpoint_id"), number("checkpoint_term"), number("first_id") or 1)


def _read(store: FileStore, path: str) -> dict[str, Any] | None:
    """A small JSON object: None when there is no such file, empty when it is not one, or not as it was written."""
    try:
        body = json.loads(store.read(path))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        return {}
    if not isinstance(body, dict) or body.pop("crc32", None) != _checksum(body):
        return {}
    return body


def _name(kind: str, term: int) -> str:
    return f"{OWNER}/{kind}-{term:06d}"


def _dump(body: dict[str, Any]) -> bytes:
    return json.dumps(body | {"crc32": _checksum(body)}).encode("utf-8")


def _checksum(body: dict[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(body, sort_keys=True).encode('utf-8')):08x}"


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
