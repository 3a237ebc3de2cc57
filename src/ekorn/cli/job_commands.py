"""`ekorn list`, `stop`, `cancel`, `savepoint trigger`, `logs` and `top`: commands for jobs.

Every job is reached by the REST API: a job of a service at the address of the service, a job of a program of this user
on this machine at the job's own socket. A job of the user's own service has both, and the service answers for it.
"""

from __future__ import annotations

import codecs
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ekorn.cli.savepoint_commands import MOST_OF_A_NAME, absolute, print_table, printable
from ekorn.config import environment_variables as variables
from ekorn.config import options
from ekorn.driver.checkpoints.savepoint_requests import Then
from ekorn.errors import ConfigurationError, EkornError
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest.job_socket import JobGone, JobSocketClient, job_sockets
from ekorn.rest.operations import in_background
from ekorn.service.client.remote_job import RemoteJob
from ekorn.service.client.service_client import ServiceClient, own_service

__all__ = ["cancel", "list_jobs", "logs", "rescale", "service_for", "stop", "top", "trigger", "upgrade"]

_FOLLOW_S = 0.5
_MOST_OF_A_REASON = 2000  # characters
_POLL_S = 5.0  # how long drivers may take to report the progress of their jobs
_ENDED = {status.name for status in JobStatus if status.is_terminal_state()}


class _Job(NamedTuple):
    """A job, and where it is reached: at its own socket, or at a service.

    Attributes:
        details: What the service says about the job; nothing for a job with a socket.
    """

    id: str
    name: str
    status: str
    pid: int | None
    details: dict[str, Any]
    socket: Path | None
    service: ServiceClient | None

    def remote(self, timeout_s: float | None = None) -> RemoteJob:
        """Return the remote control of the job.

        A job with a socket may take `timeout_s` to answer; None waits without a limit.
        """
        if self.service is not None:
            return RemoteJob(self.service.web, self.id)
        assert self.socket is not None
        return RemoteJob(JobSocketClient(self.socket, timeout_s), self.id, one_answer=True)


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
    found, silent = _jobs(service)
    jobs = [job for job in found if _is_shown(job, shown)]
    for each in silent:
        print(f"the driver {each} does not answer", file=sys.stderr)
    if not jobs:
        print("you have no running jobs on this machine" if service is None else "no matching jobs", file=sys.stderr)
        return 1
    counts = [in_background(partial(_counts, job)) for job in jobs]  # in parallel, because a driver may hang
    until_s = time.monotonic() + _POLL_S
    rows = [_row(job, _within(each, until_s)) for job, each in zip(jobs, counts, strict=True)]
    print_table([("job", "name", "status", "records", "checkpoints", "restarts", "process"), *rows])
    for job in jobs:
        if job.details.get("phase") == "WAITING":
            print(f"{job.id}: {printable(job.details['why'], _MOST_OF_A_REASON)}")
        elif job.details.get("silent"):
            print(f"{job.id}: its driver does not answer")
    return 0


def _is_shown(job: _Job, shown: str) -> bool:
    if shown == "all":
        return True
    if shown == "scheduled":
        return job.status == "CREATED"
    if shown == "running":
        return job.status in ("RUNNING", "RESTARTING")
    return job.status not in _ENDED


def _counts(job: _Job) -> _Counts:
    """Return how far a job has come, as reported by its driver."""
    if job.details.get("phase", "STARTED") != "STARTED" or job.details.get("silent"):
        return _Counts()
    progress = job.remote(_POLL_S).progress()
    return _Counts(f"{progress.records_read:,}", str(progress.checkpoints_completed), str(progress.restarts))


def _within(counts: Future[_Counts], until_s: float) -> _Counts:
    """Return the answer of a driver; an empty one if the driver has not answered in time, or has just ended."""
    try:
        return counts.result(max(until_s - time.monotonic(), 0.0))
    except (TimeoutError, EkornError):
        return _Counts()


def _row(job: _Job, counts: _Counts) -> tuple[str, ...]:
    has_process = job.pid and job.status not in _ENDED  # the system may have given the number to another process
    return job.id, printable(job.name, MOST_OF_A_NAME), job.status, *counts, str(job.pid) if has_process else ""


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
    found = _find(service, job)
    status = found.remote().cancel_and_wait()
    print(f"job {found.name[:MOST_OF_A_NAME]!r} is {status.name}")
    return 0 if status is JobStatus.CANCELED else 1


def _savepoint(service: ServiceClient | None, job: str, directory: str | None, *, native: bool, then: Then) -> int:
    found = _find(service, job)
    where = None if directory is None else absolute(directory)
    print(found.remote().request_savepoint(where, native=native, then=then).result())
    return 0


def logs(service: ServiceClient | None, job: str, *, follow: bool, pause: Callable[[float], None] = time.sleep) -> int:
    """Print the log of a job of a service; with `follow`, what is added too, until the job has ended.

    Raises:
        ConfigurationError: The job is not one of a service.
    """
    found = _of_service(service, job)
    web, offset = found.service.web, 0
    remote = RemoteJob(web, found.id)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a piece may end in the middle of a character
    while True:
        has_ended = remote.status().is_terminal_state()
        answer = web.ask("GET", f"/jobs/{found.id}/log?offset={offset}")
        if answer.status == 200:
            offset += len(answer.body)
            sys.stdout.write(decoder.decode(answer.body, final=has_ended or not follow))
            sys.stdout.flush()
        elif not follow:
            answer.json()
        if not follow or has_ended:
            return 0
        pause(_FOLLOW_S)


def rescale(service: ServiceClient | None, job: str, parallelism: int, directory: str | None) -> int:
    """Let a running job continue at another parallelism, and print the checkpoint that it continued from."""
    found = _find(service, job)
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
    found = _find(service, job)
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


class _Found(NamedTuple):
    """The jobs that were found, and the sockets of drivers that do not answer."""

    jobs: list[_Job]
    silent: list[Path]


def _jobs(service: ServiceClient | None) -> _Found:
    asked = [(path, in_background(partial(_jobs_at, path))) for path in job_sockets()]
    of_service = [] if service is None else service.jobs()
    known = {each for job in of_service for each in (job["id"], *job.get("further", ()))}
    found = _Found(
        [_Job(job["id"], job["name"], job["state"], job["pid"], job, None, service) for job in of_service], []
    )
    of_drivers = {job["pid"] for job in of_service}
    for path, answer in asked:
        pid = int(path.name.partition("-")[0])
        try:
            jobs = answer.result()
        except JobGone:
            continue  # the job has just ended
        except TimeoutError:
            if pid not in of_drivers:  # otherwise the service reports it
                found.silent.append(path)
            continue
        found.jobs.extend(
            _Job(job["jid"], job["name"], job["state"], pid, {}, path, None) for job in jobs if job["jid"] not in known
        )
    return found


def _jobs_at(path: Path) -> list[dict[str, Any]]:
    """Return the job that answers at a socket: a list of one."""
    jobs: list[dict[str, Any]] = JobSocketClient(path, _POLL_S).get("/jobs/overview")["jobs"]
    return jobs


def _find(service: ServiceClient | None, wanted: str) -> _Job:
    """Return the one job with this id or name, or with an id that begins with this text.

    Raises:
        ConfigurationError: No job matches, or several do.
    """
    jobs, _ = _jobs(service)
    running = [job for job in jobs if job.status not in _ENDED]
    exact = [job for job in running if wanted in (job.id, job.name)] or [job for job in jobs if wanted == job.id]
    matching = exact or [job for job in running if job.id.startswith(wanted)]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(f"{job.id} ({printable(job.name, MOST_OF_A_NAME)})" for job in matching or running)
    what = f"{len(matching)} running jobs are called" if matching else "no running job is called"
    raise ConfigurationError(
        f"{what} {wanted[:MOST_OF_A_NAME]!r}; "
        + (f"running jobs: {known}" if known else "you have no running jobs on this machine")
    )
