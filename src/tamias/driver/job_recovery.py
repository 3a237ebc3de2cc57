"""What the attempts of a job start from: a path that the user names, or the newest checkpoint that can be read.

Also looks after what the user named: whether it is left alone (`NO_CLAIM`) or belongs to the job now and goes when the
job's own checkpoints have taken its place (`CLAIM`).
"""

from __future__ import annotations

import logging

from tamias.checkpoint.checkpoint_choice import choose_checkpoint, verify_files
from tamias.checkpoint.checkpoint_directory import CheckpointDirectory, resolve
from tamias.checkpoint.savepoint_files import check_unused, delete_checkpoint
from tamias.checkpoint.savepoint_notes import SavepointNotes
from tamias.config.job_settings import JobSettings
from tamias.driver.attempt import AttemptFailed, Restored
from tamias.engine.protocol import Failure
from tamias.errors import CheckpointError, CorruptFileError, RestoreError
from tamias.storage.file_store import FileStore

__all__ = ["JobRecovery"]

_log = logging.getLogger(__name__)


class JobRecovery:
    """Finds what each attempt of one job starts from."""

    def __init__(self, settings: JobSettings, storage: CheckpointDirectory) -> None:
        self._settings = settings
        self._storage = storage
        self._notes = SavepointNotes(storage.files)
        self._unreadable: set[int] = set()  # checkpoints that a slot could not read
        self._initial: Restored | None = None
        self._claimed: Restored | None = None

    def find_initial(self) -> Restored | None:
        """What the job starts from: what an earlier driver of the same job left, else what the user names.

        Raises:
            RestoreError: What the user names is not there, or is to be claimed and belongs to a job that runs, or none
                of what was left can be read.
            CorruptFileError: What the user names is damaged.
        """
        left = self._newest()
        path = self._settings.restore_path
        if path is None:
            self._initial = left
        elif left is None:
            self._initial = self._named(path)
        else:
            _log.info(
                "job %s goes on from %s, which it left itself; %s is not used",
                self._settings.job_name,
                left.label,
                path,
            )
            self._initial = left
            self._claim_what_is_left_of(path)
        return self._initial

    def highest_id(self) -> int:
        """The highest number that any checkpoint or savepoint of the job, or what it starts from, has had."""
        initial = self._initial.metadata.checkpoint_id if self._initial is not None else 0
        return max(initial, self._storage.highest_id(), *self._notes.addresses())

    def recover(self, attempt: int) -> Restored | None:
        """What an attempt starts from.

        Raises:
            AttemptFailed: There should be something, but it cannot be read.
        """
        if attempt > 0 or self._unreadable:
            try:
                found = self._newest()
            except RestoreError as error:
                if self._claimed is None:
                    raise AttemptFailed(Failure(error)) from error
                _log.error("job %s starts from %s again: %s", self._settings.job_name, self._claimed.label, error)
                found = self._claimed
            except CheckpointError as error:
                raise AttemptFailed(Failure(error)) from error
            if found is not None:
                return found
        if attempt == 0:
            ours = self._initial is not None and self._initial.ours
            self._storage.start_from(self._initial.metadata.checkpoint_id if ours and self._initial else None)
        return self._initial

    def refused(self, restored: Restored, error: BaseException) -> bool:
        """The slots could not start from it; answers whether that is because it is damaged: then it is not tried again.

        Not with any `OSError`: a hiccup of the storage or of a connection must not cost a good checkpoint. And nothing
        that user code raised, whatever file it was missing.
        """
        damaged = isinstance(error, (CorruptFileError, FileNotFoundError))
        if damaged:
            self._unreadable.add(restored.metadata.checkpoint_id)
        return damaged

    # --------------------------------------------------------------------------------------------- while the job runs

    def note_savepoint(self, checkpoint_id: int, savepoint: FileStore) -> None:
        """From now on a restart goes back to this savepoint rather than to an older checkpoint."""
        self._notes.add(checkpoint_id, savepoint)

    def retained(self, checkpoint_ids: tuple[int, ...]) -> None:
        """These checkpoints of the job are kept now, oldest first: what they take the place of is needed no more."""
        self._notes.drop_below(checkpoint_ids[0])
        if len(checkpoint_ids) >= max(1, self._settings.checkpoints.num_retained):
            self._drop_claimed()

    def job_ended(self) -> None:
        """The job is over and its checkpoints go: with them what was claimed."""
        self._drop_claimed()
        self._notes.delete()

    # --------------------------------------------------------------------------------------------------------- details

    def _newest(self) -> Restored | None:
        found = choose_checkpoint(self._storage, exclude=self._unreadable, savepoints=self._notes.addresses)
        return Restored(found.files, found.metadata, ours=True) if found is not None else None

    def _named(self, path: str) -> Restored:
        restored = Restored(*resolve(path))
        verify_files(restored.files, restored.metadata)  # before anything runs: what is damaged, or leads elsewhere
        job, mode, checkpoint_id = self._settings.job_name, self._settings.claim_mode, restored.metadata.checkpoint_id
        _log.info("job %s starts from %s (%s)", job, restored.label, mode)
        if mode == "CLAIM":
            self._claim(restored)
        elif mode == "LEGACY":
            _log.warning("claim mode LEGACY does what NO_CLAIM does: no checkpoint here refers to files of another job")
        if checkpoint_id == self._settings.checkpoints.ignored_in_flight_checkpoint_id:
            _log.info("checkpoint %d holds no records in flight that could be ignored", checkpoint_id)
        return restored

    def _claim_what_is_left_of(self, path: str) -> None:
        """An earlier driver claimed it, and may have ended before its time came."""
        if self._settings.claim_mode == "CLAIM":
            try:
                self._claim(Restored(*resolve(path)))
            except (CheckpointError, RestoreError, OSError) as error:
                _log.info("%s need not be deleted any more: %s", path, error)

    def _claim(self, restored: Restored) -> None:
        if restored.files.url == self._storage.files.url:  # what lies in the job's own directory is its own anyway
            return
        try:
            check_unused(restored.files, restored.metadata)
        except CheckpointError as error:
            raise RestoreError(f"{restored.label} cannot be claimed; use the claim mode NO_CLAIM: {error}") from error
        self._claimed = restored

    def _drop_claimed(self) -> None:
        claimed, self._claimed = self._claimed, None
        if claimed is None:
            return
        try:
            delete_checkpoint(claimed.files, claimed.metadata)
            _log.info("%s was claimed by job %s and is deleted", claimed.label, self._settings.job_name)
        except (CheckpointError, OSError) as error:  # rubbish, but not worth the job
            _log.warning("%s was claimed, but could not be deleted: %s", claimed.label, error)
