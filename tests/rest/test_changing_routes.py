"""Requests that change a job, as its driver begins and answers them, and its rescales as they are told."""

from __future__ import annotations

import json
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.driver.statistics.job_statistics import RescaleRecord, VertexChange
from ekorn.errors import CheckpointError
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest import changing_api, rescale_answers
from ekorn.rest.changing_api import add_changing_routes
from ekorn.rest.operations import Operations
from ekorn.web.http_messages import HttpError, Request, Response
from ekorn.web.routes import Routes
from tests.live_jobs import until
from tests.rest.fakes import JOB, job, vertex

RUNNING = JobStatus.RUNNING
TRIGGER = "a" * 32


class Driver:
    """A driver with one job, whose requests end when the test says so."""

    def __init__(self, status: JobStatus = RUNNING) -> None:
        self.asked: list[Any] = []
        self.futures: list[Future[Any]] = []
        self.job = job(vertex(3, 2), status=status)
        self.job.requests = SimpleNamespace(
            request_savepoint=lambda directory, **more: self._begin("savepoint", directory, more),
            request_rescale=lambda parallelism, directory, **more: self._begin("rescale", parallelism, directory, more),
            request_checkpoint=lambda: self._begin("checkpoint"),
            cancel=lambda: self.asked.append("cancel"),
        )
        self.job.results = SimpleNamespace(wait_for_end=lambda timeout: self._end())
        self.job.refuse_without_state = lambda: None
        self.job.statistics.settings = SimpleNamespace(checkpoints=SimpleNamespace(signing_key_file=None))
        self.routes = Routes()
        known = SimpleNamespace(find=lambda job_id: self.job, all=lambda: [self.job])
        add_changing_routes(self.routes, known, Operations())  # type: ignore[arg-type]

    def _begin(self, *asked: Any) -> Future[Any]:
        self.asked.append(asked)
        self.futures.append(Future())
        return self.futures[-1]

    def _end(self) -> None:
        self.job.status = JobStatus.CANCELED

    def ask(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        found = self.routes.find(method, path.split("/"))
        data = b"" if body is None else json.dumps(body).encode()
        given = {name: [value] for name, value in query.items()}
        answer = found.route.handler(Request(method, f"/{path}", found.parameters, given, data))
        return (answer.status, answer.content) if isinstance(answer, Response) else answer


AT = f"jobs/{JOB}"


@pytest.mark.parametrize(
    ("path", "body", "asked"),
    [
        ("savepoints", {}, ("savepoint", None, {"native": False, "then": "go on"})),
        (
            "savepoints",
            {"target-directory": "/d", "cancel-job": True, "formatType": "NATIVE"},
            ("savepoint", "/d", {"native": True, "then": "cancel"}),
        ),
        ("stop", {"formatType": "CANONICAL"}, ("savepoint", None, {"native": False, "then": "stop"})),
        ("stop", {"targetDirectory": "/d", "drain": True}, ("savepoint", "/d", {"native": False, "then": "drain"})),
    ],
)
def test_a_savepoint_is_begun_as_it_is_asked_for(path, body, asked):
    driver = Driver()
    status, answer = driver.ask("POST", f"{AT}/{path}", {**body, "triggerId": TRIGGER})
    assert (status, answer) == (202, {"request-id": TRIGGER}) and driver.asked == [asked]
    driver.futures[0].set_result("/saved")
    found = driver.ask("GET", f"{AT}/savepoints/{TRIGGER}")
    assert found == {"status": {"id": "COMPLETED"}, "operation": {"location": "/saved"}}


def test_a_request_may_wait_for_its_outcome():
    driver = Driver()
    begin = driver._begin

    def at_once(*asked: Any) -> Future[Any]:
        future = begin(*asked)
        future.set_result("/saved")
        return future

    driver._begin = at_once  # type: ignore[method-assign]
    for method, path, query in (("POST", "savepoints", {}), ("PATCH", "rescaling", {"parallelism": "3"})):
        status, answer = driver.ask(method, f"{AT}/{path}", {}, wait="true", **query)
        assert status == 200 and answer["operation"] == {"location": "/saved"} and len(answer["request-id"]) == 32
    status, answer = driver.ask("POST", f"{AT}/savepoints", {}, wait="false")
    assert status == 202


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        ("savepoints", {"cancel-job": "yes"}, "the field 'cancel-job' is neither true nor false"),
        ("savepoints", {"target-directory": 7}, "the field 'target-directory' is not text"),
        ("savepoints", {"formatType": "x" * 50}, f"'formatType' is '{'x' * 40}'; choose from CANONICAL, NATIVE"),
        ("stop", {"drain": 1}, "the field 'drain' is neither true nor false"),
        ("checkpoints", {"checkpointType": "FULL"}, "choose from CONFIGURED"),
    ],
)
def test_a_wrong_field_is_named(path, body, reason):
    driver = Driver()
    with pytest.raises(HttpError, match=reason) as refused:
        driver.ask("POST", f"{AT}/{path}", body)
    assert refused.value.status == 400 and driver.asked == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "savepoints"),
        ("POST", "stop"),
        ("POST", "checkpoints"),
        ("PATCH", "rescaling"),
        ("PUT", "resource-requirements"),
    ],
)
def test_a_job_that_has_ended_is_not_changed(method, path):
    driver = Driver(JobStatus.FINISHED)
    with pytest.raises(HttpError, match=rf"job {JOB} has ended \(FINISHED\)") as refused:
        driver.ask(method, f"{AT}/{path}", {})
    assert refused.value.status == 409 and driver.asked == []


@pytest.mark.parametrize("query", [{}, {"mode": "cancel"}, {"mode": "CANCEL"}])
def test_a_job_is_cancelled_and_may_be_waited_for(query):
    driver = Driver()
    assert driver.ask("PATCH", AT, **query) == (202, {})
    assert driver.ask("PATCH", AT, wait="true", **query) == (200, {"status": "CANCELED"})
    assert driver.ask("PATCH", AT, **query) == (202, {}), "again"
    assert driver.asked == ["cancel"] * 3


@pytest.mark.parametrize("status", [JobStatus.FINISHED, JobStatus.FAILED])
def test_a_job_that_is_over_is_not_cancelled(status):
    driver = Driver(status)
    with pytest.raises(HttpError, match=rf"has ended \({status.name}\)"):
        driver.ask("PATCH", AT)
    with pytest.raises(HttpError, match=f"unknown mode '{'x' * 40}': use 'cancel', or POST .../stop"):
        driver.ask("PATCH", AT, mode="x" * 50)
    assert driver.asked == []


def test_a_rescale_needs_a_parallelism():
    driver = Driver()
    with pytest.raises(HttpError, match="the query parameter 'parallelism' is missing"):
        driver.ask("PATCH", f"{AT}/rescaling")
    driver.ask("PATCH", f"{AT}/rescaling", parallelism="3", targetDirectory="/d", slots="4")
    assert driver.asked == [("rescale", 3, "/d", {"most_slots": 4})]
    with pytest.raises(HttpError, match="'slots' is '0'"):
        driver.ask("PATCH", f"{AT}/rescaling", parallelism="3", slots="0")


def test_requirements_that_the_job_meets_change_nothing():
    driver = Driver()
    for upper, asked in ((2, []), (3, [("rescale", 3, None, {"most_slots": None})])):
        body = {"op3": {"parallelism": {"upperBound": upper}}}
        assert driver.ask("PUT", f"{AT}/resource-requirements", body) == (200, {})
        assert driver.asked == asked


def test_a_checkpoint_has_ids_of_its_own():
    driver = Driver()
    status, answer = driver.ask("POST", f"{AT}/checkpoints", {"triggerId": TRIGGER, "checkpointType": "CONFIGURED"})
    assert (status, answer) == (202, {"request-id": TRIGGER})
    driver.ask("POST", f"{AT}/savepoints", {"triggerId": TRIGGER})
    assert [asked[0] for asked in driver.asked] == ["checkpoint", "savepoint"]
    driver.futures[0].set_exception(CheckpointError("expired"))
    found = driver.ask("GET", f"{AT}/checkpoints/{TRIGGER}")
    assert found["operation"]["failureCause"]["stack-trace"] == "expired"
    assert driver.ask("GET", f"{AT}/savepoints/{TRIGGER}")["status"]["id"] == "IN_PROGRESS"


def test_a_savepoint_is_deleted_in_the_background(monkeypatch):
    deleted: list[Any] = []
    monkeypatch.setattr(changing_api, "dispose_savepoint", lambda path, key: deleted.append((path, key)))
    driver = Driver()
    with pytest.raises(HttpError, match="the body has no 'savepoint-path'"):
        driver.ask("POST", "savepoint-disposal", {"savepoint-path": ""})
    trigger_id = driver.ask("POST", "savepoint-disposal", {"savepoint-path": "/saved"})["request-id"]
    until(lambda: driver.ask("GET", f"savepoint-disposal/{trigger_id}")["status"]["id"] == "COMPLETED")
    assert deleted == [("/saved", None)]


# -------------------------------------------------------------------------------------------------------- rescales


def change(name: str, group: str, before: int, wanted: int) -> VertexChange:
    return VertexChange(name, f"name of {name}", group, before, wanted)


DONE = RescaleRecord(
    1, 1_000, 1_500, 2, 3, "request", None, (change("a", "g", 2, 3), change("b", "g", 1, 4), change("c", "h", 2, 3))
)
FAILED = RescaleRecord(2, 2_000, 2_100, 3, 4, "reactive: slots", "no savepoint", (change("a", "g", 3, 4),))
IGNORED = RescaleRecord(3, 3_000, 3_000, 3, 9, "request", "no slots", ())


def rescaled(*records: RescaleRecord, reactive: Any = None) -> Any:
    settings = SimpleNamespace(elasticity=SimpleNamespace(reactive=reactive))
    return job(vertex(3), rescales=list(records), settings=settings)


def test_rescales_are_told_the_newest_first_and_counted_by_their_outcome():
    known = rescaled(DONE, FAILED, IGNORED)
    assert [each["timestamp"] for each in rescale_answers.rescales(known)["rescales"]] == [3_000, 2_100, 1_500]
    assert [each["rescaleAttemptId"] for each in rescale_answers.history(known)] == [3, 2, 1]
    found = rescale_answers.overview(known)
    assert found["rescalesCounts"] == {"ignored": 1, "completed": 1, "failed": 1, "inProgress": 0}
    assert [found["latest"][name]["rescaleAttemptId"] for name in ("completed", "failed", "ignored")] == [1, 2, 3]
    assert rescale_answers.overview(rescaled())["latest"] == {"completed": None, "failed": None, "ignored": None}
    summed = rescale_answers.summaries(known)
    assert summed["rescalesDurationStatsInMillis"]["avg"] == 200
    by_outcome = [summed[f"{name}RescalesDurationStatsInMillis"]["max"] for name in ("completed", "failed", "ignored")]
    assert by_outcome == [500, 100, 0]


def test_a_rescale_is_told_with_what_it_changed():
    known = rescaled(DONE, FAILED, IGNORED)
    first, second, third = rescale_answers.rescale_ids(known)
    assert len({first, second, third}) == 3 and len(first) == 32
    done = rescale_answers.details(known, first)
    assert (done["terminalState"], done["terminatedReason"], done["triggerCause"]) == (
        "COMPLETED",
        "SUCCEEDED",
        "UPDATE_REQUIREMENT",
    )
    assert (done["startTimestampInMillis"], done["endTimestampInMillis"]) == (1_000, 1_500)
    assert done["schedulerStates"][0]["durationInMillis"] == 500
    of_b = done["vertices"]["b"]
    assert (of_b["preRescaleParallelism"], of_b["postRescaleParallelism"], of_b["desiredParallelism"]) == (1, 4, 4)
    groups = {each["slotSharingGroupName"]: each for each in done["slots"].values()}
    assert (groups["g"]["desiredSlots"], groups["g"]["preRescaleSlots"], groups["g"]["postRescaleSlots"]) == (4, 2, 4)
    assert groups["h"]["minimalRequiredSlots"] == 3
    failed = rescale_answers.details(known, second)
    assert (failed["terminalState"], failed["terminatedReason"]) == ("FAILED", "EXCEPTION_OCCURRED")
    assert failed["triggerCause"] == "NEW_RESOURCE_AVAILABLE"
    assert failed["vertices"]["a"]["postRescaleParallelism"] == 3
    assert next(iter(failed["slots"].values()))["postRescaleSlots"] == 3
    assert failed["schedulerStates"][0]["stringifiedException"] == "no savepoint"
    ignored = rescale_answers.details(known, third)
    assert (ignored["terminalState"], ignored["slots"], ignored["vertices"]) == ("IGNORED", {}, {})
    with pytest.raises(HttpError, match=f"there is no rescale '{'x' * 40}'"):
        rescale_answers.details(known, "x" * 50)


def test_waiting_times_that_ekorn_does_not_have_are_minus_one():
    found = rescale_answers.configuration(rescaled())
    assert found["schedulerExecutionMode"] is None
    assert [value for name, value in found.items() if name.endswith("Millis")] == [-1] * 6
    assert found["rescaleOnFailedCheckpointCount"] == 1
    reactive = SimpleNamespace(cooldown_ms=30, stabilization_ms=10)
    found = rescale_answers.configuration(rescaled(reactive=reactive))
    assert (found["schedulerExecutionMode"], found["executingCooldownTimeoutInMillis"]) == ("REACTIVE", 30)
    assert found["executingResourceStabilizationTimeoutInMillis"] == 10
    assert found["maximumDelayForTriggeringRescaleInMillis"] == -1
