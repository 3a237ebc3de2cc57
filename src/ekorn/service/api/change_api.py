"""Requests that change a running job of the service, or start its program again: rescale, upgrade, restore."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ekorn.rest.changing_api import wanted_parallelism
from ekorn.rest.operations import Operations, in_background
from ekorn.service.api.job_api import JobApi
from ekorn.service.api.request_fields import field, texts
from ekorn.service.jobs.job_changes import check_program, rescaled, upgraded
from ekorn.service.jobs.job_record import JobPlan, JobRecord
from ekorn.service.jobs.job_service import JobService
from ekorn.service.jobs.job_submission import started_again
from ekorn.web.http_messages import HttpError, Request, not_found

__all__ = ["ChangeApi"]


class ChangeApi:
    """The handlers of requests that change jobs. Changes run in the background; clients ask how far they are."""

    def __init__(self, service: JobService, jobs: JobApi) -> None:
        self._service = service
        self._jobs = jobs
        self._changes = Operations()

    def rescale(self, request: Request) -> dict[str, Any]:
        record, parallelism = self._jobs.find(request), request.number("parallelism", 1)
        if parallelism is None:
            raise HttpError(400, "the query parameter 'parallelism' is missing")
        return self._rescale(record, parallelism, request.one("targetDirectory"))

    def _rescale(self, record: JobRecord, parallelism: int, directory: str | None = None) -> dict[str, Any]:
        self._check_started(record)
        plan = rescaled(record.plan, parallelism)
        return self._begin_change(record, lambda: self._service.changes.rescale(record.job_id, plan, directory))

    def require(self, request: Request) -> dict[str, Any]:
        record = self._jobs.find(request)
        self._check_started(record)
        answer = self._jobs.ask_driver(record, Request("GET", request.path))
        if answer.status != 200:
            raise HttpError(409, f"job {record.job_id} is not running: it has not started yet, or has ended")
        wanted = wanted_parallelism(json.loads(answer.body()), request.json_object())
        if wanted is not None:
            self._rescale(record, wanted)
        return {}

    def upgrade(self, request: Request) -> dict[str, Any]:
        record, fields = self._jobs.find(request), request.json_object()
        program = field(fields, "program", str)
        if program is None or self._service.store.program(program) is None:
            not_found(f"there is no program {str(program)[:100]!r}: upload it first")
        arguments = fields.get("programArgsList")
        if arguments is not None and (
            not isinstance(arguments, list) or not all(isinstance(each, str) and "\0" not in each for each in arguments)
        ):
            raise HttpError(400, "the field 'programArgsList' is not a list of strings")
        plan = upgraded(record.plan, program, arguments, texts(fields, "flinkConfiguration"))
        return self._change(record, plan, field(fields, "targetDirectory", str))

    def restore(self, request: Request) -> dict[str, Any]:
        record, fields = self._jobs.find(request), request.json_object()
        savepoint = field(fields, "savepointPath", str)
        if not savepoint or "\0" in savepoint:
            raise HttpError(400, "the field 'savepointPath' is required: it names the savepoint to start from")
        wanted = started_again(
            record,
            savepoint,
            field(fields, "parallelism", int),
            ignore_unclaimed=bool(field(fields, "allowNonRestoredState", bool)),
            submission_id=field(fields, "submissionId", str) or "",
        )
        return {"jobid": self._service.submit(wanted).job_id}

    def _change(self, record: JobRecord, plan: JobPlan, directory: str | None) -> dict[str, Any]:
        self._check_started(record)
        service = self._service

        def work() -> str:
            if plan.program != record.program:
                check_program(service, record, plan)
            return service.changes.switch(record.job_id, plan, directory)

        return self._begin_change(record, work)

    def _begin_change(self, record: JobRecord, work: Callable[[], str]) -> dict[str, Any]:
        return self._changes.begin(record.job_id, None, lambda: in_background(work), lambda path: {"location": path})

    @staticmethod
    def _check_started(record: JobRecord) -> None:
        if record.phase != "STARTED":
            raise HttpError(409, f"job {record.job_id} is not running: {record.why}")

    def change_state(self, request: Request) -> dict[str, Any]:
        return self._changes.answer(self._jobs.find(request).job_id, request.parameters["triggerid"])
