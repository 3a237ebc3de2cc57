"""The ends of a job that take a checkpoint: a stop with a savepoint, and the final checkpoint after the last record."""

from __future__ import annotations

from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest
from ekorn.driver.loop.between_epochs import BetweenEpochs
from ekorn.driver.loop.epoch_tracker import EpochTracker, RunsEpochs
from ekorn.driver.loop.interrupts import AttemptFailed
from ekorn.driver.loop.job import Job
from ekorn.driver.output.job_output import JobOutput
from ekorn.engine.protocol import Failure
from ekorn.errors import CheckpointError

__all__ = ["FinalCheckpoint", "SavepointStop"]


class SavepointStop:
    """Ends one job with the savepoint that was requested: stopped as it is, or drained first."""

    def __init__(
        self,
        job: Job,
        epochs: RunsEpochs,
        *,
        tracker: EpochTracker,
        between: BetweenEpochs,
        checkpoints: JobCheckpoints,
    ) -> None:
        self._job = job
        self._epochs = epochs
        self._tracker = tracker
        self._between = between
        self._checkpoints = checkpoints

    def perform(self, request: SavepointRequest) -> bool:
        """Take the savepoint; return False if it could not be taken and the job keeps running.

        Raises:
            AttemptFailed: The job was drained and could not be saved, so it cannot keep running.
        """
        if request.then == "drain":
            self._drain()
        self._checkpoints.request_savepoint(request)
        while request.checkpoint_id is None and not request.failed:
            self._between.attend()  # an earlier savepoint may have to complete first
            self._epochs.run_last()
        self._between.wait_until(lambda: request.exists or request.failed)
        if request.exists:
            return True
        if request.then == "drain":
            raise AttemptFailed(Failure(CheckpointError("the job was drained, but its savepoint could not be taken")))
        self._between.stop = None
        return False

    def _drain(self) -> None:
        """End all input. Event time advances to its end, windows and timers fire, functions finish."""
        while not (epoch := self._epochs.run_draining()).finished:
            self._between.attend()
            # Iterations wait for records that are fed back.
            self._between.idle(self._job.settings.buffer_timeout_ms, epoch.acks)

    def fail(self, why: str) -> None:
        """Answer the request after a failure of the job: the job did not end with the savepoint."""
        request, self._between.stop = self._between.stop, None
        if request is not None:
            if request.then == "drain":
                self._tracker.take_failed_region()  # the input of every subtask has ended, so all of them restart
            request.job_did_not_end(f"the job failed: {why}")


class FinalCheckpoint:
    """Takes the last checkpoint of a job whose subtasks have finished. It commits the output of the last epochs."""

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

        A job without checkpoints releases its output at once.
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
