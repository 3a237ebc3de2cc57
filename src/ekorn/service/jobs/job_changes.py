"""Changes of a running job to another parallelism or program, and the check that the program fits the state."""

from __future__ import annotations

import logging
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ekorn.config import options
from ekorn.errors import CheckpointError, ConfigurationError, RestoreError
from ekorn.service.client.remote_job import RemoteJob
from ekorn.service.jobs.job_process import check_command
from ekorn.service.jobs.job_record import JobPlan, JobRecord
from ekorn.service.jobs.job_service import JobService
from ekorn.service.jobs.job_store import CHECKS
from ekorn.service.jobs.program_run import run_program
from ekorn.web.http_client import RefusedRequest, ServerGone

__all__ = ["check_program", "rescaled", "upgraded"]

_log = logging.getLogger(__name__)

_CHECK_S = 300.0


def rescaled(plan: JobPlan, parallelism: int) -> JobPlan:
    """Return a plan with another default parallelism, and as many slots."""
    text = str(parallelism)
    settings = {**plan.settings, options.PARALLELISM.key: text, options.MOST_SLOTS.key: text}
    return replace(plan, settings=settings, slots=parallelism)


def upgraded(plan: JobPlan, program: str, arguments: Sequence[str] | None, settings: Mapping[str, str]) -> JobPlan:
    """Return a plan with another program, with the arguments of the one before unless there are others.

    Raises:
        ConfigurationError: A setting is one that the service sets.
    """
    own = sorted(settings.keys() & {options.PARALLELISM.key, options.MOST_SLOTS.key, options.JOB_ID.key})
    if own:
        raise ConfigurationError(f"an upgrade cannot set {own[0]!r}: the job keeps its id, and rescale sets its slots")
    return replace(
        plan,
        program=program,
        script=program[65:].removesuffix(".zip"),
        arguments=plan.arguments if arguments is None else tuple(arguments),
        settings={**plan.settings, **settings},
    )


def check_program(service: JobService, record: JobRecord, plan: JobPlan) -> None:
    """Check that the state of a running job fits another program, while the job continues.

    A savepoint is taken, the program is run up to the start of its job, in a process of its own, and the savepoint is
    deleted. Sinks commit nothing with this savepoint, so the job can still go back to an older checkpoint.

    Raises:
        RestoreError: The state does not fit, or the program does not start its job.
    """
    # Each check has a folder of its own: two clients may upgrade the job at the same time.
    folder = Path(tempfile.mkdtemp(prefix=CHECKS, dir=service.store.job_folder(record.job_id)))
    saved = None
    try:
        saved = _savepoint(service, record, str(folder / "savepoint"))
        settings = {**plan.settings, options.RESTORE_PATH.key: saved, options.ONLY_CHECK_RESTORE.key: "true"}
        script = service.store.unpack_into(plan.program, plan.script, folder / "program", service.settings.bundle_bytes)
        command = check_command(script, plan.arguments, settings, folder)
        done = run_program(command, script.parent, _CHECK_S)
    except subprocess.TimeoutExpired:
        raise RestoreError(f"the program did not start its job within {_CHECK_S:.0f} s") from None
    except OSError as error:
        raise ConfigurationError(f"the program could not be checked: {error}") from error
    finally:
        if saved is not None:
            _dispose(RemoteJob(service.driver(record), record.job_id), saved)
        shutil.rmtree(folder, ignore_errors=True)
    if done.exit_code != 0:
        raise RestoreError(f"the job continues unchanged, because the new program does not fit it: {done.said}")


def _savepoint(service: JobService, record: JobRecord, own: str) -> str:
    """Take a savepoint in the job's savepoint directory or, without one, in a folder of the service."""
    remote = RemoteJob(service.driver(record), record.job_id)
    try:
        return remote.request_savepoint(None).result()
    except RefusedRequest:
        return remote.request_savepoint(own).result()


def _dispose(remote: RemoteJob, saved: str) -> None:
    """Let the driver delete the savepoint of a check, because the driver has the key and access to the storage."""
    try:
        remote.dispose_savepoint(saved)
    except (CheckpointError, RefusedRequest, ServerGone) as error:
        _log.warning("the savepoint %s of a check could not be deleted: %s", saved, error)
