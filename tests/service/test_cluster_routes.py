"""What a service of a cluster answers while it leads, while it stands by, and when it stops leading in between."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.checkpoint.driver_process import Driver
from ekorn.service.cluster.cluster_files import Member
from ekorn.service.cluster.clustered_service import ClusterRoutes, add_cluster_route
from ekorn.service.cluster.leadership import Leadership, look, try_to_lead
from ekorn.storage.memory import MemoryFiles
from ekorn.web.http_messages import HttpError, Request, Response
from ekorn.web.routes import Routes

ME, OTHER = "token-of-me", "token-of-another"
LEADER = Member(OTHER, "http://leader:8081", "leader", 7)
NOBODY = "this service is not the leader, and no leader is known at the moment; try again"


class Node:
    """Stands for this service in its cluster."""

    token = ME

    def __init__(self) -> None:
        self.leadership: Leadership | None = None
        self.leader: Member | None = None

    def describe(self) -> dict[str, Any]:
        return {"cluster": "c"}


class Cluster:
    """The routes of a service, and what it does with the storage."""

    def __init__(self) -> None:
        self.store, self.node = MemoryFiles(), Node()
        self.led_routes: Routes | None = None
        self.routes = ClusterRoutes(lambda: self.node, lambda: self.led_routes, 1_000)  # type: ignore[arg-type, return-value]

    def lead(self, name: str) -> Leadership:
        me = Driver(name, 1, "1", name)
        led = try_to_lead(self.store, me, look(self.store), "c", now_ms=0, lease_s=600.0)
        assert led is not None
        return led

    def enter(self, answer: Any) -> None:
        """Lead, with a route that reads and one that changes something."""
        self.node.leadership, self.node.leader = self.lead(ME), Member(ME, "http://me:8081", "me", 1)
        self.led_routes = Routes()
        self.led_routes.add("GET", "/jobs/:id", answer)
        self.led_routes.add("POST", "/jobs", answer)
        add_cluster_route(self.led_routes, lambda: self.node)  # type: ignore[arg-type, return-value]

    def ask(self, method: str, *parts: str, **query: list[str]) -> Any:
        found = self.routes.find(method, list(parts))
        path = "/" + "/".join(parts)
        return found.route.handler(Request(method, path, found.parameters, query))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_a_standby_names_the_leader_for_every_request(cluster: Cluster, method: str) -> None:
    cluster.node.leader = LEADER
    answer = cluster.ask(method, "jobs", "a b", parallelism=["3"], mode=["x", "&"])
    assert answer.status == 307
    assert answer.headers == {"Location": "http://leader:8081/jobs/a%20b?parallelism=3&mode=x&mode=%26"}
    assert answer.content == {"errors": ["this service is not the leader; the leader is at http://leader:8081"]}
    assert cluster.ask(method, "jobs").headers == {"Location": "http://leader:8081/jobs"}


def test_the_page_of_a_standby_is_that_of_the_leader_and_needs_no_token(cluster: Cluster) -> None:
    cluster.node.leader = LEADER
    assert cluster.ask("GET").headers == {"Location": "http://leader:8081/"}
    assert cluster.routes.find("GET", []).route.is_public
    assert not cluster.routes.find("GET", ["jobs"]).route.is_public


@pytest.mark.parametrize("leader", [None, Member(ME, "http://me:8081", "me", 1)])
def test_while_no_other_service_leads_a_standby_asks_for_patience(cluster: Cluster, leader: Member | None) -> None:
    cluster.node.leader = leader
    answer = cluster.ask("POST", "jobs")
    assert (answer.status, answer.headers, answer.content) == (503, {"Retry-After": "1"}, {"errors": [NOBODY]})


def test_a_standby_takes_programs_as_long_as_the_leader_does_before_it_names_the_leader(cluster: Cluster) -> None:
    upload = cluster.routes.find("POST", ["jars", "upload"]).route
    assert (upload.to_file, upload.most_body_bytes, upload.reads_only) == (True, 1_000, True)
    patch = cluster.routes.find("PATCH", ["jobs", "1"]).route
    assert (patch.to_file, patch.reads_only) == (False, True), "a read-only standby forwards, too"


def test_a_leader_answers_itself(cluster: Cluster) -> None:
    cluster.enter(lambda request: {"asked": dict(request.parameters)})
    assert cluster.ask("GET", "jobs", "7") == {"asked": {"id": "7"}}
    assert cluster.ask("POST", "jobs") == {"asked": {}}
    with pytest.raises(HttpError, match="there is no path /nowhere"):
        cluster.ask("GET", "nowhere")


def test_the_cluster_is_described_by_the_leader_and_by_standbys(cluster: Cluster) -> None:
    assert cluster.ask("GET", "service", "cluster") == {"cluster": "c"}
    cluster.enter(lambda request: {})
    assert cluster.ask("GET", "service", "cluster") == {"cluster": "c"}


def test_a_service_that_has_not_opened_its_jobs_yet_stands_by(cluster: Cluster) -> None:
    cluster.enter(lambda request: {})
    cluster.led_routes = None
    assert cluster.ask("GET", "jobs", "7").status == 503


def test_a_leader_that_was_replaced_says_so_of_a_change_and_not_that_it_is_done(cluster: Cluster) -> None:
    done: list[str] = []
    cluster.enter(lambda request: done.append(request.path) or {"done": True})

    def replaced(request: Request) -> Response:
        cluster.lead(OTHER)
        cluster.node.leader = LEADER
        return Response({"done": True}, 202)

    assert cluster.ask("POST", "jobs") == {"done": True}
    assert cluster.led_routes is not None
    cluster.led_routes.add("POST", "/jobs", replaced)
    assert cluster.ask("POST", "jobs").status == 307


def test_a_reading_request_does_not_ask_the_storage(cluster: Cluster) -> None:
    cluster.enter(lambda request: {"read": True})
    cluster.lead(OTHER)
    assert cluster.ask("GET", "jobs", "7") == {"read": True}


def test_an_answer_that_is_ready_after_the_lease_is_not_given(cluster: Cluster) -> None:
    def late(request: Request) -> dict[str, Any]:
        assert cluster.node.leadership is not None
        cluster.node.leadership.step_down("it took too long")
        return {"read": True}

    cluster.enter(late)
    assert cluster.ask("GET", "jobs", "7").status == 503


def test_a_handler_that_finds_that_it_does_not_lead_names_the_leader(cluster: Cluster) -> None:
    def found_out(request: Request) -> dict[str, Any]:
        cluster.lead(OTHER)
        cluster.node.leader = LEADER
        assert cluster.node.leadership is not None
        cluster.node.leadership.confirm()
        raise AssertionError("it does not lead")

    cluster.enter(found_out)
    assert cluster.ask("GET", "jobs", "7").status == 307


def test_the_routes_are_those_of_the_role(cluster: Cluster) -> None:
    assert {route.path for route in cluster.routes} == {"/service/cluster", "/", "/*"}
    cluster.enter(lambda request: {})
    assert {route.path for route in cluster.routes} == {"/jobs/:id", "/jobs", "/service/cluster"}
