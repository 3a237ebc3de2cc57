"""One service among several: when it leads, whom it takes for living, and what it shows of the cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from ekorn.checkpoint.driver_process import Driver
from ekorn.checkpoint.ownership import claim
from ekorn.clock import ManualClock
from ekorn.service.cluster import cluster_node, leadership
from ekorn.service.cluster.cluster_files import ClusterFiles, Member
from ekorn.service.cluster.cluster_node import ClusterNode, Office
from ekorn.service.cluster.leadership import Leadership, NotLeader, look
from ekorn.storage.memory import MemoryFiles
from tests.live_jobs import until

LEASE_S = 600.0  # no lease ends while a test runs, unless the test moves its clock


class Storage(MemoryFiles):
    """Files that may fail."""

    error: OSError | None = None

    def read(self, path: str) -> bytes:
        if self.error is not None:
            raise self.error
        return super().read(path)


class Clock:
    """The seconds that all services of a test see."""

    now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (cluster_node, leadership):
        monkeypatch.setattr(module, "elapsed_s", made)
    return made


class Service:
    """A service of a cluster whose thread a test stands for."""

    def __init__(self, name: str, store: MemoryFiles, *, host: str = "host", pid: int = 1) -> None:
        self.events: list[str] = []
        self.fails: Exception | None = None
        self.node = ClusterNode(
            ClusterFiles(store),
            Driver(host, pid, "0", f"token-{name}"),
            f"http://{name}:1",
            lease_s=LEASE_S,
            office=Office(self._enter, self._leave),
            clock=ManualClock(),
        )

    def _enter(self, led: Leadership) -> None:
        self.events.append(f"enters {led.term.term}")
        if self.fails is not None:
            raise self.fails

    def _leave(self, led: Leadership) -> None:
        self.events.append(f"leaves {led.term.term}")

    def look(self) -> None:
        """Do what the thread does while it stands by."""
        self.node._look()

    @property
    def leader(self) -> str | None:
        return None if self.node.leader is None else self.node.leader.address


@pytest.fixture
def store() -> Storage:
    return Storage()


@pytest.fixture
def make(store: Storage, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Callable[..., Service]:
    monkeypatch.setattr(ClusterNode, "_renew", lambda self, led: None)  # no test here depends on the second thread
    return lambda name, **more: Service(name, store, **more)


def test_the_first_service_leads_and_the_second_stands_by(make: Callable[..., Service]) -> None:
    a, b = make("a", host="h1"), make("b", host="h2")
    a.look()
    b.look()
    assert a.events == ["enters 1"] and b.events == []
    assert a.node.leadership is not None and b.node.leadership is None
    assert a.leader == b.leader == "http://a:1"


def test_a_standby_leads_when_the_lease_has_lapsed_and_not_before(make: Callable[..., Service], clock: Clock) -> None:
    a, b = make("a", host="h1"), make("b", host="h2")
    a.look()
    b.look()
    clock.now_s += 399.0
    b.look()
    assert b.events == []
    clock.now_s += 1.0  # two thirds of the lease
    b.look()
    assert b.events == ["enters 2"]
    assert a.node.leadership is None, "half of its lease is over"


def test_a_leader_whose_process_is_gone_is_followed_at_once(make: Callable[..., Service]) -> None:
    a, b = make("a", pid=0), make("b")  # on one host, where no process 0 can be seen
    a.look()
    b.look()
    assert b.events == ["enters 2"]


def test_a_leader_that_is_closed_is_followed_at_once_and_forgotten(
    make: Callable[..., Service], store: Storage
) -> None:
    a, b = make("a", host="h1"), make("b", host="h2")
    a.look()
    a.node._thread.start()
    a.node.close()
    assert a.events == ["enters 1", "leaves 1"]
    assert look(store).is_released
    assert [each.token for each in ClusterFiles(store).members()] == []
    b.look()
    assert b.events == ["enters 2"]


def test_a_service_that_cannot_lead_lets_another_one_try(make: Callable[..., Service], clock: Clock) -> None:
    a, b = make("a", host="h1"), make("b", host="h2")
    a.fails = OSError("no space")
    a.look()
    assert a.events == ["enters 1", "leaves 1"]
    assert a.node.leadership is None and a.leader is None
    clock.now_s += LEASE_S - 1.0
    a.look()
    assert a.events == ["enters 1", "leaves 1"], "it rests"
    b.look()
    assert b.events == ["enters 2"]
    b.node._step_down("on purpose", give_up=True)
    clock.now_s += 1.0
    a.fails = None
    a.look()
    assert a.events == ["enters 1", "leaves 1", "enters 3"]


@pytest.mark.parametrize(
    ("error", "traced"), [(OSError("no"), False), (NotLeader("no"), False), (ValueError("no"), True)]
)
def test_only_a_defect_is_logged_with_its_traceback(
    make: Callable[..., Service], caplog: pytest.LogCaptureFixture, error: Exception, traced: bool
) -> None:
    a = make("a")
    a.fails = error
    a.look()
    (told,) = [each for each in caplog.records if "cannot lead" in each.message]
    assert bool(told.exc_info) is traced


def test_a_storage_that_does_not_answer_is_told_once_and_shown(
    make: Callable[..., Service], store: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = make("a", host="h1"), make("b", host="h2")
    a.look()
    b.look()
    store.error = OSError("no route")
    for _ in range(3):
        b.look()
    assert caplog.text.count("the storage of the cluster does not answer: no route") == 1
    assert b.node.describe()["storage-error"] == "no route"
    assert b.leader is None
    store.error = None
    b.look()
    assert b.node.describe()["storage-error"] is None and b.leader == "http://a:1"
    store.error = OSError("no route")
    b.look()
    assert caplog.text.count("the storage of the cluster does not answer: no route") == 2


def test_a_service_that_lost_its_lease_leaves_its_office_and_stands_by(
    make: Callable[..., Service], clock: Clock, store: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = make("a", host="h1"), make("b", host="h2")
    a.look()
    led = a.node._led
    assert led is not None
    clock.now_s += LEASE_S / 2
    a.node._step_down(led.why_lost)
    a.node._step_down(led.why_lost)
    assert a.events == ["enters 1", "leaves 1"]
    assert "no longer leads (term 1): it could not renew its lease in time" in caplog.text
    assert not look(store).is_released, "it may have been replaced: the term is not its own to give up"
    b.look()
    clock.now_s += LEASE_S
    b.look()
    a.look()
    assert a.leader == "http://b:1"


def test_a_cluster_is_described_alike_by_all_its_services(make: Callable[..., Service], store: Storage) -> None:
    a, b, c = make("a", host="h1", pid=11), make("b", host="h2", pid=12), make("c", host="h3", pid=13)
    for each in (c, a, b, c, a, b):
        each.look()
    described = {
        name: {"address": f"http://{name}:1", "host": f"h{n}", "pid": 10 + n} for n, name in enumerate("abc", 1)
    }
    for service, name in ((a, "a"), (b, "b"), (c, "c")):
        service.node._meet()
        assert service.node.describe() == {
            "cluster": ClusterFiles(store).cluster,
            "leader": described["c"],
            "standbys": [described["a"], described["b"]],
            "self": {**described[name], "leads": name == "c"},
            "lease-ms": 600_000,
            "storage-error": None,
        }


def test_a_service_alone_and_without_a_leader_describes_itself(make: Callable[..., Service]) -> None:
    found = make("a").node.describe()
    assert found["leader"] is None
    assert [each["address"] for each in found["standbys"]] == ["http://a:1"]


def test_a_member_without_a_sign_for_a_lease_is_not_shown_and_for_twenty_is_forgotten(
    make: Callable[..., Service], store: Storage, clock: Clock
) -> None:
    a, files = make("a"), ClusterFiles(store)
    silent, living = files.show(Member("s", "http://s:1", "s", 1)), files.show(Member("l", "http://l:1", "l", 1))

    def shown() -> set[str]:
        nonlocal living
        living = files.show(living)
        a.node._meet()
        return {each["address"][7] for each in a.node.describe()["standbys"]}

    assert shown() == {"a", "s", "l"}
    clock.now_s += LEASE_S - 1
    assert shown() == {"a", "s", "l"}
    clock.now_s += 1
    assert shown() == {"a", "l"}
    clock.now_s += 19 * LEASE_S
    assert shown() == {"a", "l"} and files.member(silent.token) is not None
    clock.now_s += 1
    assert shown() == {"a", "l"} and files.member(silent.token) is None
    assert files.member(living.token) == living


def test_a_member_that_shows_itself_again_is_shown_again(
    make: Callable[..., Service], store: Storage, clock: Clock
) -> None:
    a, files = make("a"), ClusterFiles(store)
    other = files.show(Member("o", "http://o:1", "o", 1))
    a.node._meet()
    clock.now_s += LEASE_S
    a.node._meet()
    assert len(a.node.describe()["standbys"]) == 1
    files.show(other)
    a.node._meet()
    assert len(a.node.describe()["standbys"]) == 2


class Eager(Leadership):
    """A leadership that is renewed a hundred times a second."""

    renewals = 0

    @property
    def renewal_s(self) -> float:
        return 0.01

    def renew(self) -> None:
        self.renewals += 1
        super().renew()


def test_a_leader_renews_its_lease_until_it_is_replaced(store: Storage, caplog: pytest.LogCaptureFixture) -> None:
    me, files = Driver("h1", 1, "1", "token-a"), ClusterFiles(store)
    office = Office(lambda led: None, lambda led: None)
    node = ClusterNode(files, me, "http://a:1", lease_s=LEASE_S, office=office, clock=ManualClock())
    led = Eager(claim(store, me, 0), "c", LEASE_S, leadership.elapsed_s())
    thread = threading.Thread(target=node._renew, args=(led,), daemon=True)
    thread.start()
    until(lambda: led.renewals > 2 and files.member("token-a") is not None)
    store.error = OSError("no route")
    until(lambda: "the lease could not be renewed: no route" in caplog.text)
    store.error = None
    seen = led.renewals
    until(lambda: led.renewals > seen + 2)
    store.delete("cluster")
    until(lambda: "gone or replaced" in caplog.text)
    store.publish("cluster", files.cluster.encode())
    other = Driver("h2", 1, "1", "token-b")
    assert leadership.try_to_lead(store, other, look(store), "c", now_ms=0, lease_s=LEASE_S) is not None
    thread.join(60)
    assert not thread.is_alive()


def test_a_node_leads_from_its_thread_and_leaves_when_its_leadership_ends(store: Storage) -> None:
    entered, left = list[Leadership](), list[Leadership]()
    office = Office(entered.append, left.append)
    me = Driver("h1", 1, "1", "token-a")
    node = ClusterNode(ClusterFiles(store), me, "http://a:1", lease_s=0.6, office=office, clock=ManualClock())
    node.start()
    until(lambda: entered)
    entered[0].step_down("on purpose")
    until(lambda: len(entered) > 1)
    assert left[0] is entered[0]
    node.close()
    assert left == entered
