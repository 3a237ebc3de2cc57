"""One driver at a time writes to a job's checkpoint directory, and a replaced driver does no harm.

Claims are numbered files, `owner/claim-<term>`. A driver owns the directory while the claim of its term is its own and
no claim of the next term exists. The following rules make a replaced driver harmless, however slow it is and whenever
it wakes up. None of them needs a clock, and none needs to list a directory:

1. A driver publishes a checkpoint's metadata, *then* looks for a newer claim, and only then tells anyone that the
   checkpoint is complete. A new driver claims, *then* looks for checkpoints. So at least one of them sees the other:
   either the old driver keeps silent (its sinks do not commit), or the new one starts from that checkpoint.
2. A new driver records in `owner/start-<term>` which checkpoint it starts from, and who wrote that checkpoint. Then it
   checks that it is still the owner, and only then does anything else. The starts form a chain from the newest back to
   the first: the job's one history. A checkpoint that an older term completed beyond the point where the chain left
   that term is abandoned, and is never restored.
3. A replaced driver deletes nothing: a file that looks unneeded to it may be one that the new driver runs on.
4. Before it deletes a checkpoint, a driver puts a tombstone beside the metadata, `chk-<n>/_discarded-<term>`, *then*
   looks for a newer claim. A new driver claims, *then* looks for tombstones, and starts from no checkpoint that has
   one. So either the old driver deletes nothing, or the new one starts from something else. If a driver has started
   from the checkpoint, the tombstones of earlier terms no longer count.

A storage without exclusive creation (`FileStore.exclusive`) lets two drivers claim one term at the same moment, and the
claim written last stands. For such a storage three more rules hold:

5. A driver reads its claim back, and reads it again at every check. A driver that finds another claim in its place is
   not the owner.
6. Before its start, a driver leaves a mark in `owner/entry-<term>` and checks. A driver that finds another's mark in
   its term moves on to the next term. So every term has one start at most, and no two drivers that act share a term.
7. Before it publishes metadata, a driver notes the number in `owner/progress-<term>` and checks. The next driver takes
   higher numbers, so no metadata is overwritten; and it finds the newest checkpoint even if a listing is stale.

On every storage, that file also names the last checkpoint that was announced, so that its loss is noticed.

Clocks only decide whether a second driver is *refused*: it is refused while the owner is alive.

A driver whose job is cancelled puts a note in `owner/cancelled-<term>` before it ends. The next driver is then refused
unless the user names what it starts from. The note counts until a later driver has recorded its start.

A driver that a service with standbys starts puts the term of its leader into its claim. The driver of a later leader
takes the directory over from the driver of an earlier one, and never the reverse, whichever of them lives.
"""

from __future__ import annotations

import logging
from typing import Any, Literal, NamedTuple

from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.owner_files import (
    Claim,
    LeaderTerm,
    Start,
    encode_owner_file,
    newest_claim,
    owner_path,
    read_claim,
    read_owner_file,
)
from ekorn.config import options
from ekorn.errors import DirectoryInUse, Fenced, JobHasFinished, JobWasCancelled
from ekorn.storage.file_store import FileStore

__all__ = ["LEASE_MS", "Ownership", "claim", "claim_after", "living_owner", "possible_owner"]

_LOG = logging.getLogger(__name__)

LEASE_MS = options.OWNER_LEASE.default
RENEWALS_PER_LEASE = 6


class OwnCheckpoint(NamedTuple):
    """A checkpoint of this directory, and the term of the driver that completed it."""

    id: int
    term: int


class Ownership:
    """The right of one driver to write to a job's directory. It may be lost at any moment.

    Attributes:
        term: The number of the driver among those that have owned the directory.
        follows_cancellation: Whether the job was cancelled before this driver, and no driver has started since.
    """

    def __init__(
        self,
        store: FileStore,
        driver: Driver,
        term: int,
        now_ms: int,
        lease_ms: int,
        *,
        follows_cancellation: bool,
    ) -> None:
        self.term = term
        self.follows_cancellation = follows_cancellation
        self._store = store
        self._driver = driver
        self._renewed_ms = now_ms
        self._renewal_ms = lease_ms // RENEWALS_PER_LEASE
        self._completed: int | None = None

    def check(self) -> None:
        """Raise `Fenced` unless this driver still owns the directory."""
        next_claim = read_owner_file(self._store, owner_path("claim", self.term + 1))
        if next_claim is not None or not self._claim_is_mine():
            raise Fenced(self._store.url, self.term)

    def _claim_is_mine(self) -> bool:
        found = read_claim(self._store, self.term)
        if found is None:
            return False
        # If no other driver can overwrite a claim, an unreadable claim is damaged, and still this driver's.
        return found.driver.token == self._driver.token or (self._store.exclusive and not found.driver.token)

    def start_from(self, checkpoint: OwnCheckpoint | None, first_id: int) -> None:
        """Record where this driver's history begins, and that it begins: rules 2 and 6.

        Args:
            checkpoint: The checkpoint of this directory that the driver starts from; None for none.
            first_id: The number of the first checkpoint that the driver may publish.
        """
        self.check()
        if not self._store.exclusive:
            self._replace("entry", {"token": self._driver.token})
            self.check()
        checkpoint_id = checkpoint.id if checkpoint is not None else None
        start = Start(self.term, checkpoint_id, checkpoint.term if checkpoint is not None else None, first_id)
        self._publish_own(owner_path("start", self.term), start.encode(self._driver.token))
        self._completed = checkpoint_id
        self.check()

    def _publish_own(self, path: str, data: bytes) -> None:
        """Publish a file that only this driver publishes. If it exists, the answer to an earlier call was lost."""
        try:
            self._store.publish(path, data)
        except FileExistsError:
            if self._store.read(path) != data:
                raise

    def publishing(self, checkpoint_id: int) -> None:
        """Prepare for publishing the metadata of a checkpoint: rule 7.

        Raises:
            Fenced: The metadata must not be published.
        """
        if not self._store.exclusive:
            self._note_progress(checkpoint_id)
        self.check()

    def published(self, checkpoint_id: int) -> None:
        """Finish publishing the metadata of a checkpoint: rule 1.

        Raises:
            Fenced: The checkpoint must not be announced.
        """
        self.check()
        self._completed = checkpoint_id
        try:
            # No rule needs this note. It tells the next driver of the checkpoint in case the metadata is lost.
            self._note_progress(checkpoint_id)
        except OSError as error:
            _LOG.warning("could not record checkpoint %d in %s: %s", checkpoint_id, self._store.url, error)

    def _note_progress(self, publishing: int) -> None:
        self._replace("progress", {"publishing": publishing, "completed": self._completed})

    def renew(self, now_ms: int) -> None:
        """Show that this driver is alive. Cheap to call often."""
        if now_ms - self._renewed_ms >= self._renewal_ms or now_ms < self._renewed_ms:
            self.show_alive(now_ms)
            self._renewed_ms = now_ms

    def show_alive(self, now_ms: int) -> None:
        """Show that this owner is alive, at once."""
        self._replace("alive", {"now_ms": now_ms})

    def release(self, *, finished: bool = False) -> None:
        """Let the next driver in at once or, if the job has finished, refuse every further driver.

        The claim itself stays, so that terms keep counting up.
        """
        self._replace("alive", {"released": True, "finished": finished})

    def note_cancelled(self) -> None:
        """Note that the job was cancelled: no driver continues it without being told what to start from."""
        self._replace("cancelled", {"term": self.term})

    def _replace(self, kind: Literal["entry", "progress", "alive", "cancelled"], body: dict[str, Any]) -> None:
        self._store.replace(owner_path(kind, self.term), encode_owner_file(body))


def claim(
    store: FileStore,
    driver: Driver,
    now_ms: int,
    *,
    lease_ms: int = LEASE_MS,
    take_over: bool = False,
    job_id: str = "",
    names_start: bool = False,
    leader: LeaderTerm | None = None,
) -> Ownership:
    """Become the owner of a job's directory.

    Args:
        store: The store rooted in the job's directory.
        driver: The driver that claims the directory.
        now_ms: The wall clock. It is compared with the last sign of life of an owner on another host.
        lease_ms: How long an owner may be silent before it is considered dead.
        take_over: Replace an owner even if it is alive.
        job_id: The id of the job, for messages.
        names_start: Whether the user has named what the driver starts from.
        leader: The leader of the services that started the driver; None for a driver without one.

    Raises:
        DirectoryInUse: The owner is alive, or a later leader started it.
        JobWasCancelled: The job was cancelled, and the user has not named what the driver starts from.
        JobHasFinished: There is nothing left to do, and the directory is about to be removed.
    """
    least = 1
    while True:
        newest = newest_claim(store)
        mine = newest is not None and newest.driver.token == driver.token
        if newest is not None and _sign_of_life(store, newest).get("finished") is True:
            raise JobHasFinished(store.url)
        if newest is not None and not mine and not take_over:
            may_replace = _later_leader(leader, newest.leader)
            if may_replace is None:
                may_replace = not _is_alive(store, newest, driver, now_ms, lease_ms)
            if not may_replace:
                raise DirectoryInUse(store.url, newest.driver.host, newest.driver.pid)
        cancelled = newest is not None and _was_cancelled(store, newest.term)
        if cancelled and not mine and not names_start:
            raise JobWasCancelled(job_id, store.url)
        if newest is not None and mine and newest.term >= least:
            term = newest.term  # the claim was published, and only the answer was lost
        else:
            term = max(least, newest.term + 1) if newest is not None else least
            try:
                store.publish(owner_path("claim", term), Claim(term, driver, now_ms, leader, lease_ms).encode())
            except FileExistsError:
                continue  # another driver was faster: look at its claim
        if store.exclusive or _alone_in_term(store, term, driver):
            return Ownership(store, driver, term, now_ms, lease_ms, follows_cancellation=cancelled)
        least = term + 1


def _later_leader(mine: LeaderTerm | None, other: LeaderTerm | None) -> bool | None:
    """Return whether a driver's leader follows another's; None if the leaders do not tell."""
    if mine is None or other is None or mine.cluster != other.cluster or mine.term == other.term:
        return None
    return mine.term > other.term


def claim_after(store: FileStore, driver: Driver, term: int, now_ms: int, lease_ms: int) -> Ownership | None:
    """Claim the term after a given one, without asking whether its owner lives; None if another was faster.

    On a storage without exclusive creation two may claim the term. The entry tells whether the other one has acted.
    """
    try:
        store.publish(owner_path("claim", term + 1), Claim(term + 1, driver, now_ms, lease_ms=lease_ms).encode())
    except FileExistsError:
        standing = read_claim(store, term + 1)
        if standing is None or standing.driver.token != driver.token:  # else only the answer was lost
            return None
    if not store.exclusive:
        if not _alone_in_term(store, term + 1, driver):
            return None
        store.replace(owner_path("entry", term + 1), encode_owner_file({"token": driver.token}))
    owned = Ownership(store, driver, term + 1, now_ms, lease_ms, follows_cancellation=False)
    owned.check()
    return owned


def _alone_in_term(store: FileStore, term: int, driver: Driver) -> bool:
    """Return whether the claim that stands is this driver's, and no driver whose claim it replaced had begun to act.

    Rules 5 and 6.
    """
    standing = read_claim(store, term)
    if standing is None or standing.driver.token != driver.token:
        return False
    entry = read_owner_file(store, owner_path("entry", term))
    return entry is None or entry.get("token") == driver.token


def living_owner(store: FileStore, now_ms: int) -> Driver | None:
    """Return the driver that runs on a job's directory now; None if there is none.

    A driver that cannot be seen from here lives as long as the lease that it claimed the directory with.
    """
    newest = newest_claim(store)
    if newest is None:
        return None
    lease_ms = LEASE_MS if newest.lease_ms is None else newest.lease_ms
    if not _is_alive(store, newest, Driver.this_process(), now_ms, lease_ms):
        return None
    return newest.driver


def _is_alive(store: FileStore, owner: Claim, observer: Driver, now_ms: int, lease_ms: int) -> bool:
    if owner.driver.is_gone(observer):
        return False
    sign = _sign_of_life(store, owner)
    if sign.get("released") is True:
        return False
    if owner.driver.is_near(observer):
        return True
    last_ms = sign.get("now_ms", owner.claimed_ms)
    return isinstance(last_ms, int) and now_ms - last_ms < lease_ms


def possible_owner(store: FileStore) -> Driver | None:
    """Return the driver that owns a job's directory, unless it has ended; it may be dead, or silent on another host."""
    newest = newest_claim(store)
    if newest is None or newest.driver.is_gone(Driver.this_process()):
        return None
    return None if _sign_of_life(store, newest).get("released") is True else newest.driver


def _was_cancelled(store: FileStore, term: int) -> bool:
    """Return whether the last driver that started, up to a term, was cancelled."""
    for each in range(term, 0, -1):
        if read_owner_file(store, owner_path("cancelled", each)) is not None:
            return True
        if read_owner_file(store, owner_path("start", each)) is not None:
            return False
    return False


def _sign_of_life(store: FileStore, owner: Claim) -> dict[str, Any]:
    return read_owner_file(store, owner_path("alive", owner.term)) or {}
