"""The savepoints and retained checkpoints of all jobs of the service, for people who choose what a job starts from."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ekorn.errors import EkornError
from ekorn.functions.results.job_status import JobStatus
from ekorn.service.api.driver_poller import driver_client
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_service import JobService
from ekorn.web.http_messages import Request

__all__ = ["SavepointApi", "staying"]

_ANSWER_S = 3.0
_MOST_ASKED = 32  # drivers that are asked in parallel


class _ShownJob(NamedTuple):
    """A job of a record, as the overview shows it."""

    record: JobRecord
    overview: Mapping[str, Any]

    @property
    def is_over(self) -> bool:
        return self.record.phase == "ENDED" or JobStatus[self.overview["state"]].is_terminal_state()


class SavepointApi:
    """The handler of requests for what a job can start from."""

    def __init__(self, service: JobService) -> None:
        self._service = service

    def savepoints(self, request: Request) -> dict[str, Any]:
        """Answer `/service/savepoints`: what stays of all jobs, the newest first. A driver that hangs is left out."""
        records = [record for record in self._service.jobs() if record.phase != "WAITING"]
        reports = self._service.overviews.reports_of_drivers(records)
        shown = [_ShownJob(record, job) for record in records for job in reports[record.job_id].jobs]
        if not shown:
            return {"savepoints": []}
        with ThreadPoolExecutor(min(len(shown), _MOST_ASKED), "ekorn-savepoints") as several:
            found = [each for points in several.map(self._of_job, shown) for each in points]
        return {"savepoints": sorted(found, key=lambda each: each["timestamp"], reverse=True)}

    def _of_job(self, job: _ShownJob) -> list[dict[str, Any]]:
        job_id = str(job.overview["jid"])
        path = f"/jobs/{job_id}/checkpoints"
        answer: Any = None
        if job.record.phase == "STARTED":
            with contextlib.suppress(EkornError):  # the driver has just ended, or hangs
                answer = driver_client(job.record, _ANSWER_S).get(path)
        if answer is None:
            answer = self._service.store.answers(job.record.job_id).get(path)
        history = answer.get("history", ()) if isinstance(answer, dict) else ()
        return [
            {
                "path": each["external_path"],
                "jobId": job_id,
                "jobName": job.overview["name"],
                "kind": "SAVEPOINT" if each["is_savepoint"] else "CHECKPOINT",
                "id": each["id"],
                "timestamp": each["trigger_timestamp"],
                "size": each["state_size"],
            }
            for each in staying(history, is_over=job.is_over)
            if self._service.store.is_shared or _is_there(each["external_path"])
        ]


def staying(history: Iterable[Mapping[str, Any]], *, is_over: bool) -> list[Mapping[str, Any]]:
    """Return what stays of a job's history: its savepoints, and once the job is over the checkpoints that it retains.

    The next checkpoint of a running job deletes the one before.
    """
    return [
        each
        for each in history
        if each["status"] == "COMPLETED"
        and each.get("external_path")
        and not each.get("discarded")
        and (each["is_savepoint"] or is_over)
    ]


def _is_there(path: str) -> bool:
    """Return False for a folder of this machine that was deleted. What is elsewhere is not asked for."""
    local = path.removeprefix("file://")
    return not local.startswith("/") or os.path.isdir(local)
