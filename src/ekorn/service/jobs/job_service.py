"""The jobs of the service: submitted, waiting for slots, started in drivers of their own, watched until they end.

One thread starts drivers and notices their ends. Any thread submits and reads. Every change of a job is recorded on
disk before the service acts on it, so a service that was killed continues where it was. Drivers that still run are
found again by their process and their socket.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from dataclasses import replace
from pathlib import Path

from ekorn.clock import Clock, SystemClock
from ekorn.config import options
from ekorn.config.settings.service_settings import ServiceSettings
from ekorn.driver.runtime_folder import runtime_folder
from ekorn.errors import ConfigurationError, EkornError
from ekorn.functions.results.job_status import JobStatus
from ekorn.service.api.driver_poller import DriverPoller, driver_client
from ekorn.service.api.job_overviews import JobOverviews
from ekorn.service.cluster.takeover import after_lost_driver, was_replaced
from ekorn.service.jobs.job_process import Started, end_process, end_runs_below, found_driver, is_alive, start_driver
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_store import JobStore
from ekorn.service.jobs.job_submission import ABOUT_TO_START, Submission, resumes, script_of, submitted_record
from ekorn.service.jobs.job_table import JobTable
from ekorn.service.jobs.plan_changes import PlanChanges
from ekorn.service.jobs.plan_trial import PlanTrials, TrialLimits, Verdict
from ekorn.service.jobs.slot_budget import SlotBudget
from ekorn.web.http_client import WebClient

__all__ = ["WENT_BACK", "DriverEnds", "JobService"]

_log = logging.getLogger(__name__)
_LONGEST_SOCKET = 107  # bytes: the kernel's limit for the address of a socket

_LOOK_S = 0.2  # the interval of looking for drivers that have ended
_MOST_WAITING = 1000
_HAS_RUN = {status.name for status in (JobStatus.RUNNING, JobStatus.FAILING, JobStatus.RESTARTING)}
_JOB_ID = re.compile("[0-9a-f]{32}")


class JobService:
    """Runs jobs."""

    def __init__(self, settings: ServiceSettings, clock: Clock | None = None, store: JobStore | None = None) -> None:
        self.settings = settings
        self.store = store or JobStore(settings.folder)
        self.clock = clock or SystemClock()
        self.budget = SlotBudget(settings.slots, settings.memory_bytes)
        self._jobs = JobTable(self.store)
        self.overviews = JobOverviews(self.store)
        self.slots_of_drivers = DriverPoller("/taskmanagers")
        self._ends = DriverEnds(self.store, self.overviews, self._jobs)
        self._trials = PlanTrials(TrialLimits(settings.upgrade_restarts, settings.upgrade_time_ms), self.clock)
        self._wake = threading.Event()
        self._closed = threading.Event()
        self.changes = PlanChanges(self._jobs, self.store, self.budget, self._wake, self._closed)
        self._thread = threading.Thread(target=self._watch, name="ekorn-service", daemon=True)

    def start(self) -> None:
        """Start jobs, and watch those that an earlier service started, from now on.

        Checks and plans that an earlier service did not finish are ended, and their folders removed.
        """
        left = self.store.drop_unfinished()
        end_runs_below(left)
        self._thread.start()

    def close(self) -> None:
        """Start no more jobs. Running drivers keep running."""
        self._closed.set()
        self._wake.set()
        self._thread.join()

    def close_and_end_drivers(self, wait_s: float) -> None:
        """Start no more jobs, and kill the drivers: another service starts the jobs again.

        Args:
            wait_s: How long to wait for the step under way, which may hang in a storage that does not answer.
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
        with self._jobs.lock:
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
        with self._jobs.lock:
            sent = wanted.submission_id
            before = next((each for each in self._jobs.all() if sent and each.submission_id == sent), None)
            if before is not None:
                return before
            known = self._jobs.find(record.job_id)
            if known is not None and known.phase != "ENDED":
                raise ConfigurationError(f"there is already a job {record.job_id}, and it has not ended")
            if sum(each.phase == "WAITING" for each in self._jobs.all()) >= _MOST_WAITING:
                raise ConfigurationError(f"the job is refused: {_MOST_WAITING} jobs are already waiting")
            self._jobs.save(record)
            self._jobs.put_last(record.job_id)  # a job that is submitted again becomes the latest one
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
            return wanted  # the driver looks for a checkpoint of a job of the same name
        if same[-1].phase != "ENDED":
            if same[-1].submission_id and same[-1].submission_id == wanted.submission_id:
                return wanted
            raise ConfigurationError(f"{script!r} cannot be resumed, because it has not ended: job {same[-1].job_id}")
        return replace(wanted, job_id=same[-1].job_id)

    def jobs(self) -> list[JobRecord]:
        """Return all jobs that are remembered, in the order of submission."""
        return self._jobs.all()

    def find(self, job_id: str) -> JobRecord | None:
        """Return a job; None if there is none of this id."""
        return self._jobs.find(job_id)

    def driver(self, record: JobRecord) -> WebClient:
        """Return the client of a started job's driver."""
        return driver_client(record)

    def withdraw(self, job_id: str) -> bool:
        """Cancel a job that waits; return False if it does not wait."""
        with self._jobs.lock:
            record = self._jobs.find(job_id)
            if record is None or record.phase != "WAITING":
                return False
            self._end(record, JobStatus.CANCELED.name, "it was cancelled before it started")
            return True

    def note_cancelled(self, job_id: str) -> None:
        """Record that a job is to be cancelled: it is not started again, whatever happens to its driver."""
        with self._jobs.lock:
            record = self._jobs.find(job_id)
            if record is not None and record.phase == "STARTED" and not record.cancelled:
                self._jobs.save(replace(record, cancelled=True))

    def end_driver(self, job_id: str) -> None:
        """End the driver of a cancelled job that has not started to run yet."""
        self.note_cancelled(job_id)
        record = self.find(job_id)
        if record is not None and record.phase == "STARTED":
            end_process(record.pid, record.pid_started)

    def owner_of(self, job_id: str) -> JobRecord | None:
        """Return the job of this id, or the one whose program has started a further job of this id."""
        record = self.find(job_id)
        if record is not None or not _JOB_ID.fullmatch(job_id):
            return record
        records = [each for each in self.jobs() if each.phase != "WAITING"]
        said = self.overviews.reports_of_drivers(records)
        return next((each for each in records if any(j.get("jid") == job_id for j in said[each.job_id].jobs)), None)

    # --------------------------------------------------------------------------------------- for the service's thread

    def _watch(self) -> None:
        while not self._closed.is_set():
            try:
                self._note_ends()
                self._start_waiting()
                self._forget_old()
            except Exception:  # the service must survive a disk that is full for a while
                _log.exception("the service could not check its jobs")
            self._wake.wait(_LOOK_S)
            self._wake.clear()

    def _note_ends(self) -> None:
        for record in self.jobs():
            if record.phase != "STARTED":
                continue
            if not is_alive(record.pid, record.pid_started):
                self._note_end(record)
            elif record.fallback is not None and not record.going_back:
                self._try_plan(record)

    def _try_plan(self, record: JobRecord) -> None:
        """Look at a job on trial: keep its new plan, or end its driver so that the plan before continues."""
        runs = record.trial_ms > 0 or (self.overviews.of(record) or {}).get("state") in _HAS_RUN
        verdict, why = self._trials.verdict(record) if runs else (Verdict.UNDECIDED, "")
        with self._jobs.lock:
            latest = self._jobs[record.job_id]
            if latest.phase != "STARTED" or latest.pid != record.pid or latest.cancelled:
                return
            if verdict is Verdict.KEEP:  # all later events concern the new plan
                self._jobs.save(replace(latest, fallback=None, trial_ms=0))
            elif verdict is not Verdict.UNDECIDED:
                self._jobs.save(replace(latest, going_back=why))
                end_process(record.pid, record.pid_started)
            elif runs and not record.trial_ms:
                self._jobs.save(replace(latest, trial_ms=self.clock.now_ms()))

    def _note_end(self, ended: JobRecord) -> None:
        self.store.keep_answers(ended.job_id)
        status, why = self._ends.outcome(ended)
        with self._jobs.lock:
            record = self._jobs[ended.job_id]
            is_cancelled = status == JobStatus.CANCELED.name and not record.going_back
            follower = None if is_cancelled else self._ends.follower(record, why)
            if follower is None and self._ends.is_lost(record):
                follower = after_lost_driver(record, why, self.clock.now_ms(), may_begin=self.store.is_shared)
            if follower is None:
                self._end(record, status, why)
            else:
                self._jobs.save(follower)
        _log.info("job %s (%s) is %s: %s", record.job_id, record.name, status, why)

    def _start_waiting(self) -> None:
        first: JobRecord | None = None  # the first job that cannot start
        for record in self.jobs():
            if record.phase != "WAITING":
                continue
            if first is not None:
                # Flink: first come, first served. Otherwise small jobs could overtake a large one for ever.
                behind = f"jobs start in the order in which they were submitted, and job {first.name!r} waits before it"
                if record.why == ABOUT_TO_START or record.why.startswith("it waits"):  # nothing better to tell
                    self._note_wait(record, behind)
                continue
            started = [each for each in self.jobs() if each.phase == "STARTED"]
            obstacle = self.budget.obstacle(record, started)
            if obstacle is None:
                self._start(record)
            else:
                self._note_wait(record, obstacle)
                first = record

    def _note_wait(self, record: JobRecord, reason: str) -> None:
        with self._jobs.lock:
            if self._jobs[record.job_id] == record and record.why != f"it waits: {reason}":
                self._jobs.save(replace(record, why=f"it waits: {reason}"))

    def _start(self, record: JobRecord) -> None:
        run = self.store.new_run()
        try:
            socket = self._socket_of(record.job_id, run)
        except (OSError, EkornError) as error:  # shown with the job: nothing would change if it were tried again
            with self._jobs.lock:
                if self._jobs[record.job_id].phase == "WAITING":
                    self._not_started(record, f"its driver could not be started: {error}")
            return
        settings = {**record.settings, options.WEB_SOCKET.key: socket, **self.store.settings_of_drivers}
        record = replace(record, socket=socket, run=run, host=self.store.host, settings=settings)
        with self._jobs.lock:
            if self._jobs[record.job_id].phase != "WAITING":
                return  # the job was cancelled meanwhile
            try:
                # A service that was killed, or whose disk was full, may have started a driver without recording it.
                process = found_driver(self.store, record.job_id) or self._started(record)
            except (OSError, EkornError) as error:
                why = f"its driver could not be started: {error}"
                if self.store.is_shared and isinstance(error, OSError):
                    self._try_again(record.job_id, why)  # the storage may be unreachable for a moment
                else:
                    self._not_started(record, why)
                return
            started = replace(
                record,
                phase="STARTED",
                pid=process.pid,
                pid_started=process.pid_started,
                started_ms=self.clock.now_ms(),
                why=record.why if record.why.startswith(WENT_BACK) else "its driver is running",
            )
            # Shown before it is on disk, so that a service that no longer leads ends this driver.
            self._jobs.show(started)
            self._jobs.save(started)
        _log.info("job %s (%s) was started in process %d", record.job_id, record.name, process.pid)

    def _socket_of(self, job_id: str, run: str) -> str:
        """Return where a driver answers: in the job's own folder, which no other user can take beforehand.

        Raises:
            ConfigurationError: The path is too long for a socket, and another user has the user's runtime folder.
        """
        own = str(self.store.job_folder(job_id) / f"rest{run and '-'}{run}")
        if len(os.fsencode(own)) <= _LONGEST_SOCKET:
            return own
        return str(runtime_folder() / f"{job_id}{run and '-'}{run}.rest")

    def _started(self, record: JobRecord) -> Started:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(record.socket)  # left by a killed driver of this job
        script = self.store.unpack_program(record, self.settings.bundle_bytes)
        settings = {**self.budget.settings_of_slots(record), **record.settings}
        return start_driver(self.store, replace(record, settings=settings), script)

    def _try_again(self, job_id: str, why: str) -> None:
        waiting = self._jobs[job_id]
        if waiting.why != why:
            self._jobs.save(replace(waiting, why=why))

    def _not_started(self, record: JobRecord, why: str) -> None:
        if record.fallback is None:
            self._end(record, JobStatus.FAILED.name, why)
        else:
            before = replace(record.running(record.fallback), fallback=None, why=f"{WENT_BACK}: {why}")
            self._jobs.save(before)

    def _forget_old(self) -> None:
        ended = sorted((each for each in self.jobs() if each.phase == "ENDED"), key=lambda each: each.ended_ms)
        for record in ended[: max(len(ended) - self.settings.jobs_kept, 0)]:
            with self._jobs.lock:
                if self._jobs[record.job_id] == record:  # the job was not submitted again meanwhile
                    self._jobs.forget(record.job_id)
                    self.overviews.forget(record.job_id)
                    self._drop_programs()

    def _drop_programs(self) -> None:
        """Delete programs that no remembered job names, except for those that were uploaded last."""
        needed = {program for record in self.jobs() for program in record.named_programs}
        self.store.drop_programs(needed, self.settings.programs_kept)

    def _end(self, record: JobRecord, status: str, why: str) -> None:
        self._jobs.save(replace(record, phase="ENDED", status=status, why=why, ended_ms=self.clock.now_ms()))
        self._wake.set()


WENT_BACK = "the change failed, and the job continues as before"


class DriverEnds:
    """Reads what drivers that have ended left behind.

    Args:
        store: The files of the service.
        overviews: What drivers report about their jobs.
        jobs: The records.
    """

    def __init__(self, store: JobStore, overviews: JobOverviews, jobs: JobTable) -> None:
        self._store = store
        self._jobs = jobs
        self._overviews = overviews

    def outcome(self, record: JobRecord) -> tuple[str, str]:
        """Return the status of a job whose driver has ended, and the reason."""
        shown = self._overviews.of(replace(record, phase="ENDED"))
        answers = self._store.answers(record.job_id)
        if answers and options.ONLY_CONTINUE.key in record.settings and not self._ran_ms(record):
            why = "its driver was lost, and the next one could not continue; see its log"
            return JobStatus.FAILED.name, why
        if shown is not None:
            return str(shown["state"]), "its driver has ended"
        noted = self._store.outcome(record)
        if noted is not None:
            return noted.status, "its driver has ended"
        latest = self._jobs.find(record.job_id)
        if latest is not None and latest.cancelled:
            return JobStatus.CANCELED.name, "it was cancelled, and its driver ended without a report"
        if answers:
            code = answers.get("exit code", 1)
            status = JobStatus.FINISHED if code == 0 else JobStatus.FAILED
            return status.name, f"the program ended with exit code {code} and started no job; see its log"
        return JobStatus.FAILED.name, "its driver ended without a report, as a killed process does; see its log"

    def follower(self, record: JobRecord, why: str) -> JobRecord | None:
        """Return the job that starts now that a driver has ended: with another plan, or again with the previous one."""
        waiting = replace(
            record, phase="WAITING", pid=0, pid_started=0, then=None, fallback=None, trial_ms=0, going_back=""
        )
        path = self._stopped_at(record)
        if record.then is not None and path is not None:
            start = {options.RESTORE_PATH.key: path}
            plan = replace(record.then, settings={**record.then.settings, **start})
            before = replace(record.plan, settings={**record.settings, **start})
            return replace(waiting.running(plan), fallback=before, why="it continues from its savepoint")
        if record.fallback is not None and self._failed_its_trial(record):
            return replace(waiting.running(record.fallback), why=f"{WENT_BACK}: {record.going_back or why}")
        return None

    def _failed_its_trial(self, record: JobRecord) -> bool:
        """Return whether a driver on trial ended before a checkpoint was complete: its sinks have committed nothing."""
        answers = self._store.answers(record.job_id)
        if not answers and record.trial_ms and not record.going_back:
            return False  # the driver was killed while its job ran: it may have completed a checkpoint unseen
        counts = (answers.get(f"/jobs/{record.job_id}/checkpoints") or {}).get("counts", {})
        state = (answers.get(f"/jobs/{record.job_id}") or {}).get("state")
        return not counts.get("completed", 0) and state != JobStatus.FINISHED.name

    def is_lost(self, record: JobRecord) -> bool:
        """Return whether a driver was killed, or ended because the driver of an earlier leader replaced it."""
        answers = self._store.answers(record.job_id)
        if not answers:
            return self._store.outcome(record) is None and not record.cancelled
        return self._store.is_shared and was_replaced(answers.get(f"/jobs/{record.job_id}/exceptions") or {})

    def _ran_ms(self, record: JobRecord) -> int:
        """Return when the job of an ended driver started to run; 0 if it never did."""
        details = self._store.answers(record.job_id).get(f"/jobs/{record.job_id}") or {}
        return int(details.get("timestamps", {}).get("RUNNING", 0))

    def _stopped_at(self, record: JobRecord) -> str | None:
        """Return the savepoint that a job has stopped with; None if it has not."""
        answers = self._store.answers(record.job_id)
        saved = (answers.get(f"/jobs/{record.job_id}/checkpoints") or {}).get("latest", {}).get("savepoint") or {}
        return saved.get("external_path") if saved.get("checkpoint_type") == "SYNC_SAVEPOINT" else None
