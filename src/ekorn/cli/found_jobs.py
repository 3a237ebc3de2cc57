"""The jobs that commands find: those of a service, those of the user's programs on this machine, and ended ones.

Every running job is reached by the REST API: a job of a service at the address of the service, a job of a program of
this user on this machine at the job's own socket. A job of the user's own service has both, and the service answers for
it. Of a job that has ended, the service keeps its answers and its log, and a program its log (`driver/job_log.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ekorn.cli.savepoint_commands import MOST_OF_A_NAME
from ekorn.driver.job_log import KeptLog, kept_logs
from ekorn.errors import ConfigurationError
from ekorn.errors.base import printable
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest.job_socket import JobGone, JobSocketClient, job_sockets
from ekorn.rest.operations import in_background
from ekorn.service.client.remote_job import RemoteJob
from ekorn.service.client.service_client import ServiceClient

__all__ = ["POLL_S", "FoundJob", "FoundJobs", "find_job", "find_jobs", "find_logged_job"]

POLL_S = 5.0  # how long drivers may take to answer
_ENDED = {status.name for status in JobStatus if status.is_terminal_state()} | {"KILLED"}


class FoundJob(NamedTuple):
    """A job, and where it is reached: at its own socket, or at a service.

    Attributes:
        details: What the service says about the job; nothing for a job of a program.
        socket: The socket of a running job of a program.
        service: The service that the job belongs to.
        log: The log of a job of a program.
    """

    id: str
    name: str
    status: str
    pid: int | None
    details: dict[str, Any]
    socket: Path | None
    service: ServiceClient | None
    log: KeptLog | None

    @property
    def has_ended(self) -> bool:
        """Whether the job is over."""
        return self.status in _ENDED

    @property
    def started_ms(self) -> int:
        """When the job was started, as far as that is known."""
        return self.log.started_ms if self.log is not None else int(self.details.get("submitted") or 0)

    def remote(self, timeout_s: float | None = None) -> RemoteJob:
        """Return the remote control of the job.

        A job with a socket may take `timeout_s` to answer; None waits without a limit.
        """
        if self.service is not None:
            return RemoteJob(self.service.web, self.id)
        assert self.socket is not None, "a job of a program that has ended has no remote control"
        return RemoteJob(JobSocketClient(self.socket, timeout_s), self.id, one_answer=True)


class FoundJobs(NamedTuple):
    """The jobs that were found, and the sockets of drivers that do not answer."""

    jobs: list[FoundJob]
    silent: list[Path]


def find_jobs(service: ServiceClient | None, *, ended: bool = False) -> FoundJobs:
    """Return the jobs of a service, all of them, and those of this user's programs on this machine.

    Args:
        service: The service, if there is one.
        ended: Whether all jobs of programs whose logs are kept are among them: those that have ended, and those that
            have no socket.
    """
    asked = [(path, in_background(partial(_jobs_at, path))) for path in job_sockets()]
    of_service = [] if service is None else service.jobs()
    known = {each for job in of_service for each in (job["id"], *job.get("further", ()))}
    found = FoundJobs([] if service is None else list(_jobs_of(service, of_service)), [])
    of_drivers = {job["pid"] for job in of_service}
    logs = {log.job_id: log for log in kept_logs()}
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
            FoundJob(job["jid"], job["name"], job["state"], pid, {}, path, None, logs.get(job["jid"]))
            for job in jobs
            if job["jid"] not in known
        )
    if ended:
        known |= {job.id for job in found.jobs}
        found.jobs.extend(
            FoundJob(log.job_id, log.name, log.status, log.pid, {}, None, None, log)
            for log in reversed(logs.values())
            if log.job_id not in known
        )
    return found


def _jobs_of(service: ServiceClient, records: Sequence[dict[str, Any]]) -> Iterator[FoundJob]:
    """Yield the jobs of a service, each with the further jobs that its program has started."""
    overview: dict[str, Any] = {}
    if any(record.get("further") for record in records):
        overview = {job["jid"]: job for job in service.web.get("/jobs/overview")["jobs"]}
    for record in records:
        yield FoundJob(record["id"], record["name"], record["state"], record["pid"], record, None, service, None)
        for job in (overview[each] for each in record.get("further", ()) if each in overview):
            details = {"submitted": job["start-time"], "phase": record["phase"], "silent": record.get("silent")}
            yield FoundJob(job["jid"], job["name"], job["state"], record["pid"], details, None, service, None)


def _jobs_at(path: Path) -> list[dict[str, Any]]:
    """Return the job that answers at a socket: a list of one."""
    jobs: list[dict[str, Any]] = JobSocketClient(path, POLL_S).get("/jobs/overview")["jobs"]
    return jobs


def find_job(service: ServiceClient | None, wanted: str) -> FoundJob:
    """Return the one running job with this id or name, or with an id that begins with this text; by its id any job.

    Raises:
        ConfigurationError: No job matches, or several do.
    """
    jobs, _ = find_jobs(service)
    running = [job for job in jobs if not job.has_ended]
    exact = [job for job in running if wanted in (job.id, job.name)] or [job for job in jobs if wanted == job.id]
    matching = exact or [job for job in running if job.id.startswith(wanted)]
    if len(matching) == 1:
        return matching[0]
    known = _listed(matching or running)
    what = f"{len(matching)} running jobs are called" if matching else "no running job is called"
    raise ConfigurationError(
        f"{what} {wanted[:MOST_OF_A_NAME]!r}; "
        + (f"running jobs: {known}" if known else "you have no running jobs on this machine")
    )


def find_logged_job(service: ServiceClient | None, wanted: str) -> FoundJob:
    """Return the job with this id or name, or with an id that begins with this text, whether it runs or has ended.

    Of ended jobs with the same name it is the one that was started last.

    Raises:
        ConfigurationError: No job matches, or several running ones do, or several ids begin with the text.
    """
    jobs, _ = find_jobs(service, ended=True)
    named = [job for job in jobs if wanted in (job.id, job.name)]
    running = [job for job in named if not job.has_ended]
    if named and not running:
        return max(named, key=lambda job: job.started_ms)
    matching = running or [job for job in jobs if job.id.startswith(wanted)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        how = "running jobs are called" if running else "ids of jobs begin with"
        raise ConfigurationError(
            f"{len(matching)} {how} {wanted[:MOST_OF_A_NAME]!r}: name one of them by its id: {_listed(matching)}"
        )
    known = _listed(jobs)
    raise ConfigurationError(
        f"no job is called {wanted[:MOST_OF_A_NAME]!r}, whether it runs or has ended; "
        + (f"there are: {known}" if known else "none of your jobs has a log on this machine")
    )


def _listed(jobs: Sequence[FoundJob]) -> str:
    return ", ".join(f"{job.id} ({printable(job.name, MOST_OF_A_NAME)})" for job in jobs)
