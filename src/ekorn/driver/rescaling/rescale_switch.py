"""Ends an attempt with a checkpoint that the next attempt restores at another parallelism."""

from __future__ import annotations

import tempfile

from ekorn.driver.checkpoints.job_checkpoints import JobCheckpoints
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest
from ekorn.driver.loop.between_epochs import BetweenEpochs
from ekorn.driver.loop.epoch_tracker import RunsEpochs
from ekorn.driver.loop.interrupts import raise_failure
from ekorn.driver.loop.job import Job
from ekorn.driver.rescaling.job_rescaling import Rescaling
from ekorn.engine.protocol import Engine
from ekorn.faults import point
from ekorn.operators.epoch import SubtaskOrder
from ekorn.storage.scratch_folders import LocalFolder

__all__ = ["RescaleSwitch"]


class RescaleSwitch:
    """Ends the attempt of one job before each change of its parallelism."""

    def __init__(
        self,
        job: Job,
        engine: Engine,
        *,
        epochs: RunsEpochs,
        between: BetweenEpochs,
        checkpoints: JobCheckpoints,
        rescaling: Rescaling,
    ) -> None:
        self._job = job
        self._engine = engine
        self._epochs = epochs
        self._between = between
        self._checkpoints = checkpoints
        self._rescaling = rescaling
        self._stands_since = 0.0
        self._folders: list[LocalFolder] = []  # each with a savepoint of a job that names no directory for savepoints

    def perform(self) -> bool:
        """Take the last checkpoint at the old parallelism and close the subtasks.

        Returns:
            False if the checkpoint could not be taken: the rescale is refused then, and the job goes on.
        """
        self._between.wait_until(lambda: not self._checkpoints.pending_ids)
        if not self._rescaling.is_ready:  # a savepoint that has just completed ends the job instead
            return False
        point("driver-rescale")
        in_checkpoints = self._job.settings.checkpoints.enabled and self._rescaling.directory is None
        path = self._checkpoint() if in_checkpoints else self._savepoint()
        if path is None:
            return False
        # A savepoint that a user has requested may still be in flight.
        self._between.wait_until(lambda: not self._checkpoints.pending_ids)
        point("driver-switch")
        raise_failure(self._engine.close_subtasks())
        self._rescaling.begin(path, self._stands_since)
        return True

    def close(self) -> None:
        """Delete the savepoints of rescales at the end of the job."""
        for folder in self._folders:
            folder.close()

    def _checkpoint(self) -> str | None:
        self._checkpoints.request()
        while (order := self._run_last()).checkpoint_id is None or order.savepoint is not None:
            self._between.wait_until(lambda: not self._checkpoints.pending_ids)  # a requested savepoint came first
            if self._checkpoints.refusal is not None:
                self._rescaling.refuse(self._checkpoints.refusal)
                return None
        wanted = order.checkpoint_id
        self._between.wait_until(lambda: wanted not in self._checkpoints.pending_ids)
        if self._checkpoints.last_completed_id != wanted:
            failed = self._job.statistics.checkpoints.find(wanted)
            why = "" if failed is None or failed.why is None else f": {failed.why}"
            self._rescaling.refuse(f"checkpoint {wanted} could not be completed{why}")
            return None
        return self._job.view.progress().last_checkpoint_path

    def _savepoint(self) -> str | None:
        """Take a savepoint: the job takes no checkpoints, or the request names a directory."""
        named = self._rescaling.directory or self._job.settings.savepoint_directory
        if named is not None:
            return self._savepoint_in(named)
        if not self._engine.shares_disk:
            self._rescaling.refuse(
                "it takes no checkpoints, and its slots are on other machines; set a directory for savepoints that all "
                "machines can access (execution.checkpointing.savepoint-dir)"
            )
            return None
        try:
            folder = LocalFolder(tempfile.gettempdir(), "ekorn-rescale-")
        except OSError as error:
            self._rescaling.refuse(f"there is no directory for its savepoint: {error}")
            return None
        self._folders.append(folder)
        path = self._savepoint_in(folder.path)  # if it raises, the savepoint may exist
        if path is None:
            unneeded = [self._folders.pop()]
        else:
            unneeded, self._folders = self._folders[:-1], [folder]  # a restart restores the newest one alone
        for each in unneeded:
            each.close()
        return path

    def _savepoint_in(self, directory: str) -> str | None:
        request = SavepointRequest(directory, native=True, restarts=True)
        if self._checkpoints.admit(request):
            self._checkpoints.request_savepoint(request)
            while request.checkpoint_id is None and not request.failed:
                self._between.attend()
                self._run_last()
            self._between.wait_until(lambda: request.exists or request.failed)
        if not request.exists:
            self._rescaling.refuse(str(request.future.exception()))
            return None
        return request.path

    def _run_last(self) -> SubtaskOrder:
        """Run an epoch after which nothing is read or emitted before the next one."""
        order = self._epochs.run_last().order
        self._stands_since = self._job.clock.monotonic()
        return order
