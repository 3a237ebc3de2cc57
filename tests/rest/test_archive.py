"""The last answers of a driver, and the jobs that it knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ekorn.errors import SlotLostError
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.rest import archive
from ekorn.rest.known_jobs import KnownJob, KnownJobs
from ekorn.rest.slot_fields import own_fields, vitals_of
from ekorn.slot_protocol.diagnostics import SlotVitals
from ekorn.web.http_messages import HttpError, Request, Response
from ekorn.web.routes import Routes
from tests.rest.fakes import JOB, job, vertex


def kept(answers: dict[str, Any], path: str, **query: list[str]) -> Any:
    return archive.kept_answer(answers, Request("GET", path, query=query))


METRICS = f"/jobs/{JOB}/metrics"
SERIES = [{"id": "a", "agg": "min"}, {"id": "a", "agg": "max"}, {"id": "b", "agg": "min"}]


def test_metrics_are_told_by_name_from_what_was_kept():
    answers: dict[str, Any] = {
        METRICS: [{"id": "a", "value": "1"}, {"id": "op,1", "value": "2"}],
        f"/jobs/{JOB}": {"x": 1},
    }
    assert kept(answers, METRICS) == [{"id": "a"}, {"id": "op,1"}]
    assert kept(answers, METRICS, get=["op,1", "z,a"]) == [answers[METRICS][1], answers[METRICS][0]]
    assert kept(answers, f"/jobs/{JOB}", get=["a"]) == {"x": 1}
    assert kept(answers, "/jobs/nowhere") is None
    assert kept({METRICS: {"odd": 1}}, METRICS) == {"odd": 1}


def test_series_of_a_vertex_are_chosen_from_what_was_kept():
    path = f"/jobs/{JOB}/vertices/v/metric-history"
    answers = {path: {"timestamps": [1, 2], "series": SERIES}, f"/jobs/{JOB}/metric-history": {"series": SERIES}}

    def chosen(**query: list[str]) -> list[dict[str, str]]:
        found = kept(answers, path, **query)
        assert found["timestamps"] == [1, 2]
        return list(found["series"])

    assert chosen() == SERIES
    assert chosen(get=["a"]) == SERIES[:2]
    assert chosen(agg=["min"]) == [SERIES[0], SERIES[2]]
    assert chosen(get=["b"], agg=["min,max"]) == [SERIES[2]]
    assert chosen(subtasks=["0"]) == [], "those of single subtasks are not kept"
    assert chosen(subtasks=["0"], agg=["max"]) == [SERIES[1]]
    assert kept(answers, f"/jobs/{JOB}/metric-history", agg=["min"]) == {"series": SERIES}, "of the job itself"


class Known:
    def __init__(self, *jobs: Any) -> None:
        self._jobs = jobs

    def all(self) -> list[Any]:
        return list(self._jobs)


class Done:
    """Operations that are done, by their scope."""

    def done(self, scope: str) -> list[str]:
        return ["t1"] if scope == JOB else ["t2"]


def refuse(request: Request) -> Any:
    raise HttpError(409, "no answer")


def test_every_reading_answer_about_a_job_is_kept_by_its_path(monkeypatch, caplog):
    monkeypatch.setattr(archive, "rescale_ids", lambda job: ["r1"])
    asked: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    routes = Routes()

    def noted(request: Request) -> Any:
        asked.append((request.path, dict(request.parameters), dict(request.query)))
        if request.path.endswith("/metrics"):
            return [{"id": "a", "value": "1"}] if "get" in request.query else [{"id": "a"}]
        return {"path": request.path}

    reading = ("/jobs/overview", "/jobs/:jobid", "/jobs/:jobid/metrics", "/jobs/:jobid/vertices/:vertexid")
    more = ("checkpoints/details/:checkpointid", "savepoints/:triggerid", "rescales/:rescaleuuid")
    for path in (
        *reading,
        *(f"/jobs/:jobid/{each}" for each in more),
        "/jobs/:jobid/vertices/:vertexid/metric-history",
    ):
        routes.add("GET", path, noted)
    routes.add("GET", "/jobs/:jobid/refused", refuse)
    routes.add("GET", "/jobs/:jobid/text", lambda request: Response("a log"))
    routes.add("GET", "/jobs/:jobid/defect", lambda request: [1 // 0])
    routes.add("GET", "/overview", noted)
    routes.add("POST", "/jobs/:jobid/change", noted)
    routes.add("GET", "/jobs/:jobid/slots/:slot", noted)
    checkpoints = SimpleNamespace(records=lambda: [SimpleNamespace(checkpoint_id=4)])
    found = archive.last_answers(routes, Known(job(vertex(3), checkpoints=checkpoints)), Done())  # type: ignore[arg-type]
    paths = {
        *("/jobs/overview", f"/jobs/{JOB}", f"/jobs/{JOB}/metrics", f"/jobs/{JOB}/vertices/op3"),
        *(f"/jobs/{JOB}/checkpoints/details/4", f"/jobs/{JOB}/savepoints/t1", f"/jobs/{JOB}/savepoints/t2"),
        *(f"/jobs/{JOB}/rescales/r1", f"/jobs/{JOB}/vertices/op3/metric-history"),
    }
    assert set(found) == paths
    assert found[METRICS] == [{"id": "a", "value": "1"}]
    queries = {path: query for path, _, query in asked}
    assert queries[f"/jobs/{JOB}/vertices/op3/metric-history"] == {"points": ["120"]}
    assert queries[METRICS] == {"get": ["a"]} and queries[f"/jobs/{JOB}"] == {}
    assert {path: names for path, names, _ in asked}[f"/jobs/{JOB}/vertices/op3"] == {"jobid": JOB, "vertexid": "op3"}
    assert caplog.text.count("could not be produced") == 1, "a defect is told, and the other answers are kept"


# ------------------------------------------------------------------------------------------------------ known jobs


def handle(number: int, *, ended: bool, cancelled: bool = False) -> Any:
    status = JobStatus.FINISHED if ended else JobStatus.RUNNING
    of = vertex(3, 2)
    graph = SimpleNamespace(vertices=(of,), settings=SimpleNamespace(in_slots=True))
    statistics = SimpleNamespace(graph=graph)
    return SimpleNamespace(
        job_id=number,
        view=SimpleNamespace(job_id=number, status=lambda: status, statistics=statistics),
        requests=SimpleNamespace(cancel_requested=cancelled),
        results=None,
    )


def test_the_oldest_ended_jobs_are_forgotten_and_no_running_one():
    known = KnownJobs(most_ended=2)
    for number, ended in ((1, False), (2, True), (3, True), (4, False)):
        known.add(handle(number, ended=ended))
    assert [each.job_id for each in known.all()] == ["1", "2", "3", "4"]
    known.add(handle(5, ended=True))
    assert [each.job_id for each in known.all()] == ["1", "3", "4", "5"]
    assert [each.job_id for each in known.running()] == ["1", "4"]
    assert known.find("4").job_id == "4"
    with pytest.raises(HttpError, match=f"there is no job '{'x' * 80}'") as refused:
        known.find("x" * 99)
    assert refused.value.status == 404


def test_a_job_is_cancelling_from_the_request_until_it_has_ended():
    assert KnownJob.of(handle(1, ended=False)).status is JobStatus.RUNNING
    assert KnownJob.of(handle(1, ended=False, cancelled=True)).status is JobStatus.CANCELLING
    assert KnownJob.of(handle(1, ended=True, cancelled=True)).status is JobStatus.FINISHED


def test_vertices_and_subtasks_are_found_by_flinks_ids():
    known = KnownJob.of(handle(1, ended=False))
    assert known.vertex("op3").id == 3
    assert known.subtask("op3", "1") == SubtaskId(3, 1)
    assert known.slot_id(4) == "1-slot-4"
    with pytest.raises(HttpError, match=f"job 1 has no vertex '{'x' * 40}'"):
        known.vertex("x" * 50)
    with pytest.raises(HttpError, match="vertex op3 has no subtask 2: its parallelism is 2"):
        known.subtask("op3", "2")
    with pytest.raises(HttpError, match="the index of the subtask is '-1'"):
        known.subtask("op3", "-1")


# ----------------------------------------------------------------------------------------------------------- slots

VITALS = SlotVitals(host="h", pid=7, resident_bytes=100, rocksdb_cache_bytes=50, threads=3, cpu_ms=9)


def lives(**more: Any) -> Any:
    of = {
        SubtaskId(3, 0): SimpleNamespace(slot=1, state="RUNNING"),
        SubtaskId(3, 1): SimpleNamespace(slot=0, state="FAILED"),
        SubtaskId(5, 0): SimpleNamespace(slot=1, state="CREATED"),
    }
    found = job(vertex(3), vertex(5), lives=SimpleNamespace(all=lambda: of), **more)
    found.view.job_name = "a job"
    return found


def test_a_slot_is_shown_with_its_subtasks_and_what_its_process_uses():
    assert own_fields(lives(), 1, 4, VITALS) == {
        "jobId": JOB,
        "jobName": "a job",
        "number": 1,
        "host": "h",
        "pid": 7,
        "residentMemory": 100,
        "rocksDbCache": 50,
        "memoryLimit": None,
        "managedMemory": None,
        "states": [],
        "threads": 3,
        "cpuTime": 9,
        "subtasks": [
            {"vertexId": "op3", "name": "vertex 3", "subtask": 0, "status": "RUNNING"},
            {"vertexId": "op5", "name": "vertex 5", "subtask": 0, "status": "CREATED"},
        ],
    }
    silent = own_fields(lives(), 0, 4, None)
    assert silent["pid"] == 4 and [each["subtask"] for each in silent["subtasks"]] == [1]
    assert {silent[name] for name in ("host", "residentMemory", "rocksDbCache", "threads", "cpuTime")} == {None}


@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_slots_that_do_not_answer_are_none_and_the_others_keep_their_order(count):
    asked = lives()

    def vitals(slot: int) -> SlotVitals:
        if slot % 2:
            raise SlotLostError(slot, "gone")
        return VITALS._replace(pid=slot)

    asked.view.slot_vitals = vitals
    found = vitals_of([(asked, slot) for slot in range(count)])
    assert [None if each is None else each.pid for each in found] == [None if n % 2 else n for n in range(count)]
