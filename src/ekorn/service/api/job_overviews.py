"""What drivers report about their jobs for the overview of the service, also after they have ended."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from ekorn.config.masking import masked_settings
from ekorn.service.api.driver_poller import DriverPoller
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_store import JobStore

__all__ = ["DriverReport", "JobOverviews"]


class DriverReport(NamedTuple):
    """What the driver of a job reports for the overview: its jobs, and whether it is silent where it should answer."""

    jobs: tuple[dict[str, Any], ...]
    is_silent: bool


class _LastReport(NamedTuple):
    """What a driver reported last about its jobs, and when the service learned that the driver had ended."""

    ended_ms: int
    jobs: tuple[dict[str, Any], ...]


class JobOverviews:
    """Gets the overviews of jobs: from running drivers, or from the last answers of ended ones. Thread-safe.

    The last answers of an ended driver never change, and may be on a remote storage, so they are read once.

    Args:
        store: The files of the service.
    """

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._polled = DriverPoller("/jobs/overview")
        self._last_reports: dict[str, _LastReport] = {}

    def of(self, record: JobRecord, job_id: str | None = None) -> dict[str, Any] | None:
        """Return the overview of a started or ended job that its driver reports; None if there is no report.

        Args:
            record: The job.
            job_id: A further job of the same program; None for the job itself.
        """
        said = self.reports_of_drivers([record])[record.job_id]
        return next((job for job in said.jobs if job.get("jid") == (job_id or record.job_id)), None)

    def reports_of_drivers(self, records: Sequence[JobRecord]) -> dict[str, DriverReport]:
        """Return the reports of the drivers of jobs, by the id of the record. A silent driver delays no other."""
        started = [record for record in records if record.phase == "STARTED"]
        answers = self._polled.answers(started)
        found = {}
        for record in records:
            answer = answers.get(record.job_id)
            is_silent = record.job_id in answers and answer is None and os.path.exists(record.socket)
            if answer is not None:
                jobs = _jobs_in(answer)
            else:
                jobs = () if record.phase == "WAITING" else self._last_reported(record)
            found[record.job_id] = DriverReport(jobs, is_silent=is_silent and not jobs)
        return found

    def _last_reported(self, record: JobRecord) -> tuple[dict[str, Any], ...]:
        known = self._last_reports.get(record.job_id)
        if known is not None and record.phase == "ENDED" and known.ended_ms == record.ended_ms:
            return known.jobs
        jobs = _jobs_in(self._store.answers(record.job_id).get("/jobs/overview"))
        if record.phase == "ENDED" and record.ended_ms:  # otherwise the end is still being recorded
            self._last_reports[record.job_id] = _LastReport(record.ended_ms, jobs)
        return jobs

    def forget(self, job_id: str) -> None:
        """Forget the reports of a job's driver, because the service no longer remembers the job."""
        self._last_reports.pop(job_id, None)

    def described(self, record: JobRecord, said: DriverReport) -> dict[str, Any]:
        """Return a record for people to read, with the state of the job and without secrets."""
        shown: dict[str, Any] = next((job for job in said.jobs if job.get("jid") == record.job_id), {})
        state = record.status if record.phase == "ENDED" else shown.get("state", record.status_without_driver)
        return {
            "id": record.job_id,
            "name": shown.get("name", record.name),
            "state": state,
            "phase": record.phase,
            "why": record.why,
            "slots": record.slots,
            "program": record.program,
            "arguments": len(record.arguments),
            "settings": masked_settings(record.settings),
            "submitted": record.submitted_ms,
            "started": record.started_ms,
            "ended": record.ended_ms,
            "pid": record.pid,
            "log": str(self._store.log(record.job_id)),
            "changing": record.is_changing,
            "silent": said.is_silent,
            "further": [job["jid"] for job in said.jobs if job.get("jid") != record.job_id],
        }


def _jobs_in(answer: Any) -> tuple[dict[str, Any], ...]:
    return tuple(answer.get("jobs", ())) if isinstance(answer, dict) else ()
