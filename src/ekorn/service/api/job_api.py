"""Requests about one job of the service.

Most are forwarded to its driver, or answered from the driver's last answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from ekorn.functions.results.job_status import JobStatus
from ekorn.rest import process_answers
from ekorn.rest.archive import kept_answer
from ekorn.service.api.overview_api import without_driver
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_service import JobService
from ekorn.web.http_client import ServerGone
from ekorn.web.http_messages import FileAnswer, HttpError, Request, Response, not_found

__all__ = ["JobApi"]


class JobApi:
    """The handlers of requests about one job."""

    def __init__(self, service: JobService) -> None:
        self._service = service

    def job_status(self, request: Request) -> dict[str, Any]:
        record = self.find(request)
        shown = self._service.overviews.of(record, request.parameters["jobid"]) or without_driver(self._service, record)
        return {"status": shown["state"]}

    def job_log(self, request: Request) -> Response:
        record = self.find(request)
        path = self._service.store.log(record.job_id)
        if not path.is_file():
            raise HttpError(409, f"job {record.job_id} has no log yet: {record.why}")
        first = min(request.number("offset") or 0, path.stat().st_size)
        return Response(FileAnswer(path, first), content_type="text/plain; charset=UTF-8")

    def pass_on(self, request: Request) -> Response:
        """Ask the driver of a running job, or return the last answer of one that has ended."""
        record = self.find(request)
        if record.phase == "WAITING":
            raise HttpError(409, f"job {record.job_id} has not started: {record.why}")
        if record.phase == "STARTED":
            answer = self.ask_driver(record, request)
            if answer.status != 410 or not self._service.store.answers(record.job_id):
                return answer
            record = self.find(request)
        if request.method != "GET":
            raise HttpError(409, f"job {record.job_id} has ended ({record.status or 'its driver has just ended'})")
        kept = kept_answer(self._service.store.answers(record.job_id), request)
        if kept is None:
            not_found(
                f"job {record.job_id} has ended ({record.status}: {record.why}), and the service no longer keeps "
                "this information about it"
            )
        return Response(kept)

    def driver_logs(self, request: Request) -> Response:
        """Ask the driver of a running job for its logs. The log of one that has ended is in the service's folder."""
        record = self.find(request)
        return self._from_driver(record, request) or Response(process_answers.log_list(self._kept_logs(record)))

    def driver_log(self, request: Request) -> Response:
        record = self.find(request)
        name = request.parameters["name"]
        return self._from_driver(record, request) or process_answers.log_file(self._kept_logs(record), name, request)

    def _from_driver(self, record: JobRecord, request: Request) -> Response | None:
        """Return the answer of a job's driver; None if no driver answers."""
        answer = self.ask_driver(record, request) if record.phase == "STARTED" else None
        # A driver whose program has not started its job yet knows no job. The log of the driver says why.
        return None if answer is None or answer.status in (404, 410) else answer

    def _kept_logs(self, record: JobRecord) -> list[Path]:
        path = self._service.store.log(record.job_id)
        return [path] if path.is_file() else []

    def exceptions(self, job_id: str) -> dict[str, Any]:
        """Return the failures of a job, from its driver or its last answers."""
        path = f"/jobs/{job_id}/exceptions"
        try:
            answer = self.pass_on(Request("GET", path, {"jobid": job_id}))
        except HttpError:  # the job waits for slots, or its driver ended without writing answers
            return {"exceptionHistory": {"entries": [], "truncated": False}}
        found: dict[str, Any] = json.loads(answer.body())
        return found

    def pass_on_to_slot(self, request: Request) -> Response:
        wanted = request.parameters["taskmanagerid"]
        record = self._service.owner_of(wanted.partition("-")[0])
        if record is not None and record.phase == "STARTED":
            return self.ask_driver(record, request)
        not_found(f"there is no slot {wanted[:80]!r}")

    def cancel(self, request: Request) -> Response:
        record = self.find(request)
        if record.job_id != request.parameters["jobid"]:
            return self.ask_driver(record, request)  # one of several jobs of a program, whose driver keeps running
        if self._service.withdraw(record.job_id):
            return Response({}, 202)
        if record.phase == "ENDED":
            if record.status == JobStatus.CANCELED.name:
                return Response({}, 202)
            raise HttpError(409, f"job {record.job_id} has ended ({record.status})")
        if (request.one("mode") or "cancel").lower() == "cancel":
            self._service.note_cancelled(record.job_id)
        answer = self.ask_driver(record, request)
        if answer.status in (404, 410):  # the program has ended, or will be ended, before it starts its job
            self._service.end_driver(record.job_id)
            return Response({}, 202)
        return answer

    def find(self, request: Request) -> JobRecord:
        """Return the job that a path names.

        Raises:
            HttpError: There is no such job.
        """
        wanted = request.parameters["jobid"]
        record = self._service.owner_of(wanted)
        return record if record is not None else not_found(f"there is no job {wanted[:80]!r}")

    def ask_driver(self, record: JobRecord, request: Request) -> Response:
        """Pass a request on. The status 410 says that the driver does not answer."""
        query = f"?{urlencode(request.query, doseq=True)}" if request.query else ""
        try:
            path = quote(request.path, safe="/") + query
            found = self._service.driver(record).ask(request.method, path, request.body or None)
        except ServerGone:
            reason = f"the driver of job {record.job_id} does not answer: it is starting, or has just ended"
            return Response({"errors": [reason]}, 410)
        return Response(found.body, found.status, found.content_type or "application/json")
