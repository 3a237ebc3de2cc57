"""The jobs of the service: submitted, waiting for slots, started in drivers of their own, watched until they end.

One thread starts drivers and notices their ends. Any thread submits and reads. What is known of a job is on disk before
it is acted on, so a service that was killed goes on where it was: drivers that live are found again by their process
and their socket.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from dataclasses import replace
from pathlib import Path

from tamias.clock import Clock, SystemClock
from tamias.config import options
from tamias.config.service_settings import ServiceSettings
from tamias.driver.control import runtime_folder
from tamias.errors import ConfigurationError, TamiasError
from tamias.functions.job_status import JobStatus
from tamias.service.driver_glances import DriverGlances
from tamias.service.job_overviews import JobOverviews
from tamias.service.job_process import Started, end_process, found_driver, is_alive, start_driver
from tamias.service.job_record import JobPlan, JobRecord
from tamias.service.job_store import JobStore
from tamias.service.job_submission import Submission, resumes, script_of, submitted_record
from tamias.service.remote_job import RemoteJob
from tamias.service.slot_budget import SlotBudget
from tamias.service.takeover import after_lost_driver, was_replaced
from tamias.web.http_client import RefusedRequest, ServerGone, WebClient

__all__ = ["JobService"]

_log = logging.getLogger(__name__)

_LOOK_S = 0.2  # how often the service looks for drivers that have ended
_MOST_WAITING = 1000
_ANSWER_S = 30.0
_JOB_ID = re.compile("[0-9a-f]{32}")
_WENT_BACK = "the change failed, and it goes on as before"


class JobService:
    """Runs jobs."""

    def __init__(self, settings: ServiceSettings, clock: Clock | None = None, store: JobStore | None = None) -> None:
        self.settings = settings
        self.store = store or JobStore(settings.folder)
        self.clock = clock or SystemClock()
        self.budget = SlotBudget(settings.slots, settings.memory_bytes)
        self._lock = threading.RLock()
        self._jobs = {record.job_id: record for record in self.store.load()}
        self._rescaling: set[str] = set()  # jobs whose drivers change their parallelism now
        self.overviews = JobOverviews(self.store)
        self.slots_of_drivers = DriverGlances("/taskmanagers")
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

    def abandon(self, wait_s: float) -> None:
        """Start no more jobs, and kill the drivers: another service starts the jobs again.

        Args:
            wait_s: How long to wait for what is under way; it may hang in a storage that does not answer.
        """
        self._closed.set()
        self._wake.set()
        for record in self.jobs():
            if record.phase == "STARTED":
                end_process(record.pid, record.pid_started, at_once=True)
        if self._thread.ident is not None:
            self._thread.join(wait_s)

    # ------------------------------------------------------------------------------------------------- for clients

    def add_program(self, file: Path, digest: str, script: str) -> str:
        """Keep a program that a client brings; return its id.

        Raises:
            ConfigurationError: The digest is not that of the file, or the name is no name of a script.
        """
        program = self.store.add_program(file, digest, script)
        with self._lock:
            self._drop_programs()
        return program

    def submit(self, wanted: Submission) -> JobRecord:
        """Accept a job; it starts as soon as it fits.

        Raises:
            ConfigurationError: There is no such program, or the job could never start here.
        """
        archive = self.store.program(wanted.program)
        if archive is None:
            raise ConfigurationError(f"there is no program {wanted.program[:100]!r}: upload it first")
        record = submitted_record(self._with_id_to_resume(wanted), self.clock.now_ms())
        refusal = self.budget.refusal(record)
        if refusal is not None:
            raise ConfigurationError(f"the job is refused: {refusal}")
        with self._lock:
            sent = wanted.submission_id
            before = next((each for each in self._jobs.values() if sent and each.submission_id == sent), None)
            if before is not None:
                return before
            known = self._jobs.get(record.job_id)
            if known is not None and known.phase != "ENDED":
                raise ConfigurationError(f"there is a job {record.job_id} already, and it has not ended")
            if sum(each.phase == "WAITING" for each in self._jobs.values()) >= _MOST_WAITING:
                raise ConfigurationError(f"the job is refused: {_MOST_WAITING} jobs wait already")
            self._save(record)
            self._jobs[record.job_id] = self._jobs.pop(record.job_id)  # a job that is submitted again is the latest
        self._wake.set()
        return record

    def _with_id_to_resume(self, wanted: Submission) -> Submission:
        """Return a submission with the id of the job that it resumes, if this service has run it.

        Raises:
            ConfigurationError: The job runs.
        """
        if not resumes(wanted):
            return wanted
        script = script_of(wanted.program)
        same = [each for each in self.jobs() if (each.script, each.arguments) == (script, tuple(wanted.arguments))]
        if not same or same[-1].status in (JobStatus.FINISHED.name, JobStatus.CANCELED.name):
            return wanted  # its driver looks for a checkpoint of a job of the same name
        if same[-1].phase != "ENDED":
            if same[-1].submission_id and same[-1].submission_id == wanted.submission_id:
                return wanted
            raise ConfigurationError(f"{script!r} is to be resumed, and it has not ended: job {same[-1].job_id}")
        return replace(wanted, job_id=same[-1].job_id)

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

    def note_cancelled(self, job_id: str) -> None:
        """Note that a job is to be cancelled: it is not started again, whatever becomes of its driver."""
        with self._lock:
            record = self._jobs.get(job_id)
            if record is not None and record.phase == "STARTED" and not record.cancelled:
                self._save(replace(record, cancelled=True))

    def end_driver(self, job_id: str) -> None:
        """End the driver of a cancelled job that has not come to the start of the job."""
        self.note_cancelled(job_id)
        record = self.find(job_id)
        if record is not None and record.phase == "STARTED":
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
            self._check_fit(record.running(plan))
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

    def rescale(self, job_id: str, plan: JobPlan, directory: str | None) -> str:
        """Let a job go on at another parallelism, in its driver; return the checkpoint that it went on from.

        The plan is on disk before the driver is asked: a driver that is started later starts with it. Until the driver
        has answered, the job claims the slots of both plans.

        Raises:
            ConfigurationError: The job does not run, or would not fit.
            RescaleError: The driver refuses, and the job goes on as it was.
        """
        with self._lock:
            record = self._running(job_id)
            self._check_fit(record.running(plan))
            self._rescaling.add(job_id)
            self._save(record.running(replace(plan, slots=max(plan.slots, record.slots))))
        kept = record.plan
        try:
            remote = RemoteJob(self.driver(record), job_id)
            path = remote.request_rescale(plan.slots, directory, most_slots=plan.slots).result()
            kept = plan
            return path
        finally:
            with self._lock:
                self._rescaling.discard(job_id)
                if self._jobs[job_id].phase == "STARTED":
                    self._save(self._jobs[job_id].running(kept))
            self._wake.set()

    def _check_fit(self, changed: JobRecord) -> None:
        others = [each for each in self._jobs.values() if each.phase == "STARTED" and each.job_id != changed.job_id]
        obstacle = self.budget.refusal(changed) or self.budget.obstacle(changed, others)
        if obstacle is not None:
            raise ConfigurationError(f"the job would not fit: {obstacle}")

    def _running(self, job_id: str) -> JobRecord:
        record = self._jobs.get(job_id)
        if record is None or record.phase != "STARTED":
            raise ConfigurationError(f"job {job_id} does not run")
        if record.is_changing or job_id in self._rescaling:
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
        return (self.overviews.of(record) or {}).get("state") == JobStatus.RUNNING.name

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

    def owner_of(self, job_id: str) -> JobRecord | None:
        """Return the job of this id, or the one whose program has started a further job of this id."""
        record = self.find(job_id)
        if record is not None or not _JOB_ID.fullmatch(job_id):
            return record
        records = [each for each in self.jobs() if each.phase != "WAITING"]
        said = self.overviews.said_by_drivers(records)
        return next((each for each in records if any(j.get("jid") == job_id for j in said[each.job_id].jobs)), None)

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
        self.store.keep_answers(ended.job_id)
        status, why = self._outcome(ended)
        with self._lock:
            record = self._jobs[ended.job_id]
            follower = None if status == JobStatus.CANCELED.name else self._follower(record, why)
            if follower is None and self._is_lost(record):
                follower = after_lost_driver(record, why, self.clock.now_ms(), may_begin=self.store.is_shared)
            if follower is None:
                self._end(record, status, why)
            else:
                self._save(follower)
        _log.info("job %s (%s) is %s: %s", record.job_id, record.name, status, why)

    def _follower(self, record: JobRecord, why: str) -> JobRecord | None:
        """Return the job that starts now that a driver has ended: with another plan, or again with the one before."""
        waiting = replace(record, phase="WAITING", pid=0, pid_started=0, then=None, fallback=None)
        path = self._stopped_at(record)
        if record.then is not None and path is not None:
            start = {options.RESTORE_PATH.key: path}
            plan = replace(record.then, settings={**record.then.settings, **start})
            before = replace(record.plan, settings={**record.settings, **start})
            return replace(waiting.running(plan), fallback=before, why="it continues from its savepoint")
        if record.fallback is not None and not self._ran_ms(record):
            return replace(waiting.running(record.fallback), why=f"{_WENT_BACK}: {why}")
        return None

    def _ran_ms(self, record: JobRecord) -> int:
        """Return when the job of a driver that has ended came to run; 0 if it did not."""
        details = self.store.answers(record.job_id).get(f"/jobs/{record.job_id}") or {}
        return int(details.get("timestamps", {}).get("RUNNING", 0))

    def _stopped_at(self, record: JobRecord) -> str | None:
        """Return the savepoint that a job has stopped with; None if it has not."""
        answers = self.store.answers(record.job_id)
        saved = (answers.get(f"/jobs/{record.job_id}/checkpoints") or {}).get("latest", {}).get("savepoint") or {}
        return saved.get("external_path") if saved.get("checkpoint_type") == "SYNC_SAVEPOINT" else None

    def _outcome(self, record: JobRecord) -> tuple[str, str]:
        """Return how a job ended whose driver has ended."""
        shown = self.overviews.of(replace(record, phase="ENDED"))
        answers = self.store.answers(record.job_id)
        if answers and options.ONLY_CONTINUE.key in record.settings and not self._ran_ms(record):
            why = "its driver was lost, and the next one could not go on; its log says more"
            return JobStatus.FAILED.name, why
        if shown is not None:
            return str(shown["state"]), "its driver has ended"
        noted = self.store.outcome(record)
        if noted is not None:
            return noted.status, "its driver has ended"
        latest = self.find(record.job_id)
        if latest is not None and latest.cancelled:
            return JobStatus.CANCELED.name, "it was cancelled, and its driver ended without a word"
        if answers:
            code = answers.get("exit code", 1)
            status = JobStatus.FINISHED if code == 0 else JobStatus.FAILED
            return status.name, f"the program ended with exit code {code} and started no job; its log says more"
        return JobStatus.FAILED.name, "its driver ended without a word, as a killed process does; its log says more"

    def _is_lost(self, record: JobRecord) -> bool:
        """Return whether a driver was killed, or ended because the driver of an earlier leader replaced it."""
        answers = self.store.answers(record.job_id)
        if not answers:
            return self.store.outcome(record) is None and not record.cancelled
        return self.store.is_shared and was_replaced(answers.get(f"/jobs/{record.job_id}/exceptions") or {})

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
        run = self.store.new_run()
        socket = str(runtime_folder() / f"{record.job_id}{run and '-'}{run}.rest")
        settings = {**record.settings, options.WEB_SOCKET.key: socket, **self.store.settings_of_drivers}
        record = replace(record, socket=socket, run=run, host=self.store.host, settings=settings)
        with self._lock:
            if self._jobs[record.job_id].phase != "WAITING":
                return  # it was cancelled meanwhile
            try:
                # A service that was killed, or whose disk was full, may have started a driver and not written it down.
                process = found_driver(self.store, record.job_id) or self._started(record)
            except (OSError, TamiasError) as error:
                why = f"its driver could not be started: {error}"
                if self.store.is_shared and isinstance(error, OSError):
                    self._try_again(record.job_id, why)  # the storage may be away for a moment
                else:
                    self._not_started(record, why)
                return
            started = replace(
                record,
                phase="STARTED",
                pid=process.pid,
                pid_started=process.pid_started,
                started_ms=self.clock.now_ms(),
                why=record.why if record.why.startswith(_WENT_BACK) else "its driver runs",
            )
            self._jobs[record.job_id] = started  # before it is on disk: a service that leads no more ends this driver
            self._save(started)
        _log.info("job %s (%s) was started in process %d", record.job_id, record.name, process.pid)

    def _started(self, record: JobRecord) -> Started:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(record.socket)  # of a driver of this job that was killed
        script = self.store.unpack_program(record, self.settings.bundle_bytes)
        return start_driver(self.store, record, script)

    def _try_again(self, job_id: str, why: str) -> None:
        waiting = self._jobs[job_id]
        if waiting.why != why:
            self._save(replace(waiting, why=why))

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
                    self.overviews.forget(record.job_id)
                    self._drop_programs()

    def _drop_programs(self) -> None:
        """Delete programs that no remembered job names, except for those that were uploaded last."""
        needed = {program for record in self.jobs() for program in record.named_programs}
        self.store.drop_programs(needed, self.settings.programs_kept)

    def _end(self, record: JobRecord, status: str, why: str) -> None:
        self._save(replace(record, phase="ENDED", status=status, why=why, ended_ms=self.clock.now_ms()))
        self._wake.set()

    def _save(self, record: JobRecord) -> None:
        self.store.save(record)
        self._jobs[record.job_id] = record
