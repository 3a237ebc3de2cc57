"""`JobStatus`: the states of a job."""

from __future__ import annotations

from enum import Enum

__all__ = ["JobStatus"]


class JobStatus(Enum):
    """The states of a job. FAILED, CANCELED and FINISHED are final."""

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9
    INITIALIZING = 10
    """The service has received the job, and its driver does not run yet. PyFlink lacks it; Java has it."""

    def is_globally_terminal_state(self) -> bool:
        """Return whether the job has ended for good."""
        return self in {JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED}

    def is_terminal_state(self) -> bool:
        """Return whether the job has ended here; a suspended job may continue elsewhere."""
        return self is JobStatus.SUSPENDED or self.is_globally_terminal_state()
