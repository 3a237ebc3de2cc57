"""Jobs as they are answered: overview, details, plan, exceptions, results, and what is hidden."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

import ekorn
from ekorn.driver.statistics.job_metrics import Totals
from ekorn.driver.statistics.job_statistics import Supersteps
from ekorn.driver.statistics.subtask_lives import SubtaskLife
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.rest import job_answers
from ekorn.rest.subtask_answers import HOST
from tests.rest.fakes import JOB, job, vertex

CREATED, RUNNING, FAILED = JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FAILED


class Jobs:
    def __init__(self, *jobs: Any) -> None:
        self._jobs = jobs

    def all(self) -> list[Any]:
        return list(self._jobs)

    def running(self) -> list[Any]:
        return [each for each in self._jobs if not each.status.is_terminal_state()]


class Lives:
    def __init__(self, *lives: SubtaskLife) -> None:
        self._lives = lives

    def all(self) -> dict[SubtaskId, SubtaskLife]:
        return {SubtaskId(3, n): life for n, life in enumerate(self._lives)}

    def of(self, number: int) -> list[SubtaskLife]:
        return list(self._lives)


def life(state: str) -> SubtaskLife:
    return SubtaskLife(0, 0, state, {"DEPLOYING": 2_000, "RUNNING": 3_000, state: 4_000})  # type: ignore[arg-type]


def known(status: JobStatus = RUNNING, *, ended_ms: int | None = None, batch: bool = False, **more: Any) -> Any:
    of = [vertex(number, 2, max_parallelism=100 + number, slot_group="default") for number in (3, 5)]
    for each in of:
        each.operators[0].name, each.operators[0].description = f"name {each.id}", None
    line = [
        SimpleNamespace(status=each, at_ms=at) for each, at in ((CREATED, 1_000), (RUNNING, 2_000), (status, 8_000))
    ]
    given: dict[str, Any] = {
        "lives": Lives(life("RUNNING"), life("FINISHED")),
        "metrics": SimpleNamespace(totals=lambda subtask: Totals(records_in=1)),
        "time_line": line,
        "started_ms": 900,
        "ended_ms": ended_ms,
        "supersteps": {5: Supersteps(2, 9)},
        **more,
    }
    found = job(*of, status=status, **given)
    found.view.job_name = "a job"
    found.statistics.graph.settings = SimpleNamespace(
        batch=batch, in_slots=True, object_reuse=True, job_parameters={"password": "x", "k": "v"}
    )
    found.statistics.graph.inputs_of = lambda number: []
    found.slot_id = lambda slot: f"slot {slot}"
    return found


def test_the_overview_counts_jobs_by_their_status_and_slots_of_those_that_run():
    statuses = (RUNNING, JobStatus.RESTARTING, CREATED, JobStatus.CANCELLING, JobStatus.FAILING)
    ended = (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.CANCELED, FAILED, FAILED, FAILED)
    assert job_answers.overview(Jobs(*map(known, statuses + ended))) == {  # type: ignore[arg-type]
        "taskmanagers": 10,
        "taskmanagers-blocked": 0,
        "slots-total": 10,
        "slots-available": 0,
        "slots-free-and-blocked": 0,
        "jobs-running": 5,
        "jobs-finished": 1,
        "jobs-cancelled": 2,
        "jobs-failed": 3,
        "flink-version": ekorn.__version__,
        "flink-commit": "ekorn",
    }


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("can_submit", [True, False])
def test_pages_are_told_what_they_may_offer(read_only, can_submit):
    found = job_answers.web_config(read_only=read_only, can_submit=can_submit)
    assert found["features"] == {
        "web-submit": can_submit and not read_only,
        "web-cancel": not read_only,
        "web-rescale": can_submit and not read_only,
        "web-history": False,
    }
    assert found["server"] == ("service" if can_submit else "driver")
    assert found["refresh-interval"] == 3_000
    assert found["timezone-offset"] == time.localtime().tm_gmtoff * 1_000


def test_a_job_is_shown_with_its_times_and_its_tasks():
    running = known()
    assert job_answers.job_list(Jobs(running)) == {"jobs": [{"id": JOB, "status": "RUNNING"}]}  # type: ignore[arg-type]
    (found,) = job_answers.jobs_overview(Jobs(running))["jobs"]  # type: ignore[arg-type]
    tasks = found.pop("tasks")
    assert found == {
        "jid": JOB,
        "name": "a job",
        "start-time": 900,
        "end-time": -1,
        "duration": 9_100,
        "state": "RUNNING",
        "last-modification": 8_000,
        "pending-operators": 0,
        "jobType": "STREAMING",
        "schedulerType": "Default",
    }
    assert {name: count for name, count in tasks.items() if count} == {"total": 2, "running": 1, "finished": 1}
    found = job_answers.job_overview(known(FAILED, ended_ms=9_500, batch=True))
    assert (found["end-time"], found["duration"], found["jobType"]) == (9_500, 8_600, "BATCH")
    assert job_answers.job_overview(known(FAILED, ended_ms=0))["duration"] == -900


def test_the_details_of_a_job_have_the_first_time_of_each_status():
    found = job_answers.job_details(known())
    assert (found["isStoppable"], found["maxParallelism"], found["now"], found["stream-graph"]) == (
        False,
        105,
        10_000,
        None,
    )
    stamps = found["timestamps"]
    assert (stamps["CREATED"], stamps["RUNNING"], stamps["FAILED"], stamps["INITIALIZING"]) == (1_000, 2_000, 0, 900)
    assert {state: count for state, count in found["status-counts"].items() if count} == {"RUNNING": 2}
    assert found["pending-operators"] == 0
    first = found["vertices"][0]
    assert (first["id"], first["name"], first["maxParallelism"], first["parallelism"]) == ("op3", "vertex 3", 103, 2)
    assert (first["status"], first["start-time"], first["tasks"]["FINISHED"]) == ("RUNNING", 2_000, 1)
    assert found["api"] == "DataStream" and "supersteps" not in first
    assert found["vertices"][1]["supersteps"] == {"current": 2, "most": 9}
    assert first["metrics"]["read-records"] == 2


def test_a_plan_draws_each_vertex_with_its_chain():
    running = known()
    head = running.vertices[1].operators[0]
    head.description = "described"
    running.vertices[1].operators = (head, SimpleNamespace(id="x", name="next", description=""))
    found = job_answers.plan(running)
    assert (found["jid"], found["name"], found["type"]) == (JOB, "a job", "STREAMING")
    assert found["nodes"][0] == {
        "id": "op3",
        "parallelism": 2,
        "operator": "",
        "operator_strategy": "",
        "description": "name 3<br/>",
        "optimizer_properties": {},
    }
    assert found["nodes"][1]["description"] == "described<br/>+- next<br/>"
    assert job_answers.plan(known(batch=True))["type"] == "BATCH"


def test_settings_are_told_without_secrets():
    running = known(settings=SimpleNamespace(restart=SimpleNamespace(get_description=lambda: "none")))
    found = job_answers.job_config(running)["execution-config"]
    assert found["user-config"]["k"] == "v" and found["user-config"]["password"] != "x"
    assert (found["restart-strategy"], found["job-parallelism"], found["object-reuse-mode"]) == ("none", 2, True)
    assert job_answers.resource_requirements(running) == {
        name: {"parallelism": {"lowerBound": 2, "upperBound": 2}} for name in ("op3", "op5")
    }
    shown = job_answers.configuration({"b": 1, "a.password": "x"})
    assert [each["key"] for each in shown] == ["a.password", "b"]
    assert shown[0]["value"] != "x" and shown[1]["value"] == "1"


def failure(number: int, *, slot: int | None = None, others: Any = ()) -> Any:
    return SimpleNamespace(name=f"E{number}", trace="at", at_ms=number, location="map (1/2)", slot=slot, others=others)


def failures(*found: Any, count: int | None = None) -> Any:
    return SimpleNamespace(failures=list(found), count=len(found) if count is None else count)


def test_failures_are_told_the_newest_first_with_those_beside_them():
    running = known(failures=failures(failure(2, slot=1, others=(failure(3),)), failure(1)))
    found = job_answers.exceptions(running, None)["exceptionHistory"]
    assert found["truncated"] is False
    first, second = found["entries"]
    assert (first["exceptionName"], first["timestamp"], first["taskManagerId"], first["endpoint"]) == (
        "E2",
        2,
        "slot 1",
        HOST,
    )
    assert [each["exceptionName"] for each in first["concurrentExceptions"]] == ["E3"]
    assert (second["taskManagerId"], second["endpoint"], second["concurrentExceptions"]) == (None, None, [])
    found = job_answers.exceptions(running, 1)["exceptionHistory"]
    assert len(found["entries"]) == 1 and found["truncated"] is True
    assert job_answers.exceptions(running, 0)["exceptionHistory"]["entries"] == []
    nothing = job_answers.exceptions(running, None, ["a", "b"])
    assert nothing == {"exceptionHistory": {"entries": [], "truncated": False}}


def test_sixteen_failures_are_told_unless_another_number_is_asked_for():
    running = known(failures=failures(*map(failure, range(17))))
    found = job_answers.exceptions(running, None)["exceptionHistory"]
    assert len(found["entries"]) == 16 and found["truncated"] is True
    assert len(job_answers.exceptions(running, 20)["exceptionHistory"]["entries"]) == 17


def test_the_result_of_a_job_says_how_it_ended():
    assert job_answers.execution_result(known()) == {"status": {"id": "IN_PROGRESS"}}
    for status, name in ((JobStatus.FINISHED, "SUCCEEDED"), (FAILED, "FAILED"), (JobStatus.CANCELED, "CANCELED")):
        found = job_answers.execution_result(known(status, ended_ms=9_000, failures=failures(failure(1))))
        result = found["job-execution-result"]
        assert (found["status"]["id"], result["application-status"]) == ("COMPLETED", name)
        assert (result["net-runtime"], result["start-time"], result["end-time"]) == (8_100, 900, 9_000)
        assert result.get("failure-cause", {}).get("class") == ("E1" if status is FAILED else None)
    unexplained = job_answers.execution_result(known(FAILED, ended_ms=9_000, failures=failures()))
    assert "failure-cause" not in unexplained["job-execution-result"]


def test_the_time_line_of_a_job_has_all_of_its_changes():
    assert job_answers.time_line(known(FAILED))["changes"] == [
        {"status": "CREATED", "timestamp": 1_000},
        {"status": "RUNNING", "timestamp": 2_000},
        {"status": "FAILED", "timestamp": 8_000},
    ]


def test_the_figures_of_the_last_hours_are_rounded():
    point = SimpleNamespace(
        at_ms=1,
        records_per_second=1.23456,
        latency_ms=2.34567,
        busy=0.123456,
        blocked=0.765432,
        restarts=3,
        state_bytes=4,
        checkpoint_ms=5,
        checkpoint_bytes=6,
        memory=SimpleNamespace(driver=7, slots=8),
    )
    asked = []
    history = SimpleNamespace(points=lambda since_ms: asked.append(since_ms) or [point])
    assert job_answers.metric_history(known(history=history), 44) == {
        "points": [
            {
                "timestamp": 1,
                "recordsPerSecond": 1.235,
                "latency": 2.346,
                "busyRatio": 0.1235,
                "backPressuredRatio": 0.7654,
                "restarts": 3,
                "stateSize": 4,
                "checkpointDuration": 5,
                "checkpointSize": 6,
                "driverMemory": 7,
                "slotMemory": 8,
            }
        ]
    }
    assert asked == [44]


def test_the_environment_names_the_interpreter():
    found = job_answers.environment()
    assert found["jvm"]["version"].endswith(".".join(map(str, sys.version_info[:3])))
    assert found["classpath"] == sys.path
