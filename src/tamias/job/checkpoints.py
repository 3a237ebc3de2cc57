"""A job's checkpoints, seen from the driver: where they lie, what is restored, and the coordinator's decisions done.

`checkpoint.coordinator` decides; this module owns the storage and performs, on the loop's thread, between epochs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tamias.checkpoint import coordinator as rules
from tamias.checkpoint.metadata import CheckpointMetadata, assemble
from tamias.checkpoint.ownership import Driver, Fenced
from tamias.checkpoint.recovery import choose_checkpoint
from tamias.checkpoint.restore import apply_max_parallelism, plan_restore
from tamias.checkpoint.retention import JobEnd, Retention, RetentionPolicy
from tamias.checkpoint.storage import CheckpointStorage, resolve
from tamias.common.clock import Clock
from tamias.common.job_status import JobStatus
from tamias.contracts.checkpointing import CheckpointingMode, ExternalizedCheckpointRetention
from tamias.engine.base import Engine, Failure, SnapshotWritten
from tamias.errors import CheckpointError, CorruptFileError, RestoreError
from tamias.faults import point
from tamias.graph.job_graph import JobGraph
from tamias.job.attempt import AttemptFailed, Restored
from tamias.job.handle import JobHandle
from tamias.job.settings import KEEP_ALL_FAILURES, JobSettings
from tamias.state.files import FileStore, MemoryFiles, open_files
from tamias.state.snapshots import RestorePlan

_log = logging.getLogger(__name__)

_POLICIES = {
    ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS: RetentionPolicy.NEVER_RETAIN,
    ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION: RetentionPolicy.RETAIN_ON_FAILURE,
    ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: RetentionPolicy.RETAIN_ON_CANCELLATION,
}


@dataclass(frozen=True)
class Carried:
    """The cut a checkpoint was taken at: its epoch, and how many records sources had read by its end."""

    epoch: int
    records_read: int


class JobCheckpoints:
    """The checkpoints of one job.

    `prepare` and `start` come once; then, with every attempt, `recover`, `begin_attempt` and, when it fails,
    `end_attempt`; at the end `tidy`.
    """

    def __init__(self, settings: JobSettings, handle: JobHandle, clock: Clock) -> None:
        self._settings = settings
        self._handle = handle
        self._clock = clock
        self._storage = self._open_storage()
        self._initial: Restored | None = None
        self._attempt = 0
        self._unreadable: set[int] = set()  # checkpoints that a slot could not read
        self._carried: dict[int, Carried] = {}
        self._newest: CheckpointMetadata | None = None
        self._bytes = self._taken_ms = 0  # of the newest checkpoint

    @property
    def storage(self) -> CheckpointStorage | None:
        """The job's directory; None when it takes no checkpoints."""
        return self._storage

    @property
    def take_back(self) -> bool:
        """Whether a failure takes back what was put out since the last checkpoint."""
        return self._storage is not None and self._settings.checkpoints.mode is CheckpointingMode.EXACTLY_ONCE

    # ---------------------------------------------------------------------------------------------------- beginning

    def prepare(self, graph: JobGraph) -> JobGraph:
        """Find what the job starts from; answers the graph as that state demands it. What does not fit is said here."""
        self._initial = self._initial_checkpoint()
        if self._initial is not None:
            graph = apply_max_parallelism(graph, self._initial.metadata)
            self._plan(graph, self._initial)
        self._graph = graph
        self._coordinator = self._make_coordinator()
        self._retention = Retention(self._settings.checkpoints.num_retained)
        if self._storage is not None:
            self._retention.adopt(_readable(self._storage))
        return graph

    def start(self, engine: Engine, on_completed: Callable[[Carried], None]) -> None:
        """The job is about to run.

        Args:
            engine: Where its subtasks live.
            on_completed: Called with the cut of each checkpoint that came to exist, before the subtasks hear of it.
        """
        self._engine = engine
        self._on_completed = on_completed

    def recover(self, attempt: int) -> Restored | None:
        """The newest checkpoint of this job that can be read, else what it started from."""
        self._attempt = attempt
        if self._storage is not None and (attempt > 0 or self._unreadable):
            try:
                found = choose_checkpoint(self._storage, exclude=self._unreadable)
            except (RestoreError, CheckpointError) as error:
                raise AttemptFailed(Failure(error)) from error
            if found is not None:
                return Restored(self._storage.files, found.metadata)
        if attempt == 0 and self._storage is not None:
            ours = self._initial is not None and self._initial.files is self._storage.files
            self._storage.start_from(self._initial.metadata.checkpoint_id if ours and self._initial else None)
        return self._initial

    def plan(self, restored: Restored) -> RestorePlan:
        """What every subtask starts from."""
        return self._plan(self._graph, restored)

    def refused(self, restored: Restored, error: BaseException) -> None:
        """The slots could not be deployed with it: when it is damaged, never try it again."""
        if _is_damage(error):
            self._unreadable.add(restored.metadata.checkpoint_id)
            self._retention.forget(restored.metadata.checkpoint_id)

    def begin_attempt(self, restored: Restored | None, plan: RestorePlan | None) -> None:
        """All subtasks are deployed."""
        finished = frozenset(k for k, s in plan.subtasks.items() if s.finished) if plan is not None else frozenset()
        restored_id = restored.metadata.checkpoint_id if restored is not None else None
        self._engine.events()  # of an attempt that is over
        self._perform(self._coordinator.handle(rules.JobStarted(self._clock.now_ms(), restored_id, finished)))

    def end_attempt(self) -> None:
        """The attempt has failed; what was under way is given up, without the slots."""
        self._perform(self._coordinator.handle(rules.JobFailed(self._clock.now_ms())), failing=True)

    # ------------------------------------------------------------------------------------------------ while it runs

    @property
    def pending_ids(self) -> frozenset[int]:
        """Checkpoints under way."""
        return self._coordinator.pending_ids

    @property
    def last_completed_id(self) -> int | None:
        """The newest checkpoint that this job completed."""
        return self._coordinator.last_completed_id

    def next_due_ms(self, now_ms: int) -> int | None:
        """When to look in again at the latest."""
        return self._coordinator.next_due_ms(now_ms)

    def request(self) -> None:
        """Let the next epoch carry a checkpoint, whatever the schedule says."""
        self._coordinator.handle(rules.CheckpointRequested(self._clock.now_ms(), forced=True))

    def start_due(self, cut: Carried) -> rules.StartCheckpoint | None:
        """The checkpoint that the epoch about to run carries, if one is due; `cut` as far as it is known."""
        actions = self._coordinator.handle(rules.EpochStarting(self._clock.now_ms()))
        start = next((a for a in actions if isinstance(a, rules.StartCheckpoint)), None)
        if start is not None:
            self._carried[start.checkpoint_id] = cut
        self._perform([a for a in actions if a is not start])
        return start

    def barrier_passed(self, checkpoint_id: int) -> None:
        """The epoch that carried it is over."""
        self._perform(self._coordinator.handle(rules.BarrierPassed(checkpoint_id, self._clock.now_ms())))

    def taken_at(self, checkpoint_id: int, cut: Carried) -> None:
        """Where it was taken, now that its epoch is over."""
        if checkpoint_id in self._carried:
            self._carried[checkpoint_id] = cut

    def attend(self) -> None:
        """See to what the slots reported, to timeouts, and to the claim on the directory."""
        for event in self._engine.events():
            if event.attempt != self._attempt:
                continue
            now_ms = self._clock.now_ms()
            if isinstance(event, SnapshotWritten):
                happened: rules.Event = rules.SnapshotDone(event.checkpoint_id, event.snapshot, now_ms)
            else:
                happened = rules.SnapshotFailed(event.checkpoint_id, event.vertex, event.subtask, event.why, now_ms)
            self._perform(self._coordinator.handle(happened))
        self._perform(self._coordinator.handle(rules.Tick(self._clock.now_ms())))
        if self._storage is not None:
            self._storage.renew(self._clock.now_ms())

    def _perform(self, actions: list[rules.Action], *, failing: bool = False) -> None:
        """Do what the coordinator decided, in its order; while failing, without the slots."""
        for action in actions:
            match action:
                case rules.WriteMetadata():
                    self._perform(self._coordinator.handle(self._write_metadata(action)))
                case rules.NotifyComplete(checkpoint_id):
                    self._completed(checkpoint_id)
                case rules.NotifyAborted(checkpoint_id, why):
                    level = logging.INFO if failing else logging.WARNING
                    _log.log(level, "checkpoint %d of %s was given up: %s", checkpoint_id, self._settings.job_name, why)
                    progress = self._handle.progress()
                    self._handle.update(replace(progress, checkpoints_failed=progress.checkpoints_failed + 1))
                    if not failing:
                        _notified(self._engine.notify_aborted(checkpoint_id))
                case rules.DiscardFiles():
                    self._discard(action)
                case rules.FailJob(why):
                    raise AttemptFailed(Failure(CheckpointError(why)))
                case rules.StartCheckpoint():
                    raise AssertionError("only the start of an epoch starts a checkpoint")

    def _write_metadata(self, action: rules.WriteMetadata) -> rules.MetadataWritten | rules.MetadataFailed:
        assert self._storage is not None
        point("before-metadata")
        metadata = assemble(
            self._graph,
            job_id=str(self._settings.job_id),
            checkpoint_id=action.checkpoint_id,
            timestamp_ms=action.triggered_ms,
            snapshots=action.snapshots,
            finished=action.finished,
        )
        try:
            self._newest = self._storage.complete(metadata)
        except Fenced as error:
            raise AttemptFailed(Failure(error)) from error
        except (OSError, CheckpointError) as error:
            return rules.MetadataFailed(action.checkpoint_id, str(error), self._clock.now_ms())
        point("after-metadata")
        self._bytes = sum(s.bytes_written for s in action.snapshots)
        self._taken_ms = self._clock.now_ms() - action.triggered_ms
        return rules.MetadataWritten(action.checkpoint_id, self._clock.now_ms())

    def _completed(self, checkpoint_id: int) -> None:
        assert self._storage is not None and self._newest is not None
        cut = self._carried.pop(checkpoint_id)
        self._carried = {c: e for c, e in self._carried.items() if c > checkpoint_id}
        progress = self._handle.progress()
        self._handle.update(
            replace(
                progress,
                checkpoints_completed=progress.checkpoints_completed + 1,
                last_checkpoint_id=checkpoint_id,
                last_checkpoint_bytes=self._bytes,
                last_checkpoint_ms=self._taken_ms,
                last_checkpoint_path=f"{self._storage.directory}/chk-{checkpoint_id}",
            )
        )
        try:
            unneeded = self._retention.completed(
                self._newest,
                pending=self._coordinator.pending_ids,
                listing=self._storage.listing(),
                newest_id=self._coordinator.newest_id,
            )
            for old in unneeded.checkpoints:
                self._storage.discard(old)
            self._storage.delete_files(unneeded.files)
        except OSError as error:  # the checkpoint exists; what could not be deleted is found again next time
            _log.warning("old checkpoints of job %s could not be deleted: %s", self._settings.job_name, error)
        self._on_completed(cut)
        _notified(self._engine.notify_completed(checkpoint_id))
        point("notified")

    def _discard(self, action: rules.DiscardFiles) -> None:
        assert self._storage is not None
        try:
            if action.directory:
                self._storage.discard(action.checkpoint_id, action.paths)
            else:
                self._storage.delete_files(action.paths)
        except (OSError, Fenced) as error:  # leftovers go with a later checkpoint
            _log.warning("files of checkpoint %d could not be deleted: %s", action.checkpoint_id, error)

    # ---------------------------------------------------------------------------------------------------- the end

    def release(self) -> None:
        """Nothing was begun: the next driver need not wait."""
        if self._storage is not None:
            self._storage.release()

    def tidy(self, status: JobStatus) -> None:
        """Keep or delete the checkpoints of a job that has ended, as it asked."""
        if self._storage is None:
            return
        ends: dict[JobStatus, JobEnd] = {JobStatus.FINISHED: "FINISHED", JobStatus.CANCELED: "CANCELED"}
        try:
            if _POLICIES[self._settings.checkpoints.retention].keeps(ends.get(status, "FAILED")):
                self._storage.release()
            else:
                self._storage.delete_everything()
        except (OSError, Fenced) as error:
            _log.warning("checkpoints of job %s were left behind: %s", self._settings.job_name, error)

    # ------------------------------------------------------------------------------------------------------- details

    def _open_storage(self) -> CheckpointStorage | None:
        checkpoints = self._settings.checkpoints
        if not checkpoints.enabled:
            return None
        in_files = checkpoints.directory is not None and checkpoints.storage == "filesystem"
        store: FileStore = open_files(checkpoints.directory) if in_files and checkpoints.directory else MemoryFiles()
        storage = CheckpointStorage(store, str(self._settings.job_id), create_subdir=checkpoints.create_subdir)
        storage.initialise(Driver.this_process(), self._clock.now_ms())
        return storage

    def _initial_checkpoint(self) -> Restored | None:
        """What the job was asked to start from, or what an earlier driver of the same job left."""
        if self._storage is not None:
            found = choose_checkpoint(self._storage)
            if found is not None:
                return Restored(self._storage.files, found.metadata)
        if self._settings.restore_path is not None:
            return Restored(*resolve(self._settings.restore_path))
        return None

    def _plan(self, graph: JobGraph, restored: Restored) -> RestorePlan:
        return plan_restore(
            graph,
            restored.metadata,
            restored.files.url,
            allow_non_restored_state=self._settings.allow_non_restored_state,
        )

    def _make_coordinator(self) -> rules.CheckpointCoordinator:
        checkpoints = self._settings.checkpoints
        tolerable = checkpoints.tolerable_failures
        settings = rules.CheckpointSettings(
            interval_ms=checkpoints.interval_ms,
            timeout_ms=checkpoints.timeout_ms,
            min_pause_ms=checkpoints.min_pause_ms,
            max_concurrent=checkpoints.max_concurrent,
            tolerable_failures=None if tolerable >= KEEP_ALL_FAILURES else tolerable,
            after_tasks_finish=checkpoints.after_tasks_finish,
        )
        subtasks = frozenset((v.id, i) for v in self._graph.vertices for i in range(v.parallelism))
        restored = self._initial.metadata.checkpoint_id if self._initial is not None else 0
        first_id = max(restored, self._storage.highest_id() if self._storage is not None else 0) + 1
        return rules.CheckpointCoordinator(subtasks, settings, first_id=first_id)


def _notified(failure: Failure | None) -> None:
    if failure is not None:
        raise AttemptFailed(failure)


def _is_damage(error: BaseException) -> bool:
    """Whether restoring failed because a file of the checkpoint is damaged or gone.

    Not any `OSError`: a hiccup of the storage or of a connection must not cost a good checkpoint. And nothing that
    user code raised, whatever file it was missing.
    """
    return isinstance(error, (CorruptFileError, FileNotFoundError))


def _readable(storage: CheckpointStorage) -> Iterator[CheckpointMetadata]:
    """The checkpoints that an earlier driver of the job left."""
    for checkpoint_id in storage.completed_ids():
        try:
            yield storage.load(checkpoint_id)
        except (CheckpointError, OSError) as error:
            _log.warning("checkpoint %d of %s cannot be read: %s", checkpoint_id, storage.directory, error)
