"""What is seen of a job: its status, progress, metrics and statistics, and what its slots tell about themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from ekorn.config.job_id import JobID
from ekorn.driver.display.job_progress import Fact, JobProgress, html_table
from ekorn.driver.queries.state_reader import QueryAddress, StateReader
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.functions.results.job_status import JobStatus
from ekorn.metrics.thread_stacks import ThreadStack
from ekorn.slot_protocol.diagnostics import SamplingPlan, SlotLogs, SlotVitals, StackSample

__all__ = ["JobView"]


class InspectedSlots(Protocol):
    """The part of an engine that asks slots about themselves. Any thread may call it."""

    def thread_stacks(self, slot: int) -> list[ThreadStack]:
        """Return the stacks of a slot's threads."""

    def sample_stacks(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        """Sample the stacks of a slot's subtasks."""

    def recent_log(self, slot: int) -> SlotLogs | None:
        """Return the last lines of a slot's log."""

    def vitals(self, slot: int) -> SlotVitals:
        """Return what the process of a slot uses."""


class JobView:
    """What is seen of one job. The job loop publishes it; any thread reads it.

    Attributes:
        job_id: The id of the job.
        job_name: The name of the job.
        statistics: What is remembered about the job; None until its loop is assembled.
        queries_at: Where queries of the job's state are answered; None if they are not.
        state_reader: Reads the job's state; None if queries are not answered, and when the job has ended.
        is_in_foreground: Whether the program waits for the job, and writes nothing meanwhile.
    """

    def __init__(self, job_id: JobID, job_name: str) -> None:
        self.job_id = job_id
        self.job_name = job_name
        self.statistics: JobStatistics | None = None
        self.queries_at: QueryAddress | None = None
        self.state_reader: StateReader | None = None
        self.is_in_foreground = False
        self._progress = JobProgress()
        self._metrics: Callable[[], dict[str, Any]] | None = None
        self._slots: InspectedSlots | None = None

    def status(self) -> JobStatus:
        """Return the job's current status."""
        return self._progress.status

    def progress(self) -> JobProgress:
        """Return the job's progress as of the last epoch or checkpoint."""
        return self._progress

    def metrics(self) -> dict[str, Any]:
        """Return the metrics as of the last epoch, by name. The names of the job's own metrics begin with `job.`."""
        progress = self._progress
        own = {
            "job.numRestarts": progress.restarts,
            "job.numberOfCompletedCheckpoints": progress.checkpoints_completed,
            "job.numberOfFailedCheckpoints": progress.checkpoints_failed,
            "job.lastCheckpointSize": progress.last_checkpoint_bytes,
            "job.lastCheckpointDuration": progress.last_checkpoint_ms,
            "job.lastCheckpointExternalPath": progress.last_checkpoint_path,
        }
        return own | (self._metrics() if self._metrics is not None else {})

    def thread_stacks(self, slot: int) -> list[ThreadStack]:
        """Return the stacks of a slot's threads; none if the job has no slots.

        Raises:
            SlotLostError: The slot does not answer.
        """
        slots = self._slots
        return [] if slots is None else slots.thread_stacks(slot)

    def sample_stacks(self, slot: int, plan: SamplingPlan) -> list[StackSample]:
        """Sample the stacks of a slot's subtasks for as long as the plan says; none if the job has no slots.

        Raises:
            SlotLostError: The slot does not answer.
        """
        slots = self._slots
        return [] if slots is None else slots.sample_stacks(slot, plan)

    def slot_log(self, slot: int) -> SlotLogs | None:
        """Return the last lines of a slot's log; None if the slot has no log of its own.

        Raises:
            SlotLostError: The slot does not answer.
        """
        slots = self._slots
        return None if slots is None else slots.recent_log(slot)

    def slot_vitals(self, slot: int) -> SlotVitals | None:
        """Return what the process of a slot uses; None if the job has no slots.

        Raises:
            SlotLostError: The slot does not answer.
        """
        slots = self._slots
        return None if slots is None else slots.vitals(slot)

    def _repr_html_(self) -> str:
        own = (Fact("job", self.job_name), Fact("job id", str(self.job_id)))
        return html_table((*own, *self._progress.facts()))

    # ------------------------------------------------------------------------------ for the loop that runs the job

    def update(self, progress: JobProgress) -> None:
        """Publish progress."""
        self._progress = progress

    def publish_metrics(self, values: Callable[[], dict[str, Any]]) -> None:
        """Set what returns the latest metrics of all subtasks. Any thread may call it."""
        self._metrics = values

    def inspect(self, slots: InspectedSlots) -> None:
        """Set what asks the slots about themselves."""
        self._slots = slots

    def end(self, status: JobStatus) -> None:
        """Publish the final status, and drop what leads to the engine: programs and pages keep views of ended jobs."""
        self._progress = replace(self._progress, status=status)
        self.state_reader = None
        self._slots = None
