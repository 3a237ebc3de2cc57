"""All jobs of a service together: counts, overviews, slots, metrics over drivers, and what jobs can start from."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import ekorn
from ekorn.clock import ManualClock
from ekorn.errors import EkornError
from ekorn.service.api import overview_api, savepoint_api
from ekorn.service.api.job_overviews import DriverReport, JobOverviews
from ekorn.service.api.overview_api import AskedMetrics, OverviewApi, combined, without_driver
from ekorn.service.api.savepoint_api import SavepointApi, staying
from ekorn.service.jobs.job_record import JobPlan, JobRecord
from ekorn.service.jobs.job_store import JobStore
from ekorn.service.jobs.slot_budget import SlotBudget
from ekorn.web.http_messages import HttpError
from tests.rest.fakes import asked


def record(number: int, phase: Any = "STARTED", **more: Any) -> JobRecord:
    return JobRecord(f"{number:032x}", f"name {number}", "p", "job.py", phase=phase, socket=f"/s{number}", **more)


class Service:
    def __init__(self, folder: str, *records: JobRecord) -> None:
        self.store = JobStore(folder)
        self.records = list(records)
        self.budget, self.clock = SlotBudget(4), ManualClock(9_000)
        self.reports: dict[str, tuple[dict[str, Any], ...]] = {}
        self.overviews = SimpleNamespace(reports_of_drivers=self._reports)
        self.slots_of_drivers = SimpleNamespace(
            answers=lambda records: {each.job_id: self.slots.get(each.job_id) for each in records}
        )
        self.slots: dict[str, Any] = {}

    def jobs(self) -> list[JobRecord]:
        return self.records

    def owner_of(self, job_id: str) -> JobRecord | None:
        return next((each for each in self.records if each.job_id == job_id), None)

    def _reports(self, records: list[JobRecord]) -> dict[str, DriverReport]:
        return {each.job_id: DriverReport(self.reports.get(each.job_id, ()), False) for each in records}


@pytest.fixture
def service(tmp_path: Any) -> Service:
    return Service(
        str(tmp_path / "s"),
        record(1, slots=2, submitted_ms=100, started_ms=200),
        record(2, slots=3),
        record(3, "WAITING", submitted_ms=7_000),
        record(4, "ENDED", status="FINISHED", ended_ms=8_000, submitted_ms=100),
        record(5, "ENDED", status="CANCELED"),
        record(6, "ENDED", status="FAILED"),
        record(7, "ENDED", status="FAILED"),
    )


def test_the_overview_counts_slots_and_jobs(service: Service) -> None:
    api = OverviewApi(service)  # type: ignore[arg-type]
    assert api.overview(asked()) == {
        "taskmanagers": 5,
        "taskmanagers-blocked": 0,
        "slots-total": 4,
        "slots-available": 0,
        "slots-free-and-blocked": 0,
        "jobs-running": 3,
        "jobs-finished": 1,
        "jobs-cancelled": 1,
        "jobs-failed": 2,
        "flink-version": ekorn.__version__,
        "flink-commit": "ekorn",
    }
    service.records = service.records[:1]
    assert api.overview(asked())["slots-available"] == 2


def test_every_job_of_a_program_is_shown_and_a_record_stands_for_a_silent_driver(service: Service) -> None:
    service.reports = {service.records[0].job_id: ({"jid": "a", "state": "RUNNING"}, {"jid": "b", "state": "FINISHED"})}
    api = OverviewApi(service)  # type: ignore[arg-type]
    found = api.job_list(asked())["jobs"]
    assert found[:2] == [{"id": "a", "status": "RUNNING"}, {"id": "b", "status": "FINISHED"}]
    states = [each["status"] for each in found[2:]]
    assert states == ["INITIALIZING", "CREATED", "FINISHED", "CANCELED", "FAILED", "FAILED"]
    assert len(api.jobs_overview(asked())["jobs"]) == 8


def test_a_job_without_a_report_is_shown_with_what_its_record_says(service: Service) -> None:
    shown = without_driver(service, service.records[0])  # type: ignore[arg-type]
    assert (shown["start-time"], shown["end-time"], shown["duration"], shown["last-modification"]) == (
        100,
        -1,
        8_900,
        200,
    )
    assert set(shown["tasks"].values()) == {0} and "total" in shown["tasks"] and shown["pending-operators"] == 0
    waiting = without_driver(service, service.records[2])  # type: ignore[arg-type]
    assert (waiting["last-modification"], waiting["state"]) == (7_000, "CREATED")
    ended = without_driver(service, service.records[3])  # type: ignore[arg-type]
    assert (ended["end-time"], ended["duration"], ended["last-modification"]) == (8_000, 7_900, 8_000)


def test_slots_are_those_of_drivers_that_answer(service: Service) -> None:
    first, second = service.records[0].job_id, service.records[1].job_id
    service.slots = {first: {"taskmanagers": [{"id": f"{first}-slot-0"}, {"id": f"{first}-slot-1"}]}, second: None}
    found = OverviewApi(service).slots(asked())["taskmanagers"]  # type: ignore[arg-type]
    assert [each["id"] for each in found] == [f"{first}-slot-0", f"{first}-slot-1"]


class Drivers:
    """Answer with metrics."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.hanging: set[str] = set()
        monkeypatch.setattr(
            overview_api,
            "WebClient",
            lambda address, timeout_s: SimpleNamespace(get=lambda path: self.get(address, path)),
        )

    def get(self, address: str, path: str) -> Any:
        self.asked.append(f"{address}{path}")
        if address in self.hanging:
            raise EkornError("no answer")
        return [{"id": "n", "value": "2"}, {"id": "path", "value": "/x"}, {"id": "none", "value": None}]


@pytest.fixture
def drivers(monkeypatch: pytest.MonkeyPatch) -> Drivers:
    return Drivers(monkeypatch)


def test_metrics_are_combined_over_the_drivers_that_answer(drivers: Drivers) -> None:
    all_asked = [AskedMetrics(record(n), f"/jobs/{n}/metrics") for n in (1, 2, 3)]
    drivers.hanging = {"unix:/s2"}
    request = asked(get=["n,a b", "path"], agg="sum")
    assert combined(all_asked, request) == [{"id": "n", "sum": 4.0}]
    assert sorted(drivers.asked)[0] == "unix:/s1/jobs/1/metrics?get=n,a%20b,path"
    assert [each["id"] for each in combined(all_asked, asked())] == ["n", "path", "none"]
    assert combined([], request) == []
    with pytest.raises(HttpError, match="unknown aggregation"):
        combined([], asked(agg="x"))


def test_metrics_over_jobs_and_slots_are_those_that_are_asked_for(service: Service, drivers: Drivers) -> None:
    first = service.records[0].job_id
    service.reports = {first: ({"jid": "a"}, {"jid": "b"}), service.records[1].job_id: ({"jid": "c"},)}
    service.slots = {first: {"taskmanagers": [{"id": f"{first}-slot-0"}, {"id": f"{'f' * 32}-slot-0"}]}}
    api = OverviewApi(service)  # type: ignore[arg-type]
    query = {"get": "n", "agg": "sum"}
    assert api.metrics_over_jobs(asked(**query)) == [{"id": "n", "sum": 6.0}]
    assert api.metrics_over_jobs(asked(**query, jobs="b,c,z")) == [{"id": "n", "sum": 4.0}]
    assert api.metrics_over_slots(asked(**query)) == [{"id": "n", "sum": 2.0}]
    assert api.metrics_over_slots(asked(**query, taskmanagers="other")) == []


# ---------------------------------------------------------------------------------------------------- descriptions


def test_a_record_is_described_without_secrets(tmp_path: Any) -> None:
    overviews = JobOverviews(JobStore(str(tmp_path / "s")))
    plan = JobPlan("p", "job.py", (), {}, 1)
    of = record(1, settings={"k": "v", "password": "x"}, arguments=("a", "b"), why="soon", pid=7, then=plan)
    jobs = ({"jid": "other", "name": "o"}, {"jid": of.job_id, "name": "shown", "state": "RUNNING"})
    found = overviews.described(of, DriverReport(jobs, False))
    assert (found["name"], found["state"], found["arguments"], found["further"]) == ("shown", "RUNNING", 2, ["other"])
    assert found["settings"]["k"] == "v" and found["settings"]["password"] != "x"
    assert (found["changing"], found["silent"], found["pid"]) == (True, False, 7)
    silent = overviews.described(of, DriverReport((), True))
    assert (silent["name"], silent["state"], silent["silent"], silent["further"]) == (
        "name 1",
        "INITIALIZING",
        True,
        [],
    )
    ended = overviews.described(record(1, "ENDED", status="FAILED"), DriverReport(jobs, False))
    assert ended["state"] == "FAILED", "the end that was recorded counts"


def test_a_driver_whose_socket_is_there_and_does_not_answer_is_silent(tmp_path: Any, monkeypatch: Any) -> None:
    store = JobStore(str(tmp_path / "s"))
    overviews = JobOverviews(store)
    told: dict[str, Any] = {}
    monkeypatch.setattr(
        overviews, "_polled", SimpleNamespace(answers=lambda of: {each.job_id: told.get(each.job_id) for each in of})
    )
    of = [record(1), record(2), record(3, "WAITING"), record(4)]
    of[0] = replace(of[0], socket=str(tmp_path))  # a path that exists
    store.save(of[3])
    store.archive(of[3].job_id).write_text(json.dumps({"/jobs/overview": {"jobs": [{"jid": "last"}]}}))
    found = overviews.reports_of_drivers(of)
    assert [found[each.job_id].is_silent for each in of] == [True, False, False, False]
    assert [job["jid"] for job in found[of[3].job_id].jobs] == ["last"]
    told[of[0].job_id] = {"jobs": [{"jid": of[0].job_id, "x": 1}, {"jid": "further", "x": 2}]}
    assert overviews.of(of[0]) == {"jid": of[0].job_id, "x": 1}
    assert overviews.of(of[0], "further") == {"jid": "further", "x": 2}
    assert overviews.of(of[0], "nobody") is None and overviews.of(of[1]) is None


# ------------------------------------------------------------------------------------------------------ savepoints


def point(number: int, **more: Any) -> dict[str, Any]:
    given = {"status": "COMPLETED", "external_path": f"s3://b/{number}", "is_savepoint": False, "id": number}
    return {**given, "trigger_timestamp": number, "state_size": 10 * number, **more}


def test_savepoints_stay_and_checkpoints_stay_once_the_job_is_over() -> None:
    history = [
        point(1),
        point(2, is_savepoint=True),
        point(3, status="FAILED"),
        point(4, external_path=None),
        point(5, discarded=True),
        point(6, is_savepoint=True, discarded=True),
    ]
    assert [each["id"] for each in staying(history, is_over=False)] == [2]
    assert [each["id"] for each in staying(history, is_over=True)] == [1, 2]


@pytest.mark.parametrize(
    ("path", "there"), [("s3://b/1", True), ("hdfs:/x", True), ("/nowhere", False), ("file:///nowhere", False)]
)
def test_only_folders_of_this_machine_are_looked_for(path, there, tmp_path):
    assert savepoint_api._is_there(path) is there
    assert savepoint_api._is_there(str(tmp_path)) and savepoint_api._is_there(f"file://{tmp_path}")


def test_what_jobs_can_start_from_is_told_the_newest_first(service: Service, monkeypatch: Any) -> None:
    running, hanging, _, ended = service.records[:4]
    service.reports = {
        running.job_id: (
            {"jid": running.job_id, "name": "a", "state": "RUNNING"},
            {"jid": "b", "name": "b", "state": "FINISHED"},
        ),
        hanging.job_id: ({"jid": hanging.job_id, "name": "h", "state": "RUNNING"},),
        ended.job_id: ({"jid": ended.job_id, "name": "e", "state": "RUNNING"},),
    }
    told = {
        f"/jobs/{running.job_id}/checkpoints": {"history": [point(1), point(5, is_savepoint=True)]},
        "/jobs/b/checkpoints": {"history": [point(2)]},
    }

    def driver(of: JobRecord, timeout_s: float) -> Any:
        def get(path: str) -> Any:
            if of is hanging:
                raise EkornError("no answer")
            return told[path]

        return SimpleNamespace(get=get)

    monkeypatch.setattr(savepoint_api, "driver_client", driver)
    for of, number in ((ended, 9), (hanging, 7)):
        service.store.save(of)
        kept = {f"/jobs/{of.job_id}/checkpoints": {"history": [point(number), point(number - 1, is_savepoint=True)]}}
        service.store.archive(of.job_id).write_text(json.dumps(kept))
    found = SavepointApi(service).savepoints(asked())["savepoints"]  # type: ignore[arg-type]
    assert [(each["id"], each["jobName"], each["kind"]) for each in found] == [
        (9, "e", "CHECKPOINT"),
        (8, "e", "SAVEPOINT"),
        (6, "h", "SAVEPOINT"),
        (5, "a", "SAVEPOINT"),
        (2, "b", "CHECKPOINT"),
    ]
    assert found[0] == {
        "path": "s3://b/9",
        "jobId": ended.job_id,
        "jobName": "e",
        "kind": "CHECKPOINT",
        "id": 9,
        "timestamp": 9,
        "size": 90,
    }
    service.records = []
    assert SavepointApi(service).savepoints(asked()) == {"savepoints": []}  # type: ignore[arg-type]
