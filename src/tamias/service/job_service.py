"""The jobs of the service: submitted, waiting for slots, started in drivers of their own, watched until they end.

One thread starts drivers and notices their ends. Any thread submits and reads. What is known of a job is on disk before
it is acted on, so a service that was killed goes on where it was: drivers that live are found again by their process
and their socket.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tamias.clock import Clock, SystemClock
from tamias.config import options
from tamias.config.configuration import masked
from tamias.config.job_id import JobID
from tamias.config.service_settings import ServiceSettings
from tamias.driver.control import runtime_folder
from tamias.errors import ConfigurationError, TamiasError
from tamias.functions.job_status import JobStatus
from tamias.service.driver_process import Started, end_process, found_driver, is_alive, start_driver
from tamias.service.job_record import JobPlan, JobRecord
from tamias.service.job_store import JobStore
from tamias.service.remote_job import RemoteJob
from tamias.service.slot_budget import SlotBudget
from tamias.web.client import RefusedRequest, ServerGone, WebClient

__all__ = ["JobService", "Submission"]

_log = logging.getLogger(__name__)

_LOOK_S = 0.2  # how often the service looks for drivers that have ended
_MOST_WAITING = 1000
_ANSWER_S = 30.0
_WENT_BACK = "the change failed, and it goes on as before"


@dataclass(frozen=True)
class Submission:
    """What a client wants to run.

    Attributes:
        program: The id of a program that the service has.
        arguments: The arguments of the script.
        settings: Settings of the job's environments; the program's own win.
        parallelism: The default parallelism, which is also the number of slots that the job may take; None for that
            of the settings.
        slot_memory_bytes: How much memory each slot claims.
        job_id: The id of the job; None for that of the settings, or a new one.
    """

    program: str
    arguments: Sequence[str] = ()
    settings: Mapping[str, str] | None = None
    parallelism: int | None = None
    slot_memory_bytes: int = 0
    job_id: str | None = None


class JobService:
    """Runs jobs."""

    def __init__(self, settings: ServiceSettings, clock: Clock | None = None) -> None:
        self.settings = settings
        self.store = JobStore(settings.folder)
        self.clock = clock or SystemClock()
        self.budget = SlotBudget(settings.slots, settings.memory_bytes)
        self._lock = threading.RLock()
        self._jobs = {record.job_id: record for record in self.store.load()}
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="tamias-service", daemon=True)

    def start(self) -> None:
        """Start jobs, and watch those that an earlier service started, from now on."""
        self._thread.start()

    def close(self) -> None:
        """Start no more jobs. Drivers live on."""
        self._closed.set()
        self._wake.set()
        self._thread.join()

    # ------------------------------------------------------------------------------------------------- for clients

    def submit(self, wanted: Submission) -> JobRecord:
        """Accept a job; it starts as soon as it fits.

        Raises:
            ConfigurationError: There is no such program, or the job could never start here.
        """
        archive = self.store.program(wanted.program)
        if archive is None:
            raise ConfigurationError(f"there is no program {wanted.program[:100]!r}: upload it first")
        settings = {str(key): str(value) for key, value in (wanted.settings or {}).items()}
        slots = _slots_of(wanted, settings)
        if wanted.slot_memory_bytes < 0:
            raise ConfigurationError(f"the memory of a slot is {wanted.slot_memory_bytes} bytes; it is 0 or more")
        job_id = _checked_id(wanted.job_id or settings.get(options.JOB_ID.key))
        script = wanted.program[65:].removesuffix(".zip")
        settings |= {
            options.PARALLELISM.key: str(slots),
            options.MOST_SLOTS.key: str(slots),
            options.JOB_ID.key: job_id,
        }
        record = JobRecord(
            job_id=job_id,
            name=script.removesuffix(".py"),
            program=wanted.program,
            script=script,
            arguments=tuple(wanted.arguments),
            settings=settings,
            slots=slots,
            slot_memory_bytes=wanted.slot_memory_bytes,
            submitted_ms=self.clock.now_ms(),
            why="it is about to start",
        )
        refusal = self.budget.refusal(record)
        if refusal is not None:
            raise ConfigurationError(f"the job is refused: {refusal}")
        with self._lock:
            known = self._jobs.get(job_id)
            if known is not None and known.phase != "ENDED":
                raise ConfigurationError(f"there is a job {job_id} already, and it has not ended")
            if sum(each.phase == "WAITING" for each in self._jobs.values()) >= _MOST_WAITING:
                raise ConfigurationError(f"the job is refused: {_MOST_WAITING} jobs wait already")
            self._save(record)
            self._jobs[job_id] = self._jobs.pop(job_id)  # a job that is submitted again is the latest
        self._wake.set()
        return record

    def jobs(self) -> list[JobRecord]:
        """Return all jobs that are remembered, in the order of submission."""
        with self._lock:
            return list(self._jobs.values())

    def find(self, job_id: str) -> JobRecord | None:
        """Return a job; None if there is none of this id."""
        with self._lock:
            return self._jobs.get(job_id)

    def driver(self, record: JobRecord) -> WebClient:
        """Return the client of a started job's driver."""
        return WebClient(f"unix:{record.socket}", timeout_s=_ANSWER_S)

    def withdraw(self, job_id: str) -> bool:
        """Cancel a job that waits; return False if it does not wait."""
        with self._lock:
            record = self._jobs.get(job_id)
            if record is None or record.phase != "WAITING":
                return False
            self._end(record, JobStatus.CANCELED.name, "it was cancelled before it started")
            return True

    def end_driver(self, job_id: str) -> None:
        """End the driver of a cancelled job that has not come to the start of the job."""
        with self._lock:
            record = self._jobs.get(job_id)
            if record is None or record.phase != "STARTED":
                return
            self._save(replace(record, cancelled=True))
        end_process(record.pid, record.pid_started)

    def switch(self, job_id: str, plan: JobPlan, directory: str | None) -> str:
        """Stop a job with a savepoint and continue it with another plan, under the same id; return the savepoint.

        If the job does not come to run with the new plan, it goes on with the one before. What is to follow is on disk
        before the job stops, so a service that is killed meanwhile continues the change.

        Raises:
            ConfigurationError: The job does not run, it would not fit, or it goes on as before.
        """
        with self._lock:
            record = self._running(job_id)
            others = [each for each in self._jobs.values() if each.phase == "STARTED" and each.job_id != job_id]
            changed = record.running(plan)
            obstacle = self.budget.refusal(changed) or self.budget.obstacle(changed, others)
            if obstacle is not None:
                raise ConfigurationError(f"the job would not fit: {obstacle}")
            self._save(replace(record, then=plan))
        try:
            path = self._stop(record, directory)
        except BaseException:
            with self._lock:
                if self._jobs[job_id].phase == "STARTED":
                    self._save(replace(self._jobs[job_id], then=None))
            raise
        self._wake.set()
        self._wait_for_change(job_id, plan)
        return path

    def _running(self, job_id: str) -> JobRecord:
        record = self._jobs.get(job_id)
        if record is None or record.phase != "STARTED":
            raise ConfigurationError(f"job {job_id} does not run")
        if record.is_changing:
            raise ConfigurationError(f"job {job_id} is being changed already")
        return record

    def _stop(self, record: JobRecord, directory: str | None) -> str:
        """Stop a job with a savepoint; return its path."""
        remote = RemoteJob(self.driver(record), record.job_id)
        try:
            try:
                future = remote.request_savepoint(directory, then="stop")
            except RefusedRequest as refused:
                if directory is not None or "no directory" not in str(refused):
                    raise
                own = str(self.store.job_folder(record.job_id) / "savepoints")
                future = remote.request_savepoint(own, then="stop")
            return future.result()
        except ServerGone:  # the job stopped, and its driver ended before it was asked again
            path = self._continued_from(record.job_id)
            if path is None:
                raise
            return path

    def _continued_from(self, job_id: str) -> str | None:
        """Wait until the end of a driver is noted; return what the job continues from, or None if it has ended."""
        while (record := self.find(job_id)) is not None and record.phase != "ENDED":
            if record.then is None:
                return record.settings.get(options.RESTORE_PATH.key)
            if self._closed.wait(_LOOK_S):
                break
        return None

    def _runs(self, record: JobRecord) -> bool:
        return (self.overview(record) or {}).get("state") == JobStatus.RUNNING.name

    def _wait_for_change(self, job_id: str, plan: JobPlan) -> None:
        """Return when a job runs with a new plan.

        Raises:
            ConfigurationError: It has ended, or goes on with the plan before.
        """
        while not self._closed.wait(_LOOK_S):
            record = self.find(job_id)
            if record is None or record.phase == "ENDED":
                raise ConfigurationError(f"job {job_id} has ended: {record.why if record else 'it is forgotten'}")
            is_changed = (record.program, record.slots) == (plan.program, plan.slots)
            if record.then is None and not is_changed:
                raise ConfigurationError(f"job {job_id} was not changed: {record.why}")
            if record.then is None and record.fallback is None:
                return

    def overview(self, record: JobRecord) -> dict[str, Any] | None:
        """Return what a started or ended job's driver says of it in the overview; None if it has said nothing."""
        found = None
        if record.phase == "STARTED":
            with contextlib.suppress(TamiasError):  # the driver is about to open its socket, or has just ended
                found = self.driver(record).get("/jobs/overview")
        if found is None and record.phase != "WAITING":
            found = self.store.answers(record.job_id).get("/jobs/overview")
        jobs = found.get("jobs", []) if isinstance(found, dict) else []
        return next((job for job in jobs if job.get("jid") == record.job_id), None)

    def described(self, record: JobRecord) -> dict[str, Any]:
        """Return a record for people to read, with the state of the job and without secrets."""
        shown = self.overview(record) or {}
        state = record.status if record.phase == "ENDED" else shown.get("state", "CREATED")
        return {
            "id": record.job_id,
            "name": shown.get("name", record.name),
            "state": state,
            "phase": record.phase,
            "why": record.why,
            "slots": record.slots,
            "program": record.program,
            "arguments": len(record.arguments),
            "settings": {key: masked(key, value) for key, value in record.settings.items()},
            "submitted": record.submitted_ms,
            "started": record.started_ms,
            "ended": record.ended_ms,
            "pid": record.pid,
            "log": str(self.store.log(record.job_id)),
            "changing": record.is_changing,
        }

    # --------------------------------------------------------------------------------------- for the service's thread

    def _watch(self) -> None:
        while not self._closed.is_set():
            try:
                self._note_ends()
                self._start_waiting()
                self._forget_old()
            except Exception:  # the service must outlive a disk that is full for a while
                _log.exception("the service could not look after its jobs")
            self._wake.wait(_LOOK_S)
            self._wake.clear()

    def _note_ends(self) -> None:
        for record in self.jobs():
            if record.phase != "STARTED":
                continue
            if not is_alive(record.pid, record.pid_started):
                self._note_end(record)
            elif record.fallback is not None and self._runs(record):
                with self._lock:  # the change has succeeded: whatever happens from now on happens to the new plan
                    self._save(replace(self._jobs[record.job_id], fallback=None))

    def _note_end(self, ended: JobRecord) -> None:
        status, why = self._outcome(ended)
        with self._lock:
            record = self._jobs[ended.job_id]
            follower = None if status == JobStatus.CANCELED.name else self._follower(record, why)
            if follower is None:
                self._end(record, status, why)
            else:
                self._save(follower)
        _log.info("job %s (%s) is %s: %s", record.job_id, record.name, status, why)

    def _follower(self, record: JobRecord, why: str) -> JobRecord | None:
        """Return the job that starts now that a driver has ended: with another plan, or again with the one before."""
        answers = self.store.answers(record.job_id)
        waiting = replace(record, phase="WAITING", pid=0, pid_started=0, then=None, fallback=None)
        path = self._stopped_at(record)
        if record.then is not None and path is not None:
            start = {options.RESTORE_PATH.key: path}
            plan = replace(record.then, settings={**record.then.settings, **start})
            before = replace(record.plan, settings={**record.settings, **start})
            return replace(waiting.running(plan), fallback=before, why="it continues from its savepoint")
        ran_ms = (answers.get(f"/jobs/{record.job_id}") or {}).get("timestamps", {}).get("RUNNING", 0)
        if record.fallback is not None and not ran_ms:
            return replace(waiting.running(record.fallback), why=f"{_WENT_BACK}: {why}")
        return None

    def _stopped_at(self, record: JobRecord) -> str | None:
        """Return the savepoint that a job has stopped with; None if it has not."""
        answers = self.store.answers(record.job_id)
        saved = (answers.get(f"/jobs/{record.job_id}/checkpoints") or {}).get("latest", {}).get("savepoint") or {}
        return saved.get("external_path") if saved.get("checkpoint_type") == "SYNC_SAVEPOINT" else None

    def _outcome(self, record: JobRecord) -> tuple[str, str]:
        """Return how a job ended whose driver has ended."""
        shown = self.overview(replace(record, phase="ENDED"))
        if shown is not None:
            return str(shown["state"]), "its driver has ended"
        latest = self.find(record.job_id)
        if latest is not None and latest.cancelled:
            return JobStatus.CANCELED.name, "it was cancelled before its program started a job"
        answers = self.store.answers(record.job_id)
        if answers:
            code = answers.get("exit code", 1)
            status = JobStatus.FINISHED if code == 0 else JobStatus.FAILED
            return status.name, f"the program ended with exit code {code} and started no job; its log says more"
        return JobStatus.FAILED.name, "its driver ended without a word, as a killed process does; its log says more"

    def _start_waiting(self) -> None:
        for record in self.jobs():
            if record.phase != "WAITING":
                continue
            started = [each for each in self.jobs() if each.phase == "STARTED"]
            obstacle = self.budget.obstacle(record, started)
            if obstacle is None:
                self._start(record)
            else:
                with self._lock:
                    if self._jobs[record.job_id] == record and record.why != f"it waits: {obstacle}":
                        self._save(replace(record, why=f"it waits: {obstacle}"))
                return  # Flink: first come, first served. A small job does not overtake a large one for ever.

    def _start(self, record: JobRecord) -> None:
        socket = str(runtime_folder() / f"{record.job_id}.rest")
        record = replace(record, socket=socket, settings={**record.settings, options.WEB_SOCKET.key: socket})
        with self._lock:
            if self._jobs[record.job_id].phase != "WAITING":
                return  # it was cancelled meanwhile
            try:
                # A service that was killed, or whose disk was full, may have started a driver and not written it down.
                process = found_driver(self.store, record.job_id) or self._started(record)
            except (OSError, TamiasError) as error:
                self._not_started(record, f"its driver could not be started: {error}")
                return
            self._save(
                replace(
                    record,
                    phase="STARTED",
                    pid=process.pid,
                    pid_started=process.pid_started,
                    started_ms=self.clock.now_ms(),
                    why=record.why if record.why.startswith(_WENT_BACK) else "its driver runs",
                )
            )
        _log.info("job %s (%s) was started in process %d", record.job_id, record.name, process.pid)

    def _started(self, record: JobRecord) -> Started:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(record.socket)  # of a driver of this job that was killed
        script = self.store.unpack_program(record, self.settings.bundle_bytes)
        return start_driver(self.store, record, script)

    def _not_started(self, record: JobRecord, why: str) -> None:
        if record.fallback is None:
            self._end(record, JobStatus.FAILED.name, why)
        else:
            before = replace(record.running(record.fallback), fallback=None, why=f"{_WENT_BACK}: {why}")
            self._save(before)

    def _forget_old(self) -> None:
        ended = sorted((each for each in self.jobs() if each.phase == "ENDED"), key=lambda each: each.ended_ms)
        for record in ended[: max(len(ended) - self.settings.jobs_kept, 0)]:
            with self._lock:
                if self._jobs[record.job_id] == record:  # and was not submitted again meanwhile
                    del self._jobs[record.job_id]
                    self.store.forget(record.job_id)

    def _end(self, record: JobRecord, status: str, why: str) -> None:
        self._save(replace(record, phase="ENDED", status=status, why=why, ended_ms=self.clock.now_ms()))
        self._wake.set()

    def _save(self, record: JobRecord) -> None:
        self.store.save(record)
        self._jobs[record.job_id] = record


def _slots_of(wanted: Submission, settings: Mapping[str, str]) -> int:
    given = wanted.parallelism if wanted.parallelism is not None else settings.get(options.PARALLELISM.key, "1")
    try:
        slots = int(given)
    except ValueError:
        slots = 0
    if slots < 1:
        raise ConfigurationError(f"the parallelism is {given!r}; it is a number from 1 on")
    return slots


def _checked_id(given: str | None) -> str:
    try:
        return str(JobID.generate() if given is None else JobID(given))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
