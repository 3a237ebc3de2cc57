"""The checkpoint after the last record: it commits the transactional output of the last epochs."""

from __future__ import annotations

from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.loop.between_epochs import BetweenEpochs
from ekorn.driver.loop.epoch_tracker import EpochTracker, RunsEpochs
from ekorn.driver.loop.job import Job
from ekorn.driver.output.job_output import JobOutput

__all__ = ["FinalCheckpoint"]


class FinalCheckpoint:
    """Takes the last checkpoint of a job whose subtasks have all finished."""

    def __init__(
        self,
        job: Job,
        epochs: RunsEpochs,
        *,
        tracker: EpochTracker,
        between: BetweenEpochs,
        checkpoints: JobCheckpoints,
        output: JobOutput,
    ) -> None:
        self._job = job
        self._epochs = epochs
        self._tracker = tracker
        self._between = between
        self._checkpoints = checkpoints
        self._output = output

    def take(self) -> None:
        """Take the checkpoint and wait for it. If it fails and failures are tolerated, try again after an interval.

        A job without checkpoints just hands over its output.
        """
        self._between.wait_until(lambda: not self._checkpoints.pending_ids)  # those of the epochs before
        settings = self._job.settings.checkpoints
        if settings.interval_ms is None or not settings.after_tasks_finish:
            self._output.release(self._tracker.next_number)
            return
        while not self._take_once():
            self._between.wait_ms(settings.interval_ms)

    def _take_once(self) -> bool:
        self._checkpoints.request()
        while (order := self._epochs.run().order).checkpoint_id is None or order.savepoint is not None:
            self._between.wait_until(lambda: not self._checkpoints.pending_ids)  # a requested savepoint came first
        wanted = order.checkpoint_id
        self._between.wait_until(lambda: wanted not in self._checkpoints.pending_ids)
        return self._checkpoints.last_completed_id == wanted
