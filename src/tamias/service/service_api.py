"""The routes of the service: its own answers, and those that it passes on to the drivers of its jobs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import tamias
from tamias.config import options
from tamias.dashboard.pages import add_pages
from tamias.functions.job_status import JobStatus
from tamias.rest import job_answers, metric_answers, process_answers
from tamias.rest.application_answers import add_application_routes
from tamias.rest.archive import kept_answer
from tamias.rest.changing_api import add_disposal_routes, wanted_parallelism
from tamias.rest.openapi import add_description
from tamias.rest.operations import Operations, in_background
from tamias.rest.subtask_answers import STATES
from tamias.service.combined_metrics import AskedMetrics, combined
from tamias.service.job_changes import check_program, rescaled, upgraded
from tamias.service.job_record import JobPlan, JobRecord
from tamias.service.job_service import JobService
from tamias.service.job_submission import Submission
from tamias.service.program_plans import plan_of_program
from tamias.service.starting_again import started_again
from tamias.slot.thread_stacks import thread_stacks
from tamias.web.http_client import ServerGone
from tamias.web.http_messages import FileAnswer, HttpError, Request, Response, not_found
from tamias.web.routes import Routes

__all__ = ["service_routes"]

_LOG = "service.log"


def service_routes(service: JobService) -> Routes:
    """Return the routes of a service."""
    routes = Routes()
    api = _ServiceApi(service)
    read_only = service.settings.web.read_only
    for path, handler, summary in (
        ("/overview", api.overview, "How many jobs and slots there are"),
        ("/jobs", api.job_list, "The ids of all jobs"),
        ("/jobs/overview", api.jobs_overview, "All jobs"),
        ("/jobs/metrics", api.metrics_over_jobs, "Metrics over all jobs"),
        ("/jobs/:jobid/status", api.job_status, "The status of a job"),
        ("/jobs/:jobid/log", api.job_log, "The log of a job's driver, from the byte `offset` on"),
        ("/jobs/:jobid/jobmanager/logs", api.driver_logs, "The log files of a job's driver"),
        ("/jobs/:jobid/jobmanager/logs/:name", api.driver_log, "A log file of a job's driver"),
        ("/jobs/:jobid", api.pass_on, "The details of a job"),
        ("/jobs/:jobid/*", api.pass_on, "Anything else about a job, from its driver"),
        ("/taskmanagers", api.slots, "The slots of all jobs"),
        ("/taskmanagers/metrics", api.metrics_over_slots, "Metrics over all slots"),
        ("/taskmanagers/:taskmanagerid", api.pass_on_to_slot, "A slot"),
        ("/taskmanagers/:taskmanagerid/*", api.pass_on_to_slot, "Anything else about a slot"),
        ("/service/jobs", api.records, "All jobs, with the reasons for which they wait, and how they ended"),
        ("/jars", api.programs, "The programs that the service has"),
        ("/jobmanager/config", api.own_settings, "Its settings"),
        ("/jobmanager/environment", lambda request: job_answers.environment(), "Its interpreter"),
        ("/jobmanager/logs", lambda request: process_answers.log_list(api.logs()), "Its log files"),
        ("/jobmanager/log", lambda request: process_answers.log_file(api.logs(), None, request), "Its log"),
        ("/jobmanager/stdout", lambda request: process_answers.log_file(api.logs(), None, request), "Its log"),
        ("/jobmanager/logs/:name", api.own_log, "One of its log files"),
        ("/jobmanager/thread-dump", lambda request: process_answers.threads(thread_stacks()), "Its threads"),
        (
            "/jobmanager/metrics",
            lambda request: metric_answers.answer(process_answers.driver_metrics(), request),
            "Its own metrics",
        ),
        (
            "/config",
            lambda request: job_answers.web_config(read_only=read_only, can_submit=True),
            "What pages need to know",
        ),
    ):
        routes.add("GET", path, handler, summary)
    routes.add("PATCH", "/jobs/:jobid", api.cancel, "Cancel a job")
    routes.add("PATCH", "/jobs/:jobid/rescaling", api.rescale, "Continue a job with another parallelism")
    routes.add("GET", "/jobs/:jobid/rescaling/:triggerid", api.change_state, "How far a change has come")
    routes.add("PUT", "/jobs/:jobid/resource-requirements", api.require, "Let a job go on at another parallelism")
    routes.add("POST", "/jobs/:jobid/upgrade", api.upgrade, "Continue a job with another program")
    routes.add("GET", "/jobs/:jobid/upgrade/:triggerid", api.change_state, "How far a change has come")
    routes.add("POST", "/jobs/:jobid/restore", api.restore, "Run a job's program again from a savepoint")
    routes.add("POST", "/jobs/:jobid/state/*", api.pass_on, "The values of keys of a state", reads_only=True)
    routes.add("POST", "/jobs/:jobid/*", api.pass_on, "Change a job, by its driver")
    routes.add("PATCH", "/jobs/:jobid/*", api.pass_on, "Change a job, by its driver")
    routes.add(
        "POST",
        "/jars/upload",
        api.upload,
        "Bring a program: the body is the archive, `digest` its SHA-256, `name` the script",
        most_body_bytes=service.settings.bundle_bytes,
        to_file=True,
    )
    routes.add("POST", "/jars/:jarid/run", api.run, "Run a program")
    routes.add("POST", "/jars/:jarid/run-application", api.run_application, "Run a program, as an application")
    routes.add("POST", "/jars/:jarid/plan", api.program_plan, "The plan of a program")
    routes.add("DELETE", "/jars/:jarid", api.delete_program, "Delete a program")
    add_disposal_routes(routes, Operations(), lambda: None)
    add_application_routes(routes, lambda: api.jobs_overview(Request("GET", ""))["jobs"], api.exceptions)
    add_description(routes)
    add_pages(routes)
    return routes


class _ServiceApi:
    """The handlers."""

    def __init__(self, service: JobService) -> None:
        self._service = service
        self._changes = Operations()

    # ------------------------------------------------------------------------------------------------ the overview

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
            "flink-version": tamias.__version__,
            "flink-commit": "tamias",
        }

    def job_list(self, request: Request) -> dict[str, Any]:
        return {"jobs": [{"id": job["jid"], "status": job["state"]} for job in self._overviews()]}

    def jobs_overview(self, request: Request) -> dict[str, Any]:
        return {"jobs": self._overviews()}

    def records(self, request: Request) -> dict[str, Any]:
        service = self._service
        records = service.jobs()
        said = service.overviews.said_by_drivers(records)
        return {"jobs": [service.overviews.described(record, said[record.job_id]) for record in records]}

    def _overviews(self) -> list[dict[str, Any]]:
        """Return the jobs of all drivers. A program that calls `execute` several times has several jobs."""
        service = self._service
        records = service.jobs()
        said = service.overviews.said_by_drivers(records)
        return [job for record in records for job in said[record.job_id].jobs or [self._without_driver(record)]]

    def _without_driver(self, record: JobRecord) -> dict[str, Any]:
        """Return a job of which no driver has said anything, in the form of the overview."""
        ended_ms = record.ended_ms or -1
        until_ms = record.ended_ms or self._service.clock.now_ms()
        return {
            "jid": record.job_id,
            "name": record.name,
            "start-time": record.submitted_ms,
            "end-time": ended_ms,
            "duration": until_ms - record.submitted_ms,
            "state": record.status or "CREATED",
            "last-modification": record.ended_ms or record.started_ms or record.submitted_ms,
            "tasks": dict.fromkeys(("total", *(state.lower() for state in STATES)), 0),
            "pending-operators": 0,
            "jobType": "STREAMING",
            "schedulerType": "Default",
        }

    def slots(self, request: Request) -> dict[str, Any]:
        return {"taskmanagers": self._slots()}

    def _slots(self) -> list[dict[str, Any]]:
        started = [record for record in self._service.jobs() if record.phase == "STARTED"]
        answers = self._service.slots_of_drivers.answers(started)
        return [slot for found in answers.values() if found for slot in found["taskmanagers"]]

    def metrics_over_jobs(self, request: Request) -> list[Any]:
        wanted, records = request.many("jobs"), [each for each in self._service.jobs() if each.phase == "STARTED"]
        said = self._service.overviews.said_by_drivers(records)
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

    # ----------------------------------------------------------------------------------------------------- one job

    def job_status(self, request: Request) -> dict[str, Any]:
        record = self._find(request)
        shown = self._service.overviews.of(record, request.parameters["jobid"]) or self._without_driver(record)
        return {"status": shown["state"]}

    def job_log(self, request: Request) -> Response:
        record = self._find(request)
        path = self._service.store.log(record.job_id)
        if not path.is_file():
            raise HttpError(409, f"job {record.job_id} has no log yet: {record.why}")
        first = min(request.number("offset") or 0, path.stat().st_size)
        return Response(FileAnswer(path, first), content_type="text/plain; charset=UTF-8")

    def pass_on(self, request: Request) -> Response:
        """Ask the driver of a running job, or return the last answer of one that has ended."""
        record = self._find(request)
        if record.phase == "WAITING":
            raise HttpError(409, f"job {record.job_id} has not started: {record.why}")
        if record.phase == "STARTED":
            answer = self._ask_driver(record, request)
            if answer.status != 410 or not self._service.store.answers(record.job_id):
                return answer
            record = self._find(request)
        if request.method != "GET":
            raise HttpError(409, f"job {record.job_id} is over ({record.status or 'its driver has just ended'})")
        kept = kept_answer(self._service.store.answers(record.job_id), request)
        if kept is None:
            not_found(f"job {record.job_id} is over ({record.status}: {record.why}), and this of it is not kept")
        return Response(kept)

    def driver_logs(self, request: Request) -> Response:
        """Ask the driver of a running job for its logs. The log of one that has ended is in the service's folder."""
        record = self._find(request)
        return self._from_driver(record, request) or Response(process_answers.log_list(self._kept_logs(record)))

    def driver_log(self, request: Request) -> Response:
        record = self._find(request)
        name = request.parameters["name"]
        return self._from_driver(record, request) or process_answers.log_file(self._kept_logs(record), name, request)

    def _from_driver(self, record: JobRecord, request: Request) -> Response | None:
        """Return the answer of a job's driver; None if no driver answers."""
        answer = self._ask_driver(record, request) if record.phase == "STARTED" else None
        # A driver that has not come to the start of its job knows no job yet, and its log says why.
        return None if answer is None or answer.status in (404, 410) else answer

    def _kept_logs(self, record: JobRecord) -> list[Path]:
        path = self._service.store.log(record.job_id)
        return [path] if path.is_file() else []

    def exceptions(self, job_id: str) -> dict[str, Any]:
        """Return the failures of a job, from its driver or its last answers."""
        path = f"/jobs/{job_id}/exceptions"
        try:
            answer = self.pass_on(Request("GET", path, {"jobid": job_id}))
        except HttpError:  # it waits, or ended without a word
            return {"exceptionHistory": {"entries": [], "truncated": False}}
        found: dict[str, Any] = json.loads(answer.body())
        return found

    def pass_on_to_slot(self, request: Request) -> Response:
        wanted = request.parameters["taskmanagerid"]
        record = self._service.owner_of(wanted.partition("-")[0])
        if record is not None and record.phase == "STARTED":
            return self._ask_driver(record, request)
        not_found(f"there is no slot {wanted[:80]!r}")

    def cancel(self, request: Request) -> Response:
        record = self._find(request)
        if record.job_id != request.parameters["jobid"]:
            return self._ask_driver(record, request)  # a further job of the program: its driver goes on
        if self._service.withdraw(record.job_id):
            return Response({}, 202)
        if record.phase == "ENDED":
            if record.status == JobStatus.CANCELED.name:
                return Response({}, 202)
            raise HttpError(409, f"job {record.job_id} is over ({record.status})")
        if (request.one("mode") or "cancel").lower() == "cancel":
            self._service.note_cancelled(record.job_id)
        answer = self._ask_driver(record, request)
        if answer.status in (404, 410):  # the program has not come to the start of its job, and never will
            self._service.end_driver(record.job_id)
            return Response({}, 202)
        return answer

    def rescale(self, request: Request) -> dict[str, Any]:
        record, parallelism = self._find(request), request.number("parallelism", 1)
        if parallelism is None:
            raise HttpError(400, "the query parameter 'parallelism' is needed")
        return self._rescale(record, parallelism, request.one("targetDirectory"))

    def _rescale(self, record: JobRecord, parallelism: int, directory: str | None = None) -> dict[str, Any]:
        self._check_started(record)
        plan = rescaled(record.plan, parallelism)
        return self._begin_change(record, lambda: self._service.rescale(record.job_id, plan, directory))

    def require(self, request: Request) -> dict[str, Any]:
        record = self._find(request)
        self._check_started(record)
        answer = self._ask_driver(record, Request("GET", request.path))
        if answer.status != 200:
            raise HttpError(409, f"job {record.job_id} does not run yet, or runs no longer")
        wanted = wanted_parallelism(json.loads(answer.body()), request.json_object())
        if wanted is not None:
            self._rescale(record, wanted)
        return {}

    def upgrade(self, request: Request) -> dict[str, Any]:
        record, fields = self._find(request), request.json_object()
        program = _field(fields, "program", str)
        if program is None or self._service.store.program(program) is None:
            not_found(f"there is no program {str(program)[:100]!r}: upload it first")
        arguments = fields.get("programArgsList")
        if arguments is not None and (
            not isinstance(arguments, list) or not all(isinstance(each, str) and "\0" not in each for each in arguments)
        ):
            raise HttpError(400, "the field 'programArgsList' is not a list of texts")
        plan = upgraded(record.plan, program, arguments, _texts(fields, "flinkConfiguration"))
        return self._change(record, plan, _field(fields, "targetDirectory", str))

    def restore(self, request: Request) -> dict[str, Any]:
        record, fields = self._find(request), request.json_object()
        savepoint = _field(fields, "savepointPath", str)
        if not savepoint or "\0" in savepoint:
            raise HttpError(400, "the field 'savepointPath' is needed: the savepoint to start from")
        wanted = started_again(
            record,
            savepoint,
            _field(fields, "parallelism", int),
            ignore_unclaimed=bool(_field(fields, "allowNonRestoredState", bool)),
            submission_id=_field(fields, "submissionId", str) or "",
        )
        return {"jobid": self._service.submit(wanted).job_id}

    def _change(self, record: JobRecord, plan: JobPlan, directory: str | None) -> dict[str, Any]:
        self._check_started(record)
        service = self._service

        def work() -> str:
            if plan.program != record.program:
                check_program(service, record, plan)
            return service.switch(record.job_id, plan, directory)

        return self._begin_change(record, work)

    def _begin_change(self, record: JobRecord, work: Callable[[], str]) -> dict[str, Any]:
        return self._changes.begin(record.job_id, None, lambda: in_background(work), lambda path: {"location": path})

    @staticmethod
    def _check_started(record: JobRecord) -> None:
        if record.phase != "STARTED":
            raise HttpError(409, f"job {record.job_id} does not run: {record.why}")

    def change_state(self, request: Request) -> dict[str, Any]:
        return self._changes.answer(self._find(request).job_id, request.parameters["triggerid"])

    def _find(self, request: Request) -> JobRecord:
        wanted = request.parameters["jobid"]
        record = self._service.owner_of(wanted)
        return record if record is not None else not_found(f"there is no job {wanted[:80]!r}")

    def _ask_driver(self, record: JobRecord, request: Request) -> Response:
        """Pass a request on. The status 410 says that the driver does not answer."""
        query = f"?{urlencode(request.query, doseq=True)}" if request.query else ""
        try:
            path = quote(request.path, safe="/") + query
            found = self._service.driver(record).ask(request.method, path, request.body or None)
        except ServerGone:
            reason = f"the driver of job {record.job_id} does not answer: it starts, or has just ended"
            return Response({"errors": [reason]}, 410)
        return Response(found.body, found.status, found.content_type or "application/json")

    # ------------------------------------------------------------------------------------------------ the programs

    def upload(self, request: Request) -> dict[str, Any]:
        digest, name = request.one("digest"), request.one("name")
        if not digest or not name:
            raise HttpError(400, "the query parameters 'digest' and 'name' are needed")
        assert request.body_file is not None
        program = self._service.add_program(request.body_file, digest, name)
        return {"filename": program, "status": "success"}

    def programs(self, request: Request) -> dict[str, Any]:
        files = [
            {"id": each.id, "name": each.id[65:], "uploaded": each.uploaded_ms, "entry": []}
            for each in self._service.store.programs()
        ]
        return {"address": self._service.settings.web.address or "", "files": files}

    def delete_program(self, request: Request) -> dict[str, Any]:
        path = self._service.store.program(request.parameters["jarid"])
        if path is None:
            not_found(f"there is no program {request.parameters['jarid'][:100]!r}")
        user = next((each for each in self._service.jobs() if path.name in each.needed_programs), None)
        if user is not None:
            raise HttpError(409, f"job {user.job_id} needs the program: it has not ended")
        self._service.store.delete_program(path.name)
        return {}

    def run(self, request: Request) -> dict[str, Any]:
        job_id = self._run(request)
        return {"jobid": job_id, "applicationId": job_id}

    def run_application(self, request: Request) -> Response:
        return Response({"applicationid": self._run(request)}, 202)

    def _run(self, request: Request) -> str:
        self._check_program(request)
        return self._service.submit(_submission(request)).job_id

    def program_plan(self, request: Request) -> dict[str, Any]:
        self._check_program(request)
        return plan_of_program(self._service, _submission(request))

    def _check_program(self, request: Request) -> None:
        if self._service.store.program(request.parameters["jarid"]) is None:
            not_found(f"there is no program {request.parameters['jarid'][:100]!r}")

    def own_settings(self, request: Request) -> list[Any]:
        return job_answers.configuration(self._service.settings.configuration)

    def own_log(self, request: Request) -> Response:
        return process_answers.log_file(self.logs(), request.parameters["name"], request)

    def logs(self) -> list[Path]:
        """Return the log files of the service."""
        path = self._service.store.folder / _LOG
        return [path] if path.is_file() else []


def _submission(request: Request) -> Submission:
    """Return what a request to run a program asks for, in Flink's fields.

    Raises:
        HttpError: A field is wrong.
    """
    # Flink: what the body does not say may stand in the query.
    fields = {**_query_fields(request), **request.json_object()}
    if _field(fields, "entryClass", str):
        raise HttpError(400, "the field 'entryClass' names a class of a jar; a program here is started by its script")
    settings = _texts(fields, "flinkConfiguration")
    savepoint = _field(fields, "savepointPath", str)
    if savepoint is not None:
        settings[options.RESTORE_PATH.key] = savepoint
    if _field(fields, "allowNonRestoredState", bool):
        settings[options.RESTORE_IGNORE_UNCLAIMED.key] = "true"
    claim = _field(fields, "claimMode", str) or _field(fields, "restoreMode", str)  # Flink: the name before 2.0
    if claim is not None:
        settings[options.RESTORE_CLAIM_MODE.key] = claim
    arguments = fields.get("programArgsList") or []
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        raise HttpError(400, "the field 'programArgsList' is not a list of texts")
    if any("\0" in each for each in (*arguments, *settings, *settings.values())):
        raise HttpError(400, "an argument or a setting holds a null character")
    return Submission(
        program=request.parameters["jarid"],
        arguments=arguments,
        settings=settings,
        parallelism=_field(fields, "parallelism", int),
        slot_memory_bytes=_field(fields, "slotMemory", int) or 0,
        job_id=_field(fields, "jobId", str),
        submission_id=_field(fields, "submissionId", str) or "",
    )


def _query_fields(request: Request) -> dict[str, Any]:
    found: dict[str, Any] = {
        "entryClass": request.one("entry-class"),
        "savepointPath": request.one("savepointPath"),
        "parallelism": request.number("parallelism", 1),
        "programArgsList": request.many("programArg"),
    }
    ignores = request.one("allowNonRestoredState")
    if ignores is not None:
        if ignores.lower() not in ("true", "false"):
            raise HttpError(400, f"the query parameter 'allowNonRestoredState' is {ignores[:40]!r}, not true or false")
        found["allowNonRestoredState"] = ignores.lower() == "true"
    return {name: value for name, value in found.items() if value is not None}


def _field(fields: dict[str, Any], name: str, kind: type) -> Any:
    found = fields.get(name)
    if found is not None and type(found) is not kind:
        raise HttpError(400, f"the field {name!r} is {str(found)[:40]!r}, which is not of the type {kind.__name__}")
    return found


def _texts(fields: dict[str, Any], name: str) -> dict[str, str]:
    found = fields.get(name) or {}
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise HttpError(400, f"the field {name!r} is not an object with texts")
    return dict(found)
