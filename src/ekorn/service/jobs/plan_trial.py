"""The trial of a job that was changed: it keeps its new plan once it has completed a checkpoint, or else goes back.

The state of a job fits a new program before the job stops, but the program may still fail on every record. Until the
first checkpoint of the new plan is complete, its sinks have committed nothing, so the plan before can continue from
the savepoint between the two without a trace of the new one.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import Enum

from ekorn.clock import Clock
from ekorn.driver.display.job_progress import JobProgress
from ekorn.errors import EkornError
from ekorn.functions.results.job_status import JobStatus
from ekorn.service.api.driver_poller import driver_client
from ekorn.service.client.remote_job import RemoteJob
from ekorn.service.jobs.job_record import JobRecord

__all__ = ["PlanTrials", "TrialLimits", "Verdict", "judge"]

_log = logging.getLogger(__name__)

_ANSWER_S = 2.0  # the longest wait for an answer of the driver on trial
_STEADY_MS = 2_000  # how long a job that takes no checkpoints has to run
_IDLE_MS = 5_000  # after this time a job that reads no records is asked for a checkpoint all the same


class Verdict(Enum):
    """What becomes of a new plan."""

    UNDECIDED = "the trial goes on"
    KEEP = "the job keeps its new plan"
    RESTARTS = "it restarted {restarts} times before its first checkpoint was complete"
    TOO_LATE = "it completed no checkpoint within {seconds:.0f} s"


@dataclass(frozen=True)
class TrialLimits:
    """When a new plan has failed: after so many restarts, or so much time, without a complete checkpoint."""

    restarts: int
    time_ms: int


def judge(progress: JobProgress, ran_ms: int, limits: TrialLimits) -> Verdict:
    """Judge a new plan by the progress of its job, `ran_ms` after the job started to run. Pure."""
    if progress.checkpoints_completed > 0 or progress.status is JobStatus.FINISHED:
        return Verdict.KEEP
    if progress.restarts >= limits.restarts:
        return Verdict.RESTARTS
    return Verdict.TOO_LATE if ran_ms >= limits.time_ms else Verdict.UNDECIDED


@dataclass
class PlanTrials:
    """Watches jobs on trial, and asks each for one checkpoint as soon as it has read records.

    Args:
        limits: When a new plan has failed.
        clock: The clock of the service.
    """

    limits: TrialLimits
    clock: Clock
    _asked: set[tuple[str, int]] = field(default_factory=set)  # the drivers that were asked for a checkpoint
    _since: dict[tuple[str, int], float] = field(default_factory=dict)  # by driver: when this service saw it run first

    def verdict(self, record: JobRecord) -> tuple[Verdict, str]:
        """Return the verdict on a started job on trial, and the reason in words."""
        remote = RemoteJob(driver_client(record, _ANSWER_S), record.job_id)
        ran_ms = self._ran_ms(record)
        try:
            progress = remote.progress()
            found = judge(progress, ran_ms, self.limits)
            if found is Verdict.UNDECIDED and progress.status is JobStatus.RUNNING:
                if not remote.takes_checkpoints():
                    found = Verdict.KEEP if ran_ms >= _STEADY_MS else Verdict.UNDECIDED
                elif progress.records_read > 0 or ran_ms >= _IDLE_MS:
                    self._ask_for_checkpoint(record, remote)
        except EkornError as error:  # the driver is starting, has just ended, or hangs
            _log.debug("the driver of job %s on trial does not answer: %s", record.job_id, error)
            return Verdict.UNDECIDED, ""
        if found is not Verdict.UNDECIDED:
            self._asked.discard((record.job_id, record.pid))
            self._since.pop((record.job_id, record.pid), None)
        return found, found.value.format(restarts=progress.restarts, seconds=self.limits.time_ms / 1000)

    def _ran_ms(self, record: JobRecord) -> int:
        """Return how long a driver has run, by a clock that cannot be set. A service that starts anew begins at 0."""
        now_s = self.clock.monotonic()
        return round((now_s - self._since.setdefault((record.job_id, record.pid), now_s)) * 1000)

    def _ask_for_checkpoint(self, record: JobRecord, remote: RemoteJob) -> None:
        """Ask a driver for a checkpoint, once: its next periodic one may be far away."""
        if (record.job_id, record.pid) not in self._asked:
            self._asked.add((record.job_id, record.pid))
            remote.trigger_checkpoint()
