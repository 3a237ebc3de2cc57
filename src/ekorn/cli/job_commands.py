"""`ekorn list`, `stop`, `cancel`, `savepoint trigger` and `top`: commands for jobs. `found_jobs` finds the jobs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from ekorn.cli.found_jobs import POLL_S, FoundJob, find_job, find_jobs
from ekorn.cli.savepoint_commands import MOST_OF_A_NAME, absolute, print_table
from ekorn.config import environment_variables as variables
from ekorn.config import options
from ekorn.driver.checkpoints.savepoint_requests import Then
from ekorn.errors import ConfigurationError, EkornError
from ekorn.errors.base import printable
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest.operations import in_background
from ekorn.service.client.service_client import ServiceClient, own_service

__all__ = ["cancel", "list_jobs", "rescale", "service_for", "stop", "top", "trigger", "upgrade"]

_FOLLOW_S = 0.5
_MOST_OF_A_REASON = 2000  # characters


class _Counts(NamedTuple):
    """How far a job has come. Empty if its driver does not answer."""

    records: str = ""
    checkpoints: str = ""
    restarts: str = ""


class _ServiceJob(NamedTuple):
    """A job of a service."""

    id: str
    service: ServiceClient


def service_for(
    address: str | None,
    token_file: str | None,
    certificate_file: str | None = None,
    *,
    allow_plain_http: bool = False,
) -> ServiceClient | None:
    """Return the client of the service that a command names, or of the user's own; None if none runs."""
    if address is not None or token_file is not None or certificate_file is not None:
        return ServiceClient(address, token_file, certificate_file, allow_plain_http=allow_plain_http)
    if variables.variable(variables.SERVICE_ADDRESS) is not None or own_service() is not None:
        return ServiceClient(allow_plain_http=allow_plain_http)
    return None


def list_jobs(service: ServiceClient | None, shown: str = "unended") -> int:
    """Print a line for each job. The exit code is 1 if there is none.

    Args:
        service: The service, if there is one.
        shown: `unended`, `all`, `running`, or `scheduled` for those that wait.
    """
    found, silent = find_jobs(service, ended=shown == "all")
    jobs = [job for job in found if _is_shown(job, shown)]
    for each in silent:
        print(f"the driver {each} does not answer", file=sys.stderr)
    if not jobs:
        print("you have no running jobs on this machine" if service is None else "no matching jobs", file=sys.stderr)
        return 1
    counts = [in_background(partial(_counts, job)) for job in jobs]  # in parallel, because a driver may hang
    until_s = time.monotonic() + POLL_S
    rows = [_row(job, _within(each, until_s)) for job, each in zip(jobs, counts, strict=True)]
    print_table([("job", "name", "status", "records", "checkpoints", "restarts", "process", "started"), *rows])
    for job in jobs:
        if job.details.get("phase") == "WAITING":
            print(f"{job.id}: {printable(job.details['why'], _MOST_OF_A_REASON)}")
        elif job.details.get("silent"):
            print(f"{job.id}: its driver does not answer")
    return 0


def _is_shown(job: FoundJob, shown: str) -> bool:
    if shown == "all":
        return True
    if shown == "scheduled":
        return job.status in ("CREATED", "INITIALIZING")
    if shown == "running":
        return job.status in ("RUNNING", "RESTARTING")
    return not job.has_ended


def _counts(job: FoundJob) -> _Counts:
    """Return how far a job has come, as reported by its driver."""
    is_out_of_reach = job.service is None and job.socket is None
    if is_out_of_reach or job.details.get("phase", "STARTED") != "STARTED" or job.details.get("silent"):
        return _Counts()
    progress = job.remote(POLL_S).progress()
    return _Counts(f"{progress.records_read:,}", str(progress.checkpoints_completed), str(progress.restarts))


def _within(counts: Future[_Counts], until_s: float) -> _Counts:
    """Return the answer of a driver; an empty one if the driver has not answered in time, or has just ended."""
    try:
        return counts.result(max(until_s - time.monotonic(), 0.0))
    except (TimeoutError, EkornError):
        return _Counts()


def _row(job: FoundJob, counts: _Counts) -> tuple[str, ...]:
    has_process = job.pid and not job.has_ended  # the system may have given the number to another process
    process = str(job.pid) if has_process else ""
    return job.id, printable(job.name, MOST_OF_A_NAME), job.status, *counts, process, _clock_time(job.started_ms)


def _clock_time(millis: int) -> str:
    """Return a time of day as logs show it; empty if it is not known."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(millis / 1000)) if millis > 0 else ""


def trigger(service: ServiceClient | None, job: str, directory: str | None, *, native: bool) -> int:
    """Take a savepoint of a job that keeps running, and print its path."""
    return _savepoint(service, job, directory, native=native, then="go on")


def stop(service: ServiceClient | None, job: str, directory: str | None, *, drain: bool, native: bool) -> int:
    """Stop a job with a savepoint, and print its path."""
    return _savepoint(service, job, directory, native=native, then="drain" if drain else "stop")


def cancel(service: ServiceClient | None, job: str, *, with_savepoint: bool, directory: str | None) -> int:
    """Cancel a job, after a savepoint if one is wanted, and print the path of the savepoint."""
    if with_savepoint:
        return _savepoint(service, job, directory, native=False, then="cancel")
    found = find_job(service, job)
    status = found.remote().cancel_and_wait()
    print(f"job {found.name[:MOST_OF_A_NAME]!r} is {status.name}")
    return 0 if status is JobStatus.CANCELED else 1


def _savepoint(service: ServiceClient | None, job: str, directory: str | None, *, native: bool, then: Then) -> int:
    found = find_job(service, job)
    where = None if directory is None else absolute(directory)
    print(found.remote().request_savepoint(where, native=native, then=then).result())
    return 0


def rescale(service: ServiceClient | None, job: str, parallelism: int, directory: str | None) -> int:
    """Let a running job continue at another parallelism, and print the checkpoint that it continued from."""
    found = find_job(service, job)
    where = None if directory is None else absolute(directory)
    print(found.remote().request_rescale(parallelism, where).result())
    return 0


def upgrade(
    service: ServiceClient | None,
    job: str,
    script: str,
    arguments: Sequence[str],
    directory: str | None,
    *,
    drops_state: bool = False,
) -> int:
    """Continue a job of a service with another program, and print the savepoint between the two.

    Args:
        service: The service.
        job: The id or the name of the job.
        script: The new program.
        arguments: Its arguments; none for those of the program before.
        directory: Where the savepoint goes; None for the job's default.
        drops_state: Whether state that no operator of the new program takes is dropped.
    """
    found = _of_service(service, job)
    where = None if directory is None else absolute(directory)
    body: dict[str, Any] = {"program": found.service.upload(script), "targetDirectory": where}
    if arguments:
        body["programArgsList"] = list(arguments)
    if drops_state:
        body["flinkConfiguration"] = {options.RESTORE_IGNORE_UNCLAIMED.key: "true"}
    at = f"/jobs/{found.id}/upgrade"
    return _wait_for_change(found, at, found.service.web.ask("POST", at, body).json())


def _wait_for_change(found: _ServiceJob, at: str, answer: dict[str, Any]) -> int:
    while True:
        state = found.service.web.get(f"{at}/{answer['request-id']}")
        if state["status"]["id"] == "COMPLETED":
            break
        time.sleep(_FOLLOW_S / 5)
    if "location" not in state["operation"]:
        print(state["operation"]["failure-cause"]["stack-trace"], file=sys.stderr)
        return 1
    print(state["operation"]["location"])
    return 0


def _of_service(service: ServiceClient | None, job: str) -> _ServiceJob:
    found = find_job(service, job)
    if found.service is None:
        raise ConfigurationError(f"job {job!r} runs in a program of your own, not in the service")
    return _ServiceJob(found.id, found.service)


def top(
    service: ServiceClient | None, *, rounds: int | None = None, pause: Callable[[float], None] = time.sleep
) -> int:
    """Print the jobs every two seconds, until Ctrl-C."""
    while rounds is None or rounds > 0:
        if sys.stdout.isatty():
            sys.stdout.write("\x1b[2J\x1b[H")
        list_jobs(service)
        sys.stdout.flush()
        if rounds is not None:
            rounds -= 1
        if rounds != 0:
            pause(2.0)
    return 0
