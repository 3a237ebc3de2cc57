"""The lease of the leader among services that share a storage, by the rules that drivers of a job follow.

Claims are numbered files on the shared storage (`checkpoint/ownership.py`). The leader is the service whose claim has
the highest term. The leader renews a sign of life. A standby claims the next term if, by its own clock, it has seen no
new sign for a while. No two clocks are compared, so a clock that jumps or is wrong changes nothing.

A leader acts, *then* looks for a newer claim, and only then answers its client. A new leader claims, *then* reads what
the previous leader has written. So either the old leader learns that it is replaced, or the new one knows what the old
one did.

    renewal      every 1/6 of the lease
    the leader   stops leading when it has not renewed its sign for 1/2 of the lease
    a standby    claims the next term when it has seen no new sign for 2/3 of the lease
"""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.owner_files import Claim, LeaderTerm, newest_claim, owner_path, read_owner_file
from ekorn.checkpoint.ownership import RENEWALS_PER_LEASE, Ownership, claim_after
from ekorn.errors import EkornError, Fenced
from ekorn.storage.file_store import FileStore

__all__ = ["Leadership", "LeaseWatch", "NotLeader", "Sighting", "elapsed_s", "look", "try_to_lead"]

_LEADS_FOR = 1 / 2
_STANDS_BY_FOR = 2 / 3


class NotLeader(EkornError):
    """This service no longer leads: another one has taken its place, or it cannot reach the storage."""


def elapsed_s() -> float:
    """Return monotonic seconds, which also advance while the process is stopped or the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Sighting(NamedTuple):
    """What the storage shows of the leader."""

    claim: Claim | None
    sign: dict[str, Any]

    @property
    def term(self) -> int:
        """The term of the claim; 0 if there is none."""
        return 0 if self.claim is None else self.claim.term

    @property
    def is_released(self) -> bool:
        """Whether the leader has given up its term, or no service has ever led."""
        return self.claim is None or self.sign.get("released") is True


def look(store: FileStore) -> Sighting:
    """Read the newest claim and its sign of life.

    Raises:
        OSError: The storage does not answer.
    """
    claim = newest_claim(store)
    sign = None if claim is None else read_owner_file(store, owner_path("alive", claim.term))
    return Sighting(claim, sign or {})


class LeaseWatch:
    """Decides when a leader has been silent for too long. Uses no storage and no clock.

    Args:
        lease_s: The lease.
    """

    def __init__(self, lease_s: float) -> None:
        self._patience_s = lease_s * _STANDS_BY_FOR
        self._last: Sighting | None = None
        self._since_s = 0.0

    def has_lapsed(self, seen: Sighting, now_s: float) -> bool:
        """Return whether the term of a leader may be followed by another one.

        Args:
            seen: What the storage shows now.
            now_s: The time now, from `elapsed_s`.
        """
        if seen != self._last:
            self._last, self._since_s = seen, now_s
        return seen.is_released or now_s - self._since_s >= self._patience_s


def try_to_lead(
    store: FileStore, me: Driver, seen: Sighting, cluster: str, *, now_ms: int, lease_s: float
) -> Leadership | None:
    """Claim the term after the one that has lapsed; return the leadership, or None if another service was faster.

    Raises:
        OSError: The storage does not answer.
    """
    began_s = elapsed_s()
    try:
        owned = claim_after(store, me, seen.term, now_ms, int(lease_s * 1000))
    except Fenced:
        return None
    return None if owned is None else Leadership(owned, cluster, lease_s, began_s)


class Leadership:
    """The leader's term. It may end at any moment. Thread-safe.

    Args:
        owned: The claim.
        cluster: The id of the cluster.
        lease_s: The lease.
        since_s: When the leader began to claim.
    """

    def __init__(self, owned: Ownership, cluster: str, lease_s: float, since_s: float) -> None:
        self.term = LeaderTerm(cluster, owned.term)
        self.lease_s = lease_s
        self._owned = owned
        self._lock = threading.Lock()
        self._leads_until_s = since_s + lease_s * _LEADS_FOR
        self._lost: str | None = None

    @property
    def is_valid(self) -> bool:
        """Whether this service leads, as far as it can know without asking the storage."""
        return self._lost is None and elapsed_s() < self._leads_until_s

    @property
    def why_lost(self) -> str:
        """The reason why this service no longer leads."""
        return self._lost or "it could not renew its lease in time"

    @property
    def renewal_s(self) -> float:
        """The time between two renewals."""
        return self.lease_s / RENEWALS_PER_LEASE

    def confirm(self) -> None:
        """Ask the storage whether this service still leads.

        Raises:
            NotLeader: It does not, or the storage does not answer.
        """
        try:
            if self.is_valid:
                self._owned.check()
        except Fenced:
            self._lost = "another service leads, or the storage of the cluster was removed"
        except OSError as error:
            raise NotLeader(f"the storage of the cluster does not answer: {error}") from error
        if not self.is_valid:
            raise NotLeader(self.why_lost)

    def renew(self) -> None:
        """Show a sign of life, and extend the lease if the storage accepts it in time.

        Raises:
            NotLeader: This service no longer leads.
            OSError: The storage does not answer; the lease stays valid until its end.
        """
        began_s = elapsed_s()
        if not self.is_valid:
            raise NotLeader(self.why_lost)
        try:
            self._owned.check()
            self._owned.show_alive(int(began_s * 1000))
            self._owned.check()
        except Fenced:
            self._lost = "another service leads, or the storage of the cluster was removed"
            raise NotLeader(self._lost) from None
        with self._lock:
            if self.is_valid:  # a lease that has lapsed meanwhile is not renewed
                self._leads_until_s = began_s + self.lease_s * _LEADS_FOR

    def step_down(self, why: str) -> None:
        """Stop leading."""
        self._lost = self._lost or why

    def release(self) -> None:
        """Stop leading, and let the next service lead at once.

        Raises:
            OSError: The storage does not answer. The next service waits for the end of the lease.
        """
        was_valid = self.is_valid
        self.step_down("it has given up its term")
        if was_valid:
            self._owned.release()
