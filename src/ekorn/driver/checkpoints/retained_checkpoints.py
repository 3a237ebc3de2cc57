"""Keeps the newest checkpoints of a job and deletes what no checkpoint needs, while the job runs and at its end."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Set

from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.metadata import CheckpointMetadata
from ekorn.checkpoint.retention import CheckpointRetentionPolicy, Deletions, JobEnd, Retention
from ekorn.config.choices import ExternalizedCheckpointRetention
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.recovery.job_recovery import JobRecovery
from ekorn.errors import CheckpointError, Fenced
from ekorn.functions.results.job_status import JobStatus

__all__ = ["RetainedCheckpoints"]

_log = logging.getLogger(__name__)

_POLICIES = {
    ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS: (
        CheckpointRetentionPolicy.NEVER_RETAIN_AFTER_TERMINATION
    ),
    ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION: CheckpointRetentionPolicy.RETAIN_ON_FAILURE,
    ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: CheckpointRetentionPolicy.RETAIN_ON_CANCELLATION,
}
_ENDS: dict[JobStatus, JobEnd] = {JobStatus.FINISHED: "FINISHED", JobStatus.CANCELED: "CANCELED"}


class RetainedCheckpoints:
    """The completed checkpoints in a job's directory. `retention.py` decides; this class deletes."""

    def __init__(self, settings: JobSettings, directory: CheckpointDirectory, recovery: JobRecovery) -> None:
        """Adopt the checkpoints that an earlier driver of the job left."""
        self._settings = settings
        self._directory = directory
        self._recovery = recovery
        self._retention = Retention(settings.checkpoints.num_retained)
        adopted = list(_readable(directory))
        self._retention.adopt(adopted)
        self.newest = max(adopted, key=lambda metadata: metadata.checkpoint_id, default=None)  # None: there is none

    def add(self, metadata: CheckpointMetadata, *, pending: Set[int], newest_id: int) -> None:
        """Retain a checkpoint that has just been completed, and delete what it replaces.

        Args:
            metadata: The checkpoint.
            pending: The checkpoints in flight.
            newest_id: The newest checkpoint begun.
        """
        self.newest = metadata
        try:
            listing = self._directory.listing()
            unneeded = self._retention.completed(metadata, pending=pending, listing=listing, newest_id=newest_id)
            self._delete(unneeded)
            self._recovery.checkpoints_retained(self._retention.retained_ids)
        except OSError as error:  # the checkpoint exists; what could not be deleted is found again next time
            _log.warning("old checkpoints of job %s could not be deleted: %s", self._settings.job_name, error)

    @property
    def retained_ids(self) -> Set[int]:
        """The completed checkpoints whose files are kept."""
        return frozenset(self._retention.retained_ids)

    def forget(self, checkpoint_id: int) -> None:
        """Stop counting a checkpoint that turned out to be unreadable."""
        self._retention.forget(checkpoint_id)

    def discard(self, checkpoint_id: int, paths: tuple[str, ...], *, whole: bool) -> None:
        """Delete the files of an aborted checkpoint, and with `whole` its directory too."""
        try:
            if whole:
                self._directory.discard(checkpoint_id, paths)
            else:
                self._directory.delete_files(paths)
        except (OSError, Fenced) as error:  # leftovers are deleted with a later checkpoint
            _log.warning("files of checkpoint %d could not be deleted: %s", checkpoint_id, error)

    def job_ended(self, status: JobStatus, *, first_id: int) -> None:
        """Keep or delete the checkpoints of a job that has ended, as its retention policy says.

        A job that continued and failed before its next checkpoint keeps those that it continued from.

        Args:
            status: How the job ended.
            first_id: The first checkpoint that this driver could begin.
        """
        policy = _POLICIES[self._settings.checkpoints.retention]
        keep = status is JobStatus.SUSPENDED or policy.keeps(_ENDS.get(status, "FAILED"))
        keep = keep or (status is JobStatus.FAILED and 0 < max(self.retained_ids, default=0) < first_id)
        try:
            if keep:
                if status is not JobStatus.FAILED:  # after a failure everything is kept for inspection
                    self._delete_leftovers(first_id)
                self._directory.release()
            else:
                self._directory.check_owner()
                self._recovery.job_ended()
                self._directory.delete_everything(finished=status is JobStatus.FINISHED)
                for checkpoint_id in self.retained_ids:
                    self._retention.forget(checkpoint_id)
        except (OSError, Fenced) as error:
            _log.warning("checkpoints of job %s could not be deleted: %s", self._settings.job_name, error)

    def _delete_leftovers(self, first_id: int) -> None:
        completed = frozenset(self._directory.completed_ids())
        self._delete(self._retention.leftovers(self._directory.listing(), completed=completed, first_id=first_id))

    def _delete(self, unneeded: Deletions) -> None:
        for checkpoint_id in unneeded.checkpoints:
            self._directory.discard(checkpoint_id)
        self._directory.delete_files(unneeded.files)


def _readable(directory: CheckpointDirectory) -> Iterator[CheckpointMetadata]:
    for checkpoint_id in directory.completed_ids():
        try:
            yield directory.load(checkpoint_id)
        except (CheckpointError, OSError) as error:
            _log.warning("checkpoint %d of %s cannot be read: %s", checkpoint_id, directory.url, error)
