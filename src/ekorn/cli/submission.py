"""`ekorn submission` runs the driver of a job that a service started. `ekorn run -d` submits such a job."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn, TextIO

from ekorn.cli.run_command import run_program
from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.job_outcome import JobOutcome, note_outcomes_with
from ekorn.driver.submit import graphs_shown_to
from ekorn.errors import ConfigurationError, EkornError, JobHasFinished, JobWasCancelled
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.job_graph import JobGraph
from ekorn.rest.driver_web import WEB
from ekorn.rest.job_answers import drawn_plan
from ekorn.service.client.service_client import ServiceClient
from ekorn.service.cluster.leader_watch import LeaderWatch, end_this_process
from ekorn.service.jobs.job_store import write_private

__all__ = ["run_submission", "submit_program"]


def run_submission(file: str) -> int:
    """Run the program that a service has put into a file; leave the last answers about its jobs behind.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    try:
        found = json.loads(Path(file).read_bytes())
        script, arguments, settings = found["script"], found["arguments"], found["settings"]
        answers = Path(found["answers"])
        plan = found.get("plan")
        watch = None if found.get("leader") is None else LeaderWatch(found["leader"], end_this_process)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{file!r} is not a submission of a service: {error}") from error
    if plan is not None:
        return _write_plan(script, arguments, Configuration.from_dict(settings), Path(plan))
    code = 1
    _log_to_standard_error()
    if watch is not None:
        watch.start()
        note_outcomes_with(watch.note)
    try:
        code = run_program(script, arguments, Configuration.from_dict(settings))
        _wait_for_jobs()
    except (JobHasFinished, JobWasCancelled) as over:
        # The driver under the previous leader ended the job, but was lost before it could report that.
        if watch is not None:
            status = JobStatus.FINISHED if isinstance(over, JobHasFinished) else JobStatus.CANCELED
            watch.note(JobOutcome(settings[options.JOB_ID.key], status, None))
        raise
    finally:
        # Clients ask for the jobs after this process has ended, so the answers are kept however the program ended.
        last = {**WEB.last_answers(), "exit code": code}
        write_private(answers, json.dumps(last, default=str).encode())
        WEB.close()
        if watch is not None:
            watch.close()
            note_outcomes_with(None)
    return code


def _log_to_standard_error() -> None:
    """Let the log of the driver, which the service keeps, tell what happens to the job."""
    handler = _UntilTheProgramLogs()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("ekorn")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


class _UntilTheProgramLogs(logging.StreamHandler[TextIO]):
    """Writes to standard error, unless the program has handlers of its own: they get the same lines."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


def _write_plan(script: str, arguments: Sequence[str], configuration: Configuration, file: Path) -> int:
    """Run a program up to the start of its first job, and write the plan of the job to a file."""

    def write(graph: JobGraph, settings: JobSettings) -> NoReturn:
        found = {"plan": drawn_plan(graph, str(settings.job_id), settings.job_name)}
        write_private(file, json.dumps(found, default=str).encode())
        raise SystemExit(0)

    with graphs_shown_to(write):
        return run_program(script, arguments, configuration)


def _wait_for_jobs() -> None:
    """Wait for jobs that the program left running. SIGTERM suspends them."""

    def suspend(number: int, frame: FrameType | None) -> None:
        for job in WEB.jobs.running():
            job.requests.suspend()

    signal.signal(signal.SIGTERM, suspend)
    for job in WEB.jobs.running():
        while not job.results.wait_for_end(3600.0):
            pass


def submit_program(
    client: ServiceClient,
    script: str,
    arguments: Sequence[str],
    settings: Mapping[str, str],
    *,
    slot_memory_bytes: int,
    files: Sequence[str],
    detached: bool,
) -> int:
    """Submit a program to a service and print the id of its job; wait for the job unless it is detached."""
    job = client.submit(
        script, arguments=arguments, settings=settings, slot_memory_bytes=slot_memory_bytes, files=files
    )
    print(job.get_job_id(), flush=True)
    if detached:
        return 0
    try:
        job.get_job_execution_result().result()
    except EkornError as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    return 0
