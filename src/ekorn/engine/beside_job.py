"""The part of a source that runs in the driver beside a job and produces its input, such as a query of Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ekorn.config.choices import ExternalizedCheckpointRetention
from ekorn.config.settings.job_settings import JobSettings
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Source

__all__ = ["BesideJob", "StartingJob"]


@dataclass(frozen=True)
class StartingJob:
    """The job for which a part is started."""

    settings: JobSettings
    operator_id: str  # of the source
    parallelism: int = 1  # of the source
    batch: bool = False  # the job takes no checkpoints

    def may_continue_after(self, status: JobStatus, *, has_savepoint: bool) -> bool:
        """Return whether a checkpoint or savepoint outlives a job that ended so, from which a job may continue."""
        if has_savepoint:
            return True
        checkpoints = self.settings.checkpoints
        if not checkpoints.enabled or checkpoints.directory is None:
            return False
        match status:
            case JobStatus.FINISHED:
                return False
            case JobStatus.FAILED:
                return checkpoints.retention is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
            case JobStatus.CANCELED:
                return checkpoints.retention is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
        return True


class BesideJob(Protocol):
    """A part that lives as long as a job. It may be started again after its end, for another submission."""

    def start(self, job: StartingJob) -> Source:
        """Begin, before the job is submitted; return the source that the job reads."""

    def end(self, status: JobStatus, has_savepoint: bool) -> None:
        """Release everything. Called once for each start, also if the job could not be submitted."""
