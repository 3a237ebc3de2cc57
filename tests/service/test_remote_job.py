"""The client of a job by its REST API: what it asks, how long it waits, and what it makes of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from ekorn.errors import CheckpointError, JobCancelledError, JobExecutionError, RescaleError
from ekorn.functions.results.job_status import JobStatus
from ekorn.service.client import remote_job
from ekorn.service.client.remote_job import RemoteJob
from ekorn.web.http_client import RefusedRequest

JOB = "1" * 32
AT = f"/jobs/{JOB}"


class Answer:
    def __init__(self, content: Any) -> None:
        self._content = content

    def json(self) -> Any:
        if isinstance(self._content, Exception):
            raise self._content
        return self._content


class Server:
    """Answers from a script, by method and path; the last answer of a path stays."""

    address = "unix:/s"

    def __init__(self) -> None:
        self.answers: dict[str, list[Any]] = {}
        self.asked: list[tuple[str, str, Any]] = []

    def on(self, asked: str, *answers: Any) -> Server:
        self.answers[asked] = list(answers)
        return self

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        self.asked.append((method, path, body))
        given = self.answers.get(f"{method} {path}")
        if given is None:
            return Answer(RefusedRequest(404, f"there is no {path}"))
        return Answer(given.pop(0) if len(given) > 1 else given[0])

    def get(self, path: str) -> Any:
        return self.ask("GET", path).json()

    def statuses(self, *names: str) -> Server:
        return self.on(f"GET {AT}/status", *({"status": name} for name in names))


def job_of(server: Server, *, one_answer: bool = False) -> tuple[RemoteJob, list[float]]:
    pauses: list[float] = []
    made = RemoteJob(server, JOB, one_answer=one_answer, pause=pauses.append)  # type: ignore[arg-type]
    return made, pauses


def test_a_job_has_its_own_name_once_it_has_started():
    server = Server()
    job, _ = job_of(server)
    assert job.job_name == JOB
    server.on(f"GET {AT}", {"name": "shown"})
    assert job.job_name == "shown" and job.queries_at is None
    assert repr(job) == f"RemoteJob('{JOB}', 'unix:/s')"


def test_a_cancelled_job_is_waited_for():
    server = Server().on(f"PATCH {AT}?mode=cancel", {}).statuses("RUNNING", "CANCELLING", "CANCELED")
    job, pauses = job_of(server)
    assert job.cancel_and_wait() is JobStatus.CANCELED
    assert pauses == [remote_job._POLL_S] * 2 and server.asked[0] == ("PATCH", f"{AT}?mode=cancel", None)
    server = Server().on(f"PATCH {AT}?mode=cancel&wait=true", {"status": "FINISHED"})
    job, pauses = job_of(server, one_answer=True)
    assert job.cancel_and_wait() is JobStatus.FINISHED and pauses == [] and len(server.asked) == 1


def test_a_job_that_finished_has_its_duration_and_its_accumulators():
    server = Server().statuses("RUNNING", "FINISHED").on(f"GET {AT}", {"name": "shown", "duration": 70})
    server.on(f"GET {AT}/accumulators", {"user-task-accumulators": [{"name": "a", "value": "1"}]})
    job, pauses = job_of(server)
    result = job.wait()
    assert (result.get_net_runtime(), result.get_all_accumulator_results()) == (70, {"a": "1"})
    assert str(result.get_job_id()) == JOB and len(pauses) == 1


@pytest.mark.parametrize(
    ("entries", "reason"),
    [([{"stacktrace": "ValueError: no"}, {"stacktrace": "old"}], "ValueError: no"), ([], "see its log")],
)
def test_a_job_that_failed_says_why(entries, reason):
    server = Server().statuses("FAILED").on(f"GET {AT}/exceptions", {"exceptionHistory": {"entries": entries}})
    with pytest.raises(JobExecutionError, match=reason):
        job_of(server)[0].wait()


def test_a_job_that_was_cancelled_has_no_result():
    with pytest.raises(JobCancelledError):
        job_of(Server().statuses("CANCELED"))[0].wait()


def test_a_job_is_waited_for_as_long_as_is_asked_for():
    job, pauses = job_of(Server().statuses("RUNNING"))
    with pytest.raises(TimeoutError, match=f"job '{JOB}' is still RUNNING after 0 s"):
        job.wait(0)
    assert pauses == []


def begun(path: str, *outcomes: Any, method: str = "POST", asked_at: str = "savepoints") -> Server:
    server = Server().on(f"{method} {AT}/{path}", {"request-id": "r1"})
    return server.on(f"GET {AT}/{asked_at}/r1", *outcomes)


RUNS = {"status": {"id": "IN_PROGRESS"}}


def done(**operation: Any) -> dict[str, Any]:
    return {"status": {"id": "COMPLETED"}, "operation": operation}


@pytest.mark.parametrize(
    ("then", "path", "body"),
    [
        ("go on", "savepoints", {"target-directory": "/d", "cancel-job": False, "formatType": "CANONICAL"}),
        ("cancel", "savepoints", {"target-directory": "/d", "cancel-job": True, "formatType": "CANONICAL"}),
        ("stop", "stop", {"targetDirectory": "/d", "drain": False, "formatType": "CANONICAL"}),
        ("drain", "stop", {"targetDirectory": "/d", "drain": True, "formatType": "CANONICAL"}),
    ],
)
def test_a_savepoint_is_asked_for_and_waited_for(then, path, body):
    server = begun(path, RUNS, RefusedRequest(410, "ending"), done(location="/saved"))
    job, pauses = job_of(server)
    assert job.request_savepoint("/d", then=then).result(60) == "/saved"
    assert server.asked[0] == ("POST", f"{AT}/{path}", body) and len(pauses) == 2
    server = begun(path, done(location="/saved"))
    job_of(server)[0].request_savepoint("/d", native=True, then=then).result(60)
    assert server.asked[0][2]["formatType"] == "NATIVE"


def test_a_savepoint_that_failed_or_whose_outcome_is_unknown_says_so():
    failed = begun("savepoints", done(**{"failure-cause": {"stack-trace": "no space"}}))
    with pytest.raises(CheckpointError, match="no space"):
        job_of(failed)[0].request_savepoint().result(60)
    unknown = begun("savepoints", RefusedRequest(404, "not kept"))
    with pytest.raises(CheckpointError, match=r"the outcome of the request is unknown \(savepoints\): not kept"):
        job_of(unknown)[0].request_savepoint().result(60)
    with pytest.raises(RefusedRequest):
        job_of(Server())[0].request_savepoint()


def test_a_driver_may_answer_when_the_savepoint_is_there():
    server = Server().on(f"POST {AT}/savepoints?wait=true", done(location="/saved"))
    job, pauses = job_of(server, one_answer=True)
    assert job.request_savepoint().result(60) == "/saved" and pauses == [] and len(server.asked) == 1


def test_a_rescale_names_what_is_given():
    server = begun("rescaling?parallelism=3", RUNS, done(location="chk-1"), method="PATCH", asked_at="rescaling")
    assert job_of(server)[0].request_rescale(3).result(60) == "chk-1"
    path = "rescaling?parallelism=3&targetDirectory=%2Fd&slots=4&wait=true"
    server = Server().on(f"PATCH {AT}/{path}", done(**{"failure-cause": {"stack-trace": "no slots"}}))
    with pytest.raises(RescaleError, match="no slots"):
        job_of(server, one_answer=True)[0].request_rescale(3, "/d", most_slots=4).result(60)


def test_a_savepoint_is_disposed_of_and_a_failure_told():
    server = Server().on("POST /savepoint-disposal", {"request-id": "r1"})
    server.on("GET /savepoint-disposal/r1", RUNS, RUNS, done())
    job, pauses = job_of(server)
    job.dispose_savepoint("/saved")
    assert server.asked[0][2] == {"savepoint-path": "/saved"} and len(pauses) == 2
    server.on("GET /savepoint-disposal/r1", done(**{"failure-cause": {"stack-trace": "not found"}}))
    with pytest.raises(CheckpointError, match="not found"):
        job.dispose_savepoint("/saved")


@pytest.mark.parametrize(("interval", "takes"), [(500, True), (2**63 - 2, True), (2**63 - 1, False)])
def test_a_job_takes_checkpoints_if_it_has_an_interval(interval, takes):
    server = Server().on(f"GET {AT}/checkpoints/config", {"interval": interval})
    assert job_of(server)[0].takes_checkpoints() is takes


def test_a_checkpoint_is_asked_for_without_waiting():
    server = Server().on(f"POST {AT}/checkpoints", {"request-id": "r1"})
    job_of(server)[0].trigger_checkpoint()
    assert server.asked == [("POST", f"{AT}/checkpoints", {})]


def test_progress_counts_what_sources_read():
    shown = {
        "plan": {"nodes": [{"id": "s"}, {"id": "t"}, {"id": "m", "inputs": [{}]}]},
        "vertices": [{"id": each, "metrics": {"read-records": n}} for each, n in (("s", 5), ("t", 7), ("m", 12))],
    }
    server = Server().statuses("RUNNING").on(f"GET {AT}", shown)
    server.on(f"GET {AT}/checkpoints", {"counts": {"completed": 3, "failed": 1}})
    server.on(f"GET {AT}/metrics?get=numRestarts", [{"id": "numRestarts", "value": "2"}])
    found = job_of(server)[0].progress()
    assert (found.status, found.records_read, found.checkpoints_completed) == (JobStatus.RUNNING, 12, 3)
    assert (found.checkpoints_failed, found.restarts) == (1, 2)


def test_a_job_that_has_not_started_has_made_no_progress():
    found = job_of(Server().statuses("CREATED"))[0].progress()
    assert (found.records_read, found.checkpoints_completed, found.checkpoints_failed, found.restarts) == (0, 0, 0, 0)
    server = Server().statuses("CREATED").on(f"GET {AT}/metrics?get=numRestarts", [])
    assert job_of(server)[0].progress().restarts == 0
    assert job_of(Server())[0].accumulators() == {}


def test_the_metrics_of_a_job_are_asked_for_by_their_names():
    server = Server().on(f"GET {AT}/metrics", [{"id": "a"}, {"id": "b"}])
    server.on(f"GET {AT}/metrics?get=a,b", [{"id": "a", "value": "1"}, {"id": "b", "value": "2"}])
    assert job_of(server)[0].metrics() == {"job.a": "1", "job.b": "2"}
