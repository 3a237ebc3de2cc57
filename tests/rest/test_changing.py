"""What a client of a driver's web server changes: savepoints, stop, cancel, disposal; and what it may not."""

import os

import pytest

from ekorn.checkpoint.restore_point import resolve
from ekorn.common import JobStatus
from ekorn.config.settings.web_settings import WebSettings
from ekorn.errors import CheckpointError
from ekorn.rest.archive import kept_answer, last_answers
from ekorn.rest.driver_web import driver_routes
from ekorn.rest.known_jobs import KnownJobs, flink_id
from ekorn.rest.operations import Operations
from ekorn.web.http_messages import Request
from ekorn.web.routes import Routes
from tests.live_jobs import until
from tests.rest.conftest import Caller
from tests.rest.shapes import ANSWERS, misfits


def outcome(caller, path, answer):
    """Wait for the outcome of an operation."""
    assert not misfits(ANSWERS["POST /jobs/{jobid}/savepoints"], answer)
    found = {}

    def done():
        found.update(caller.get(f"{path}/{answer['request-id']}"))
        return found["status"]["id"] == "COMPLETED"

    until(done)
    return found["operation"]


@pytest.mark.parametrize("saved_as", ["CANONICAL", "NATIVE"])
def test_a_savepoint_is_taken_and_the_job_goes_on(caller, run, tmp_path, saved_as):
    handle = run()
    at = f"/jobs/{handle.job_id}/savepoints"
    status, answer = caller.ask("POST", at, {"target-directory": str(tmp_path / "saved"), "formatType": saved_as})
    assert status == 202
    assert resolve(outcome(caller, at, answer)["location"]).metadata.job_name == "endless"
    assert caller.get(f"/jobs/{handle.job_id}/status") == {"status": "RUNNING"}
    assert caller.get(f"/jobs/{handle.job_id}/checkpoints")["latest"]["savepoint"]["savepointFormat"] == saved_as


@pytest.mark.parametrize(
    ("path", "body", "directory", "end"),
    [
        ("stop", {"drain": False}, "targetDirectory", JobStatus.FINISHED),
        ("stop", {"drain": True}, "targetDirectory", JobStatus.FINISHED),
        ("savepoints", {"cancel-job": True}, "target-directory", JobStatus.CANCELED),
    ],
)
def test_a_job_ends_with_a_savepoint(caller, run, tmp_path, *, path, body, directory, end):
    handle = run()
    status, answer = caller.ask("POST", f"/jobs/{handle.job_id}/{path}", {**body, directory: str(tmp_path / "saved")})
    assert status == 202
    location = outcome(caller, f"/jobs/{handle.job_id}/savepoints", answer)["location"]
    assert os.path.isfile(os.path.join(location, "_metadata"))
    assert handle.results.wait_for_end(30) and handle.status() is end
    assert caller.ask("POST", f"/jobs/{handle.job_id}/{path}", {directory: str(tmp_path)})[0] == 409


def test_a_repeated_request_takes_one_savepoint(caller, run, tmp_path):
    handle = run()
    at, body = f"/jobs/{handle.job_id}/savepoints", {"target-directory": str(tmp_path / "s"), "triggerId": "a" * 32}
    answers = [caller.ask("POST", at, body) for _ in range(3)]
    assert answers == [(202, {"request-id": "a" * 32})] * 3
    outcome(caller, at, answers[0][1])
    assert len(os.listdir(tmp_path / "s")) == 1


def test_a_savepoint_that_cannot_be_taken_is_an_outcome(caller, run, tmp_path):
    handle = run()
    (tmp_path / "file").touch()
    at = f"/jobs/{handle.job_id}/savepoints"
    _, answer = caller.ask("POST", at, {"target-directory": str(tmp_path / "file")})
    cause = outcome(caller, at, answer)["failure-cause"]
    assert "the savepoint was not taken" in cause["stack-trace"]


def test_a_job_is_cancelled(caller, run):
    handle = run()
    assert caller.ask("PATCH", f"/jobs/{handle.job_id}?mode=cancel") == (202, {})
    assert handle.results.wait_for_end(30) and handle.status() is JobStatus.CANCELED
    assert caller.ask("PATCH", f"/jobs/{handle.job_id}") == (202, {}), "it is cancelled, as was asked for"


def test_a_savepoint_is_disposed_of(caller, run, tmp_path):
    path = run().request_savepoint(str(tmp_path)).result(30)
    status, answer = caller.ask("POST", "/savepoint-disposal", {"savepoint-path": path})
    assert status == 200 and outcome(caller, "/savepoint-disposal", answer) == {}
    assert not os.path.exists(path)
    _, answer = caller.ask("POST", "/savepoint-disposal", {"savepoint-path": str(tmp_path)})
    assert "no checkpoint at" in outcome(caller, "/savepoint-disposal", answer)["failure-cause"]["stack-trace"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("POST", "/jobs/{job}/savepoints", {}, 400, "the savepoint has no directory"),
        ("POST", "/jobs/{job}/savepoints", {"target-directory": 7}, 400, "is not text"),
        ("POST", "/jobs/{job}/savepoints", {"cancel-job": "yes"}, 400, "neither true nor false"),
        ("POST", "/jobs/{job}/savepoints", {"formatType": "ZIP"}, 400, "choose from CANONICAL, NATIVE"),
        ("POST", "/jobs/{job}/savepoints", {"target-directory": "/tmp/x", "triggerId": "x"}, 400, "32 hex digits"),
        ("POST", "/jobs/nobody/stop", {}, 404, "there is no job"),
        ("PATCH", "/jobs/{job}?mode=stop", None, 400, "unknown mode 'stop'"),
        ("GET", "/jobs/{job}/savepoints/none", None, 404, "there is no operation"),
        ("POST", "/savepoint-disposal", {}, 400, "no 'savepoint-path'"),
    ],
)
def test_a_wrong_request_is_refused_with_a_reason(caller, run, *, method, path, body, status, reason):
    handle = run()
    found, answer = caller.ask(method, path.format(job=handle.job_id), body)
    assert found == status and reason in answer["errors"][0]
    assert handle.status() is JobStatus.RUNNING


def test_a_read_only_server_leaves_the_job_alone(web, run, tmp_path):
    serving = web.open(WebSettings(port=0, read_only=True, needs_token=False))
    caller, handle = Caller(serving.server.port), run()
    for method, path in [("POST", "savepoints"), ("POST", "stop"), ("PATCH", "")]:
        assert caller.ask(method, f"/jobs/{handle.job_id}/{path}", {})[0] == 403
    assert caller.get("/config")["features"]["web-cancel"] is False
    assert handle.status() is JobStatus.RUNNING


def test_the_stacks_of_a_slot_are_shown(caller, run):
    handle = run()
    slot = caller.get("/taskmanagers")["taskmanagers"][0]["id"]
    names = [each["threadName"] for each in caller.get(f"/taskmanagers/{slot}/thread-dump")["threadInfos"]]
    assert f"ekorn-{handle.job_name}" in names


def test_a_defect_of_one_answer_leaves_the_other_last_answers():
    routes = Routes()
    routes.add("GET", "/jobs", lambda request: {"never": 1 // 0})
    routes.add("GET", "/jobs/overview", lambda request: {"jobs": []})
    assert last_answers(routes, KnownJobs(), Operations()) == {"/jobs/overview": {"jobs": []}}


def test_the_curves_of_vertices_are_among_the_last_answers(run):
    handle = run()
    until(lambda: len(handle.view.statistics.history.points()) > 1)
    handle.cancel()
    handle.results.wait_for_end(30)
    known = KnownJobs()
    known.add(handle)
    vertex = known.find(str(handle.job_id)).vertices[0]
    answers = last_answers(driver_routes(known, Operations()), known, Operations())
    path = f"/jobs/{handle.job_id}/vertices/{flink_id(vertex)}/metric-history"

    def kept(**query):
        return kept_answer(answers, Request("GET", path, {}, {name: [value] for name, value in query.items()}))

    assert len(kept()["timestamps"]) > 1 and len(kept()["series"]) > 40
    (series,) = kept(get="numRecordsIn", agg="max", since="5")["series"]
    assert (series["id"], series["agg"]) == ("numRecordsIn", "max") and series["values"][-1] > 0
    assert kept(get="numRecordsIn", subtasks="0")["series"] == [], "those of subtasks are not kept"


# ------------------------------------------------------------------------------------------------------ rescaling


def vertices_of(caller, handle):
    return {each["id"]: each["parallelism"] for each in caller.get(f"/jobs/{handle.job_id}")["vertices"]}


def test_a_job_goes_on_at_another_parallelism(caller, run, tmp_path):
    handle = run(tmp_path, parallelism=2)
    at = f"/jobs/{handle.job_id}/rescaling"
    status, answer = caller.ask("PATCH", f"{at}?parallelism=3")
    assert status == 202
    assert "chk-" in outcome(caller, at, answer)["location"]
    assert set(vertices_of(caller, handle).values()) == {3}
    assert caller.get(f"/jobs/{handle.job_id}/status") == {"status": "RUNNING"}
    assert caller.get("/overview")["slots-total"] == 3
    read = handle.progress().records_read
    until(lambda: handle.progress().records_read > read)
    for vertex in vertices_of(caller, handle):
        assert len(caller.get(f"/jobs/{handle.job_id}/vertices/{vertex}")["subtasks"]) == 3


def test_a_parallelism_that_is_refused_is_an_outcome(caller, run, tmp_path):
    handle = run(tmp_path)
    at = f"/jobs/{handle.job_id}/rescaling"
    cause = outcome(caller, at, caller.ask("PATCH", f"{at}?parallelism=500")[1])["failure-cause"]
    assert cause["class"] == "ekorn.errors.RescaleError"
    assert "above its max parallelism of 128" in cause["stack-trace"]
    assert set(vertices_of(caller, handle).values()) == {2}


@pytest.mark.parametrize("query", ["", "?parallelism=0", "?parallelism=two", "?parallelism=3&slots=0"])
def test_a_malformed_rescale_is_a_bad_request(caller, run, query):
    handle = run()
    assert caller.ask("PATCH", f"/jobs/{handle.job_id}/rescaling{query}")[0] == 400


def test_the_upper_bound_of_the_requirements_of_vertices_rescales_a_job(caller, run, tmp_path):
    handle = run(tmp_path, parallelism=1)
    at = f"/jobs/{handle.job_id}/resource-requirements"
    wanted = caller.get(at)
    for requirement in wanted.values():
        requirement["parallelism"] = {"lowerBound": 1, "upperBound": 2}
    assert caller.ask("PUT", at, wanted) == (200, {})
    until(lambda: set(vertices_of(caller, handle).values()) == {2})
    assert caller.ask("PUT", at, wanted) == (200, {}), "nothing is to be changed"


def test_requirements_that_the_job_cannot_meet_are_a_bad_request(caller, run):
    handle = run(parallelism=1)
    at = f"/jobs/{handle.job_id}/resource-requirements"
    first, second = caller.get(at)
    for body, why in (
        ({first: {"parallelism": {"upperBound": 2}}, second: {"parallelism": {"upperBound": 3}}}, "asks for 2, 3"),
        ({"ab" * 16: {"parallelism": {"upperBound": 2}}}, "has no vertex"),
        ({first: {"parallelism": 2}}, "needs a 'parallelism' with an 'upperBound'"),
        ({first: {"parallelism": {"upperBound": True}}}, "needs a 'parallelism' with an 'upperBound'"),
    ):
        status, answer = caller.ask("PUT", at, body)
        assert status == 400 and why in answer["errors"][0]


def test_a_checkpoint_is_taken_on_request(caller, run, tmp_path):
    handle = run(tmp_path / "checkpoints")
    at = f"/jobs/{handle.job_id}/checkpoints"
    status, answer = caller.ask("POST", at, {"checkpointType": "CONFIGURED"})
    assert status == 202
    taken = outcome(caller, at, answer)["checkpointId"]
    assert caller.get(f"{at}/details/{taken}")["status"] == "COMPLETED"
    assert caller.ask("POST", at, {"checkpointType": "FULL"})[0] == 400
    assert caller.ask("GET", f"{at}/{'0' * 32}")[0] == 404


def test_a_job_without_checkpoints_says_why_it_takes_none(caller, run):
    handle = run()
    at = f"/jobs/{handle.job_id}/checkpoints"
    _, answer = caller.ask("POST", at)
    assert "takes no checkpoints" in outcome(caller, at, answer)["failureCause"]["stack-trace"]
    handle.cancel()
    assert handle.results.wait_for_end(30)
    assert caller.ask("POST", at)[0] == 409
    with pytest.raises(CheckpointError, match="the job has ended"):
        handle.requests.request_checkpoint().result(60)


def test_a_difference_from_a_schema_is_found():
    schema = ANSWERS["GET /jobs/{jobid}/time-line"]
    known = ANSWERS["GET /jobs/{jobid}/status"]["properties"]["status"]["enum"]
    assert not misfits(schema, {"changes": [{"status": "RUNNING", "timestamp": 7}]})
    assert misfits(schema, {"changes": [{"status": "BUSY", "timestamp": True, "more": 1}], "and": None}) == [
        ".and is not one of Flink's fields",
        ".changes[0].more is not one of Flink's fields",
        f".changes[0].status: 'BUSY' is not one of {known}",
        ".changes[0].timestamp: True is no integer",
    ]
    assert misfits(schema, {}) == [".changes is missing"]
