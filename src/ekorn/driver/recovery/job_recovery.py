"""The starting point of each attempt: the checkpoint or savepoint that the user names, or the newest one of the job.

The claim mode decides about what the user names: NO_CLAIM leaves it alone; with CLAIM it belongs to the job, which
deletes it when enough checkpoints of its own have replaced it.
"""

from __future__ import annotations

import logging

from ekorn.checkpoint.checkpoint_choice import choose_checkpoint
from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.file_verification import verify_files
from ekorn.checkpoint.ownership import living_owner, possible_owner
from ekorn.checkpoint.restore_plan import apply_max_parallelism, plan_restore
from ekorn.checkpoint.restore_point import RestorePoint, resolve
from ekorn.checkpoint.savepoint_files import check_unused, delete_checkpoint
from ekorn.checkpoint.savepoint_notes import SavepointNotes
from ekorn.clock import SystemClock
from ekorn.config.options import JOB_ID
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.loop.interrupts import AttemptFailed
from ekorn.engine.protocol import Failure
from ekorn.errors import CheckpointError, CorruptFileError, RestoreError
from ekorn.graph.job_graph import JobGraph
from ekorn.state.snapshots import RestorePlan
from ekorn.storage.file_store import FileStore

__all__ = ["JobRecovery"]

_log = logging.getLogger(__name__)


class JobRecovery:
    """Finds what each attempt of one job starts from."""

    def __init__(self, settings: JobSettings, directory: CheckpointDirectory) -> None:
        self._settings = settings
        self._directory = directory
        self._notes = SavepointNotes(directory.files)
        self._unreadable: set[int] = set()  # checkpoints that a slot could not read
        self._initial: RestorePoint | None = None
        self._initial_is_own = False  # taken by this job, by this driver or an earlier one
        self._claimed: RestorePoint | None = None
        self._start_recorded = False  # in the checkpoint directory, before the first attempt is deployed

    def prepare(self, graph: JobGraph) -> JobGraph:
        """Find what the job starts from, and return the graph with the maximum parallelism that this state demands.

        Raises:
            RestoreError: What the user names does not exist, or is to be claimed and belongs to a running job; no
                checkpoint of the job can be read; the state does not fit the graph; or there is nothing to start from,
                and the job is only to continue.
            CorruptFileError: What the user names is damaged.
        """
        self._find_initial()
        if self._initial is None and self._settings.only_continue:
            raise RestoreError(
                f"the driver of job {self._settings.job_name!r} was lost, and the job has no checkpoint to continue "
                "from; submit its program again to start it from the beginning"
            )
        if self._initial is not None:
            graph = apply_max_parallelism(graph, self._initial.metadata)
            self.plan(graph, self._initial)  # state that does not fit is refused before anything runs
        return graph

    @property
    def origin(self) -> str | None:
        """What the job starts from, for people to read; None if it starts empty."""
        return None if self._initial is None else self._initial.label

    @property
    def origin_path(self) -> str | None:
        """The directory of what the job starts from; None if it starts empty."""
        return None if self._initial is None else self._initial.path

    @property
    def is_resumed(self) -> bool:
        """Whether the job starts from a checkpoint or savepoint that an earlier driver of it took."""
        return self._initial is not None and self._initial_is_own

    def recover(self, attempt: int) -> RestorePoint | None:
        """Return what an attempt starts from; None if it starts empty.

        Raises:
            AttemptFailed: A checkpoint exists, but it cannot be read; or the storage fails.
        """
        try:
            return self._origin_of(attempt)
        except (CheckpointError, RestoreError, OSError) as error:
            # The storage may answer again, also before the first attempt: the restart strategy decides.
            raise AttemptFailed(Failure(error)) from error

    def _origin_of(self, attempt: int) -> RestorePoint | None:
        if not self._start_recorded:
            own = self._initial if self._initial_is_own else None
            self._directory.start_from(own.metadata.checkpoint_id if own is not None else None)
            self._start_recorded = True
        if attempt > 0 or self._unreadable:
            try:
                found = self._newest()
            except RestoreError as error:
                if self._claimed is None:
                    raise
                _log.error("job %s starts from %s again: %s", self._settings.job_name, self._claimed.label, error)
                found = self._claimed
            if found is not None:
                return found
        return self._initial

    def plan(self, graph: JobGraph, origin: RestorePoint) -> RestorePlan:
        """Return what every subtask of the graph restores.

        Raises:
            RestoreError: State would be left behind, or does not fit.
        """
        return plan_restore(
            graph,
            origin.metadata,
            origin.files.address,
            allow_non_restored_state=self._settings.allow_non_restored_state,
            ignored_in_flight_id=self._settings.checkpoints.ignored_in_flight_checkpoint_id,
        )

    def refuse(self, origin: RestorePoint, error: BaseException) -> bool:
        """Exclude a damaged checkpoint that the slots could not restore; return whether it is damaged.

        Other errors exclude nothing. An `OSError` of the storage or of a connection must not cost a good checkpoint,
        and an exception of user code is never one of these classes, whatever file the user code was missing.
        """
        damaged = isinstance(error, (CorruptFileError, FileNotFoundError))
        if damaged:
            self._unreadable.add(origin.metadata.checkpoint_id)
        return damaged

    def highest_id(self) -> int:
        """Return the highest id among the checkpoints and savepoints of the job and the one that it starts from."""
        initial = [self._initial.metadata.checkpoint_id] if self._initial is not None else []
        return max((self._directory.highest_id(), *initial, *self._notes.addresses()))

    # --------------------------------------------------------------------------------------------- while the job runs

    def note_savepoint(self, checkpoint_id: int, savepoint: FileStore) -> None:
        """Let restarts go back to this savepoint rather than to an older checkpoint."""
        self._notes.add(checkpoint_id, savepoint)

    def checkpoints_retained(self, checkpoint_ids: tuple[int, ...]) -> None:
        """Drop what the retained checkpoints have replaced.

        Args:
            checkpoint_ids: The retained checkpoints of the job, oldest first.
        """
        self._notes.drop_below(checkpoint_ids[0])
        if len(checkpoint_ids) >= self._settings.checkpoints.num_retained:
            self._delete_claimed()

    def job_ended(self) -> None:
        """Delete what was claimed, together with the checkpoints of a job that has ended."""
        self._delete_claimed()
        self._notes.delete()

    # --------------------------------------------------------------------------------------------------------- details

    def _find_initial(self) -> None:
        """Choose the newest checkpoint that an earlier driver of the same job left, else what the user names.

        A job that was cancelled starts from what the user names, whatever it left.
        """
        left = None if self._directory.follows_cancellation else self._newest()
        path = self._settings.restore_path
        if left is not None:
            self._initial, self._initial_is_own = left, True
            if path is not None:
                _log.info("job %s continues from its own %s; %s is not used", self._settings.job_name, left.label, path)
                self._claim_again(path)
        elif path is not None:
            self._initial = self._named(path)
            self._initial_is_own = self._is_in_own_directory(self._initial)

    def _newest(self) -> RestorePoint | None:
        chosen = choose_checkpoint(self._directory, exclude=self._unreadable, savepoints=self._notes.addresses)
        return chosen.restore_point if chosen is not None else None

    def _named(self, path: str) -> RestorePoint:
        """Find what the user names, and claim it if the claim mode says so."""
        origin = resolve(path, self._directory.signing_key)
        verify_files(origin.files, origin.metadata)  # find damaged files, and files elsewhere, before anything runs
        if origin.metadata.kind == "checkpoint" and not self._is_in_own_directory(origin):
            self._warn_of_driver(origin)
        job, mode, checkpoint_id = self._settings.job_name, self._settings.claim_mode, origin.metadata.checkpoint_id
        _log.info("job %s starts from %s (%s)", job, origin.label, mode)
        if mode == "CLAIM":
            self._claim(origin)
        elif mode == "LEGACY":
            _log.warning("claim mode LEGACY behaves like NO_CLAIM: no checkpoint refers to files of another job")
        if checkpoint_id == self._settings.checkpoints.ignored_in_flight_checkpoint_id:
            if any(any(operator.in_flight) for operator in origin.metadata.operators):
                _log.warning("the records in flight of checkpoint %d are dropped, as the program asks", checkpoint_id)
            else:
                _log.info("checkpoint %d holds no records in flight that could be ignored", checkpoint_id)
        return origin

    def _is_in_own_directory(self, origin: RestorePoint) -> bool:
        return origin.files.url == self._directory.files.url

    def _warn_of_driver(self, origin: RestorePoint) -> None:
        """Warn if the driver of the checkpoint's job runs, or may run: a job of another id does not replace it."""
        owner = possible_owner(origin.files)
        if owner is None:
            return
        runs = "runs" if living_owner(origin.files, SystemClock().now_ms()) is not None else "may still run"
        job_id = origin.metadata.job_id
        _log.warning(
            "job %s starts from %s under an id of its own, and the driver of job %s %s (process %d on host %r): that "
            "driver is not replaced, both jobs emit results, and that driver may delete the checkpoint at any time; to "
            "continue job %s itself after its driver has died, start the program with its id (%s: %s), and to start "
            "another job from its state, take a savepoint",
            self._settings.job_name,
            origin.label,
            job_id,
            runs,
            owner.pid,
            owner.host,
            job_id,
            JOB_ID.key,
            job_id,
        )

    def _claim_again(self, path: str) -> None:
        """Claim what an earlier driver claimed: that driver may have ended before it could delete it."""
        if self._settings.claim_mode == "CLAIM":
            try:
                self._claim(resolve(path, self._directory.signing_key))
            except (CheckpointError, RestoreError, OSError) as error:
                _log.info("%s no longer has to be deleted: %s", path, error)

    def _claim(self, origin: RestorePoint) -> None:
        if self._is_in_own_directory(origin):  # the job owns its own directory anyway
            return
        try:
            check_unused(origin.files, origin.metadata)
        except CheckpointError as error:
            raise RestoreError(f"{origin.label} cannot be claimed; use the claim mode NO_CLAIM: {error}") from error
        self._claimed = origin

    def _delete_claimed(self) -> None:
        claimed, self._claimed = self._claimed, None
        if claimed is None:
            return
        try:
            delete_checkpoint(claimed.files, claimed.metadata)
            _log.info("%s was claimed by job %s and is deleted", claimed.label, self._settings.job_name)
        except (CheckpointError, RestoreError, OSError) as error:  # files left behind are no reason to fail the job
            _log.warning("%s was claimed, but could not be deleted: %s", claimed.label, error)
