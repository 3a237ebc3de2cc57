"""One service among those that stand by for each other: it watches the lease, leads, and stops leading.

There are two threads. The first waits for the lease to lapse, and uses only the clock to notice when this service must
stop leading. The second renews the lease while this service leads. A storage that hangs therefore blocks the renewal,
but the first thread still notices that the lease has ended.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ekorn.checkpoint.driver_process import Driver
from ekorn.clock import Clock
from ekorn.service.cluster.cluster_files import ClusterFiles, Member
from ekorn.service.cluster.leadership import Leadership, LeaseWatch, NotLeader, elapsed_s, look, try_to_lead

__all__ = ["ClusterNode", "Office"]

_log = logging.getLogger(__name__)

_LOOKS_PER_LEASE = 12
_FORGOTTEN_AFTER = 20  # the number of leases without a sign of life after which a standby is forgotten


@dataclass(frozen=True)
class Office:
    """What a service does while it leads.

    Attributes:
        enter: Called with the leadership when this service leads; raises if it cannot.
        leave: Called once for every call of `enter`, when this service no longer leads.
    """

    enter: Callable[[Leadership], None]
    leave: Callable[[Leadership], None]


class ClusterNode:
    """One service of a cluster.

    Args:
        files: The files of the cluster.
        me: The identity of this process.
        address: Where this service is reached.
        lease_s: The lease.
        office: What it does while it leads.
        clock: For the time of a claim, which people read.
    """

    def __init__(
        self, files: ClusterFiles, me: Driver, address: str, *, lease_s: float, office: Office, clock: Clock
    ) -> None:
        self._files = files
        self._me = me
        self._lease_s = lease_s
        self._office = office
        self._clock = clock
        self._watch = LeaseWatch(lease_s)
        self._member = Member(me.token, address, me.host, me.pid)
        self._beats: dict[str, tuple[int, float]] = {}
        self._members: tuple[Member, ...] = ()
        self._leader: Member | None = None
        self._led: Leadership | None = None
        self._storage_error: str | None = None
        self._rests_until_s = 0.0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ekorn-cluster", daemon=True)

    def start(self) -> None:
        """Stand by from now on."""
        self._thread.start()

    def close(self) -> None:
        """Stop leading and standing by. The next service may lead at once."""
        self._closed.set()
        self._thread.join()
        self._step_down("it was asked to stop", give_up=True)
        try:
            self._files.forget(self._me.token)
        except OSError as error:
            _log.warning("the service could not be removed from the list of the cluster: %s", error)

    @property
    def leadership(self) -> Leadership | None:
        """The leadership of this service; None if it does not lead, or may have been replaced."""
        led = self._led
        return led if led is not None and led.is_valid else None

    @property
    def token(self) -> str:
        """The token that tells this service apart from all others."""
        return self._me.token

    @property
    def leader(self) -> Member | None:
        """The service that leads, as this one saw it last; None if there is none, or the storage does not answer."""
        return self._leader

    def describe(self) -> dict[str, Any]:
        """Return the services of the cluster, as this one sees them."""
        leads = self.leadership is not None
        leader = self._member if leads else self._leader
        others = [each for each in self._members if each.token not in (self._me.token, leader.token if leader else "")]
        standbys = [*others, *([] if leads else [self._member])]
        return {
            "cluster": self._files.cluster,
            "leader": None if leader is None else _described(leader),
            "standbys": [_described(each) for each in sorted(standbys, key=lambda each: each.address)],
            "self": {**_described(self._member), "leads": leads},
            "lease-ms": int(self._lease_s * 1000),
            "storage-error": self._storage_error,
        }

    # --------------------------------------------------------------------------------------------------- the thread

    def _run(self) -> None:
        while not self._closed.wait(self._lease_s / _LOOKS_PER_LEASE):
            led = self._led
            try:
                if led is None:
                    self._look()
                elif not led.is_valid:
                    self._step_down(led.why_lost)
            except Exception:  # a defect must not end the watch: this service may be the last one
                _log.exception("the service could not check its cluster")

    def _look(self) -> None:
        try:
            self._stand_by()
            self._storage_error = None
        except OSError as error:
            if self._storage_error is None:
                _log.warning("the storage of the cluster does not answer: %s", error)
            self._storage_error, self._leader = str(error), None

    def _stand_by(self) -> None:
        self._files.check()
        seen = look(self._files.store)
        self._leader = None if seen.is_released or seen.claim is None else self._files.member(seen.claim.driver.token)
        self._meet()
        is_gone = seen.claim is not None and seen.claim.driver.is_gone(self._me)
        if not self._watch.has_lapsed(seen, elapsed_s()) and not is_gone:
            return
        if elapsed_s() < self._rests_until_s:
            return
        led = try_to_lead(
            self._files.store,
            self._me,
            seen,
            self._files.cluster,
            now_ms=self._clock.now_ms(),
            lease_s=self._lease_s,
        )
        if led is not None:
            self._lead(led)

    def _lead(self, led: Leadership) -> None:
        _log.info("this service leads the cluster from now on (term %d)", led.term.term)
        threading.Thread(target=self._renew, args=(led,), name="ekorn-lease", daemon=True).start()
        try:
            self._office.enter(led)
        except Exception as error:
            _log.error("this service cannot lead: %s", error, exc_info=not isinstance(error, OSError | NotLeader))
            self._rests_until_s = elapsed_s() + self._lease_s  # gives another service the chance to lead
            self._led = led
            self._step_down(str(error), give_up=True)
            return
        self._led, self._leader = led, self._member

    def _renew(self, led: Leadership) -> None:
        """Renew the lease until this service no longer leads."""
        while led.is_valid and not self._closed.wait(led.renewal_s):
            try:
                led.renew()
                self._files.check()
                self._meet()
            except NotLeader:
                return
            except OSError as error:
                _log.warning("the lease could not be renewed: %s", error)

    def _meet(self) -> None:
        """Show that this service lives, and find out which others do."""
        self._member = self._files.show(self._member)
        now_s, living = elapsed_s(), []
        for each in self._files.members():
            beat, since_s = self._beats.get(each.token, (-1, now_s))
            if beat != each.beat:
                beat, since_s = each.beat, now_s
            self._beats[each.token] = beat, since_s
            if now_s - since_s < self._lease_s:
                living.append(each)
            elif now_s - since_s > self._lease_s * _FORGOTTEN_AFTER:
                self._files.forget(each.token)
        self._members = tuple(living)

    def _step_down(self, why: str, *, give_up: bool = False) -> None:
        led, self._led = self._led, None
        if led is None:
            return
        self._leader = None
        _log.warning("this service no longer leads (term %d): %s", led.term.term, why)
        if not give_up:
            led.step_down(why)
        self._office.leave(led)
        if give_up:
            try:
                led.release()
            except OSError as error:
                _log.warning("the lease could not be released: %s", error)


def _described(member: Member) -> dict[str, Any]:
    return {"address": member.address, "host": member.host, "pid": member.pid}
