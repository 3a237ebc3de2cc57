"""Requests that upload, list, run, draw and delete programs. Flink calls programs jars."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ekorn.config import options
from ekorn.errors import ConfigurationError
from ekorn.service.api.request_fields import field, texts
from ekorn.service.jobs.job_process import plan_command
from ekorn.service.jobs.job_service import JobService
from ekorn.service.jobs.job_store import PLANS
from ekorn.service.jobs.job_submission import Submission, submitted_record
from ekorn.service.jobs.program_run import run_program
from ekorn.web.http_messages import HttpError, Request, Response, not_found

__all__ = ["ProgramApi"]

_PLAN_S = 60.0


class ProgramApi:
    """The handlers of requests about programs."""

    def __init__(self, service: JobService) -> None:
        self._service = service

    def upload(self, request: Request) -> dict[str, Any]:
        digest, name = request.one("digest"), request.one("name")
        if not digest or not name:
            raise HttpError(400, "the query parameters 'digest' and 'name' are required")
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


def _submission(request: Request) -> Submission:
    """Return what a request to run a program asks for, in Flink's fields.

    Raises:
        HttpError: A field is wrong.
    """
    # Flink: fields that the body lacks may be query parameters.
    fields = {**_query_fields(request), **request.json_object()}
    if field(fields, "entryClass", str):
        raise HttpError(400, "the field 'entryClass' names a class in a jar; here, a program is started by its script")
    settings = texts(fields, "flinkConfiguration")
    savepoint = field(fields, "savepointPath", str)
    if savepoint is not None:
        settings[options.RESTORE_PATH.key] = savepoint
    if field(fields, "allowNonRestoredState", bool):
        settings[options.RESTORE_IGNORE_UNCLAIMED.key] = "true"
    # Flink: the name of the field before 2.0.
    claim = field(fields, "claimMode", str) or field(fields, "restoreMode", str)
    if claim is not None:
        settings[options.RESTORE_CLAIM_MODE.key] = claim
    arguments = fields.get("programArgsList") or []
    if not isinstance(arguments, list) or not all(isinstance(each, str) for each in arguments):
        raise HttpError(400, "the field 'programArgsList' is not a list of strings")
    if any("\0" in each for each in (*arguments, *settings, *settings.values())):
        raise HttpError(400, "an argument or a setting holds a null character")
    return Submission(
        program=request.parameters["jarid"],
        arguments=arguments,
        settings=settings,
        parallelism=field(fields, "parallelism", int),
        slot_memory_bytes=field(fields, "slotMemory", int) or 0,
        job_id=field(fields, "jobId", str),
        submission_id=field(fields, "submissionId", str) or "",
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


def plan_of_program(service: JobService, wanted: Submission) -> dict[str, Any]:
    """Return the plan of a program's first job, in Flink's form.

    Raises:
        ConfigurationError: The program does not start a job.
    """
    record = submitted_record(wanted, service.clock.now_ms())
    folder = Path(tempfile.mkdtemp(prefix=PLANS, dir=service.store.folder))
    try:
        script = service.store.unpack_into(
            record.program, record.script, folder / "program", service.settings.bundle_bytes
        )
        plan = folder / "plan.json"
        command = plan_command(script, record.arguments, record.settings, folder, plan)
        done = run_program(command, script.parent, _PLAN_S)
        if plan.is_file():
            found: dict[str, Any] = json.loads(plan.read_bytes())
            return found
        raise ConfigurationError(f"the program ended with exit code {done.exit_code} and started no job: {done.said}")
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"the program did not start a job within {_PLAN_S:.0f} s") from None
    except OSError as error:
        raise ConfigurationError(f"the program could not be run: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
