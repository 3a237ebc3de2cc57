"""Answers about all jobs of the service: the overview, the records, the slots, and metrics over them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import quote

import ekorn
from ekorn.errors import EkornError
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest.metric_answers import aggregated
from ekorn.rest.subtask_answers import STATES
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_service import JobService
from ekorn.web.http_client import WebClient
from ekorn.web.http_messages import Request

__all__ = ["AskedMetrics", "OverviewApi", "combined", "without_driver"]


class OverviewApi:
    """The handlers of requests about all jobs."""

    def __init__(self, service: JobService) -> None:
        self._service = service

    def overview(self, request: Request) -> dict[str, Any]:
        service = self._service
        records = service.jobs()
        taken = sum(record.slots for record in records if record.phase == "STARTED")
        ends = [record.status for record in records if record.phase == "ENDED"]
        return {
            "taskmanagers": taken,
            "taskmanagers-blocked": 0,
            "slots-total": service.budget.slots,
            "slots-available": max(service.budget.slots - taken, 0),
            "slots-free-and-blocked": 0,
            "jobs-running": len(records) - len(ends),
            "jobs-finished": ends.count(JobStatus.FINISHED.name),
            "jobs-cancelled": ends.count(JobStatus.CANCELED.name),
            "jobs-failed": ends.count(JobStatus.FAILED.name),
            "flink-version": ekorn.__version__,
            "flink-commit": "ekorn",
        }

    def job_list(self, request: Request) -> dict[str, Any]:
        return {"jobs": [{"id": job["jid"], "status": job["state"]} for job in self._overviews()]}

    def jobs_overview(self, request: Request) -> dict[str, Any]:
        return {"jobs": self._overviews()}

    def records(self, request: Request) -> dict[str, Any]:
        service = self._service
        records = service.jobs()
        said = service.overviews.reports_of_drivers(records)
        return {"jobs": [service.overviews.described(record, said[record.job_id]) for record in records]}

    def _overviews(self) -> list[dict[str, Any]]:
        """Return the jobs of all drivers. A program that calls `execute` several times has several jobs."""
        service = self._service
        records = service.jobs()
        said = service.overviews.reports_of_drivers(records)
        return [job for record in records for job in said[record.job_id].jobs or [without_driver(service, record)]]

    def slots(self, request: Request) -> dict[str, Any]:
        return {"taskmanagers": self._slots()}

    def _slots(self) -> list[dict[str, Any]]:
        started = [record for record in self._service.jobs() if record.phase == "STARTED"]
        answers = self._service.slots_of_drivers.answers(started)
        return [slot for found in answers.values() if found for slot in found["taskmanagers"]]

    def metrics_over_jobs(self, request: Request) -> list[Any]:
        wanted, records = request.many("jobs"), [each for each in self._service.jobs() if each.phase == "STARTED"]
        said = self._service.overviews.reports_of_drivers(records)
        found = [(record, str(job["jid"])) for record in records for job in said[record.job_id].jobs]
        chosen = [each for each in found if wanted is None or each[1] in wanted]
        return combined([AskedMetrics(record, f"/jobs/{job_id}/metrics") for record, job_id in chosen], request)

    def metrics_over_slots(self, request: Request) -> list[Any]:
        wanted, ids = request.many("taskmanagers"), [str(slot["id"]) for slot in self._slots()]
        owners = {each: self._service.owner_of(each.partition("-")[0]) for each in ids}
        asked = [
            AskedMetrics(record, f"/taskmanagers/{slot_id}/metrics")
            for slot_id, record in owners.items()
            if record is not None and (wanted is None or slot_id in wanted)
        ]
        return combined(asked, request)


def without_driver(service: JobService, record: JobRecord) -> dict[str, Any]:
    """Return a job without any report of a driver, in the form of the overview."""
    ended_ms = record.ended_ms or -1
    until_ms = record.ended_ms or service.clock.now_ms()
    return {
        "jid": record.job_id,
        "name": record.name,
        "start-time": record.submitted_ms,
        "end-time": ended_ms,
        "duration": until_ms - record.submitted_ms,
        "state": record.status_without_driver,
        "last-modification": record.ended_ms or record.started_ms or record.submitted_ms,
        "tasks": dict.fromkeys(("total", *(state.lower() for state in STATES)), 0),
        "pending-operators": 0,
        "jobType": "STREAMING",
        "schedulerType": "Default",
    }


_GLANCE_S = 3.0
_MOST_ASKED = 128


class AskedMetrics(NamedTuple):
    """The metrics of a job or of a slot: the record of the driver to ask, and the path of the request."""

    record: JobRecord
    path: str


def combined(all_asked: Sequence[AskedMetrics], request: Request) -> list[dict[str, Any]]:
    """Return the names of all metrics, or the numbers that a request asks for. A driver that hangs is left out.

    Raises:
        HttpError: An aggregation is not known.
    """
    wanted = request.many("get")
    query = "" if wanted is None else f"?get={quote(','.join(wanted), safe=',')}"
    aggregated([], request)  # refuses an unknown aggregation before any driver is asked
    if not all_asked:
        return []

    def ask(asked: AskedMetrics) -> dict[str, Any]:
        with contextlib.suppress(EkornError, KeyError, TypeError):  # the driver is starting, has just ended, or hangs
            client = WebClient(f"unix:{asked.record.socket}", timeout_s=_GLANCE_S)
            return {each["id"]: _number(each.get("value")) for each in client.get(asked.path + query)}
        return {}

    with ThreadPoolExecutor(min(len(all_asked), _MOST_ASKED), "ekorn-metrics") as several:
        return aggregated(list(several.map(ask, all_asked)), request)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None  # the value is a path, or "n/a"
