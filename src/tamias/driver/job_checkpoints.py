"""A job's checkpoints and savepoints, seen from the driver: what the coordinator decides is done here.

`checkpoint.coordinator` decides; this module performs, on the loop's thread, between epochs. What attempts start from
is found in `job.recovery`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tamias.checkpoint import coordinator as rules
from tamias.checkpoint.checkpoint_directory import CheckpointDirectory
from tamias.checkpoint.metadata import CheckpointMetadata, assemble
from tamias.checkpoint.ownership import Driver
from tamias.checkpoint.restore_plan import apply_max_parallelism, plan_restore, settled_subtasks
from tamias.checkpoint.retention import Deletions, JobEnd, Retention, RetentionPolicy
from tamias.clock import Clock, SteadyClock
from tamias.config.checkpoint_settings import KEEP_ALL_FAILURES
from tamias.config.checkpointing import CheckpointingMode, ExternalizedCheckpointRetention
from tamias.config.job_settings import JobSettings
from tamias.driver.attempt import AttemptFailed, Restored
from tamias.driver.job_handle import JobHandle
from tamias.driver.job_recovery import JobRecovery
from tamias.driver.savepoint_requests import SavepointRequest, SavepointRequests
from tamias.engine.protocol import Engine, Failure
from tamias.errors import CheckpointError, ConfigurationError, Fenced
from tamias.faults import point
from tamias.functions.job_status import JobStatus
from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph
from tamias.operators.epoch import SavepointOrder
from tamias.slot.slot_events import SnapshotWritten
from tamias.state.snapshots import RestorePlan
from tamias.storage.file_store import FileStore, open_files
from tamias.storage.memory import MemoryFiles

_log = logging.getLogger(__name__)

_PATIENCE = 0.1  # of the interval
_LONGEST_PATIENCE_MS = 100.0
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


@dataclass(frozen=True)
class Due:
    """The checkpoint, or savepoint, that an epoch is to carry, and the subtasks that take part."""

    checkpoint_id: int
    participants: frozenset[tuple[int, int]]
    savepoint: SavepointOrder | None


class JobCheckpoints:
    """The checkpoints of one job.

    `prepare` and `start` come once; then, with every attempt, `recover`, `begin_attempt` and, when it fails,
    `end_attempt`; at the end `tidy` and `answer_requests`.
    """

    def __init__(self, settings: JobSettings, handle: JobHandle, clock: Clock) -> None:
        self._settings = settings
        self._handle = handle
        self._clock = clock
        self._steady = SteadyClock(clock)  # for the rules: intervals and timeouts do not depend on the time of day
        self._storage = self._open_storage()
        self._recovery = JobRecovery(settings, self._storage)
        self._attempt = 0
        self._carried: dict[int, Carried] = {}
        self._newest: CheckpointMetadata | None = None
        self._bytes = self._taken_ms = 0  # of the newest checkpoint
        self._savepoints = SavepointRequests(str(settings.job_id))
        self._cuts: dict[int, Carried] = {}  # of savepoints that a restart may go back to

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are taken by themselves; savepoints may be asked for all the same."""
        return self._settings.checkpoints.enabled

    @property
    def term(self) -> int:
        """The number of this driver among those of the job."""
        return self._storage.term

    @property
    def address(self) -> str | None:
        """Where slots write checkpoints; None when their state travels to the driver."""
        in_files = self.enabled and self._settings.checkpoints.storage == "filesystem"
        return self._storage.address if in_files else None

    @property
    def take_back(self) -> bool:
        """Whether a failure takes back what was put out since the last checkpoint."""
        return self.enabled and self._settings.checkpoints.mode is CheckpointingMode.EXACTLY_ONCE

    # ---------------------------------------------------------------------------------------------------- beginning

    def prepare(self, graph: JobGraph) -> JobGraph:
        """Find what the job starts from; answers the graph as that state demands it. What does not fit is said here."""
        initial = self._recovery.find_initial()
        if initial is not None:
            graph = apply_max_parallelism(graph, initial.metadata)
            self._plan(graph, initial)
        self._graph = graph
        self._coordinator = self._make_coordinator()
        self._retention = Retention(self._settings.checkpoints.num_retained)
        self._retention.adopt(_readable(self._storage))
        if self._settings.checkpoints.unaligned:
            _log.info(
                "job %s asks for unaligned checkpoints: at the end of an epoch no record is in flight, so there is "
                "nothing to align and nothing to store; checkpoints are taken as always",
                self._settings.job_name,
            )
        return graph

    def start(self, engine: Engine, on_completed: Callable[[Carried], None]) -> None:
        """The job is about to run.

        Args:
            engine: Where its subtasks live.
            on_completed: Called with the cut of each checkpoint that came to exist, before the subtasks hear of it.

        Raises:
            ConfigurationError: The checkpoint directory cannot be seen from there.
        """
        if self.address is not None and self._storage.files.in_process and not engine.in_process:
            raise ConfigurationError(
                f"{self._storage.directory!r} is in the memory of this process, where slots cannot write; give a "
                "directory that every machine sees (execution.checkpointing.dir)"
            )
        self._engine = engine
        self._on_completed = on_completed

    def recover(self, attempt: int) -> Restored | None:
        """What an attempt starts from: the newest checkpoint of this job that can be read, else its first origin."""
        self._attempt = attempt
        return self._recovery.recover(attempt)

    def plan(self, restored: Restored) -> RestorePlan:
        """What every subtask starts from."""
        return self._plan(self._graph, restored)

    def refused(self, restored: Restored, error: BaseException) -> None:
        """The slots could not be deployed with it: when it is damaged, never try it again."""
        if self._recovery.refused(restored, error):
            self._retention.forget(restored.metadata.checkpoint_id)

    def begin_attempt(self, restored: Restored | None, plan: RestorePlan | None) -> None:
        """All subtasks are deployed."""
        finished = settled_subtasks(plan) if plan is not None else frozenset()
        restored_id = restored.metadata.checkpoint_id if restored is not None else None
        self._engine.events()  # of an attempt that is over
        if restored_id in self._cuts:  # nobody heard of that savepoint, but now what was put out before it stands
            self._on_completed(self._cuts[restored_id])
        self._perform(self._coordinator.handle(rules.JobStarted(self._steady.now_ms(), restored_id, finished)))

    def end_attempt(self, why: str) -> None:
        """The attempt has failed; what was under way is given up, without the slots."""
        self._perform(self._coordinator.handle(rules.JobFailed(self._steady.now_ms(), why)), failing=True)

    # ------------------------------------------------------------------------------------------------ while it runs

    @property
    def pending_ids(self) -> frozenset[int]:
        """Checkpoints and savepoints under way."""
        return self._coordinator.pending_ids

    @property
    def last_completed_id(self) -> int | None:
        """The newest checkpoint that this job completed."""
        return self._coordinator.last_completed_id

    def next_due_ms(self, now_ms: int) -> int | None:
        """When to look in again at the latest."""
        return self._coordinator.next_due_ms(now_ms)

    def patience_ms(self) -> float:
        """How long the next epoch should wait for the checkpoint that the last one carried; 0 when it should not.

        Epochs may be as long as the interval. A checkpoint that is due then finds the one before still being written,
        and only every second epoch would carry one. If they are written in no time, it is better to wait for it.
        """
        interval_ms = self._settings.checkpoints.interval_ms
        if interval_ms is None or not self._coordinator.is_held_back(self._steady.now_ms()):
            return 0.0
        patience_ms = min(interval_ms * _PATIENCE, _LONGEST_PATIENCE_MS)
        last = next((s for s in reversed(self._coordinator.history) if s.completed), None)
        return patience_ms if last is not None and last.longest_async_ms <= patience_ms / 2 else 0.0

    def request(self) -> None:
        """Let the next epoch carry a checkpoint, whatever the schedule says."""
        self._perform(self._coordinator.handle(rules.CheckpointRequested(self._steady.now_ms(), forced=True)))

    def admit(self, request: SavepointRequest) -> bool:
        """Make the directory of a savepoint; False when there can be none, and whoever asked has heard why."""
        return self._savepoints.admit(request, self._coordinator.refusal)

    def request_savepoint(self, request: SavepointRequest) -> None:
        """Let one of the next epochs carry a savepoint that was admitted, whatever the schedule says."""
        event = rules.CheckpointRequested(
            self._steady.now_ms(),
            kind="savepoint",
            forced=True,  # Flink: a savepoint waits neither for a pause nor for a free place
            request_id=request.request_id,
            synchronous=request.synchronous,
            last=request.then == "cancel",
        )
        self._perform(self._coordinator.handle(event))

    def start_due(self, cut: Carried, *, backlog: bool = False) -> Due | None:
        """The checkpoint that the epoch about to run carries, if one is due; `cut` as far as it is known."""
        actions = self._coordinator.handle(rules.EpochStarting(self._steady.now_ms(), backlog))
        start = next((a for a in actions if isinstance(a, rules.StartCheckpoint)), None)
        due = None
        if start is not None:
            self._carried[start.checkpoint_id] = cut
            is_savepoint = start.kind == "savepoint"
            order = self._savepoints.start(start.request_id, start.checkpoint_id) if is_savepoint else None
            due = Due(start.checkpoint_id, start.participants, order)
        self._perform([a for a in actions if a is not start])
        return due

    def barrier_passed(self, checkpoint_id: int) -> None:
        """The epoch that carried it is over."""
        self._perform(self._coordinator.handle(rules.BarrierPassed(checkpoint_id, self._steady.now_ms())))

    def taken_at(self, checkpoint_id: int, cut: Carried) -> None:
        """Where it was taken, now that its epoch is over."""
        if checkpoint_id in self._carried:
            self._carried[checkpoint_id] = cut

    def attend(self) -> None:
        """See to what the slots reported, to timeouts, and to the claim on the directory."""
        for event in self._engine.events():
            if event.attempt != self._attempt:
                continue
            now_ms = self._steady.now_ms()
            if isinstance(event, SnapshotWritten):
                happened: rules.Event = rules.SnapshotDone(event.checkpoint_id, event.snapshot, now_ms)
            else:
                happened = rules.SnapshotFailed(event.checkpoint_id, *event.subtask, event.why, now_ms)
            self._perform(self._coordinator.handle(happened))
            self._savepoints.remove_given_up(event.checkpoint_id)  # late: what was deleted may be there again
        self._perform(self._coordinator.handle(rules.Tick(self._steady.now_ms())))
        self._storage.renew(self._clock.now_ms())

    def _perform(self, actions: list[rules.Action], *, failing: bool = False) -> None:
        """Do what the coordinator decided, in its order; while failing, without the slots."""
        for action in actions:
            match action:
                case rules.WriteMetadata():
                    self._perform(self._coordinator.handle(self._write_metadata(action)))
                case rules.NotifyComplete(checkpoint_id):
                    request = self._savepoints.completed(checkpoint_id)
                    if request is None:
                        self._completed(checkpoint_id)
                    else:
                        self._savepoint_completed(checkpoint_id, request)
                case rules.NotifyAborted(checkpoint_id, why):
                    self._aborted(checkpoint_id, why, failing=failing)
                case rules.DiscardFiles():
                    self._discard(action)
                case rules.RefuseRequest(request_id, why):
                    self._savepoints.refuse(request_id, why)
                case rules.FailJob(why):
                    raise AttemptFailed(Failure(CheckpointError(why)))
                case rules.StartCheckpoint():
                    raise AssertionError("only the start of an epoch starts a checkpoint")

    # ---------------------------------------------------------------------------------------------- what is performed

    def _write_metadata(self, action: rules.WriteMetadata) -> rules.MetadataWritten | rules.MetadataFailed:
        point("before-metadata")
        metadata = assemble(
            self._graph,
            job_id=str(self._settings.job_id),
            checkpoint_id=action.checkpoint_id,
            timestamp_ms=action.triggered_ms,
            snapshots=action.snapshots,
            finished=action.finished,
            kind=action.kind,
            term=self._storage.term,
        )
        try:
            request = self._savepoints.get(action.checkpoint_id)
            if request is not None:
                self._publish_savepoint(request, metadata)
            else:
                self._newest = self._storage.complete(metadata)
        except Fenced as error:
            raise AttemptFailed(Failure(error)) from error
        except (OSError, CheckpointError) as error:
            return rules.MetadataFailed(action.checkpoint_id, str(error), self._steady.now_ms())
        point("after-metadata")
        self._bytes = sum(s.bytes_written for s in action.snapshots)
        self._taken_ms = self._steady.now_ms() - action.triggered_ms
        return rules.MetadataWritten(action.checkpoint_id, self._steady.now_ms())

    def _publish_savepoint(self, request: SavepointRequest, metadata: CheckpointMetadata) -> None:
        assert request.place is not None
        self._storage.check_owner()
        request.place.check(metadata)
        request.place.publish(metadata)
        # Sinks hear of the one that the job ends with, so after a failure nothing older will do.
        if request.synchronous or not self._settings.checkpoints.prefer_checkpoint_for_recovery:
            self._recovery.note_savepoint(metadata.checkpoint_id, request.place.files)
        self._storage.check_owner()  # as with checkpoints: before anyone hears of it

    def _completed(self, checkpoint_id: int) -> None:
        assert self._newest is not None
        cut = self._carried.pop(checkpoint_id)
        self._carried = {c: e for c, e in self._carried.items() if c > checkpoint_id or self._savepoints.get(c)}
        self._cuts = {c: e for c, e in self._cuts.items() if c > checkpoint_id}
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
            self._delete(unneeded)
            self._recovery.retained(self._retention.retained_ids)
        except OSError as error:  # the checkpoint exists; what could not be deleted is found again next time
            _log.warning("old checkpoints of job %s could not be deleted: %s", self._settings.job_name, error)
        self._on_completed(cut)
        point("before-notify")
        _notified(self._engine.notify_completed(checkpoint_id))
        point("notified")

    def _savepoint_completed(self, checkpoint_id: int, request: SavepointRequest) -> None:
        cut = self._carried.pop(checkpoint_id)
        path = request.path
        progress = self._handle.progress()
        completed = progress.savepoints_completed + 1
        self._handle.update(replace(progress, savepoints_completed=completed, last_savepoint_path=path))
        _log.info("savepoint %d of job %s is complete: %s", checkpoint_id, self._settings.job_name, path)
        if request.synchronous:
            self._on_completed(cut)
            _notified(self._engine.notify_completed(checkpoint_id))
        elif request.then == "cancel":
            self._handle.cancel()
        else:
            # Flink: a savepoint that the job goes on after commits nothing: it is not what a restart goes back to for
            # sure, as its owner may dispose of it.
            self._cuts[checkpoint_id] = cut

    def _aborted(self, checkpoint_id: int, why: str, *, failing: bool) -> None:
        is_savepoint = self._savepoints.give_up(checkpoint_id, why)
        what = "savepoint" if is_savepoint else "checkpoint"
        level = logging.INFO if failing else logging.WARNING
        _log.log(level, "%s %d of job %s was given up: %s", what, checkpoint_id, self._settings.job_name, why)
        self._carried.pop(checkpoint_id, None)
        if not is_savepoint:
            progress = self._handle.progress()
            self._handle.update(replace(progress, checkpoints_failed=progress.checkpoints_failed + 1))
        if not failing:
            _notified(self._engine.notify_aborted(checkpoint_id))

    def _discard(self, action: rules.DiscardFiles) -> None:
        if self._savepoints.remove_given_up(action.checkpoint_id):
            return
        try:
            if action.directory:
                self._storage.discard(action.checkpoint_id, action.paths)
            else:
                self._storage.delete_files(action.paths)
        except (OSError, Fenced) as error:  # leftovers go with a later checkpoint
            _log.warning("files of checkpoint %d could not be deleted: %s", action.checkpoint_id, error)

    def _delete(self, unneeded: Deletions) -> None:
        for checkpoint_id in unneeded.checkpoints:
            self._storage.discard(checkpoint_id)
        self._storage.delete_files(unneeded.files)

    # ---------------------------------------------------------------------------------------------------- the end

    def release(self) -> None:
        """Nothing was begun: the next driver need not wait."""
        self._storage.release()

    def tidy(self, status: JobStatus) -> None:
        """Keep or delete the checkpoints of a job that has ended, as it asked; leave no half of a savepoint."""
        self._savepoints.remove_unfinished()
        ends: dict[JobStatus, JobEnd] = {JobStatus.FINISHED: "FINISHED", JobStatus.CANCELED: "CANCELED"}
        keep = _POLICIES[self._settings.checkpoints.retention].keeps(ends.get(status, "FAILED"))
        try:
            if keep:
                if status is JobStatus.CANCELED:  # after a failure somebody may want to look at everything
                    self._delete_leftovers()
                self._storage.release()
            else:
                self._storage.check_owner()
                self._recovery.job_ended()
                self._storage.delete_everything(finished=status is JobStatus.FINISHED)
        except (OSError, Fenced) as error:
            _log.warning("checkpoints of job %s were left behind: %s", self._settings.job_name, error)

    def _delete_leftovers(self) -> None:
        completed = frozenset(self._storage.completed_ids())
        listing = self._storage.listing()
        self._delete(self._retention.leftovers(listing, completed=completed, first_id=self._first_id))

    def answer_requests(self, status: JobStatus) -> None:
        """Tell those who asked for savepoints and have not heard yet that the job is over."""
        self._savepoints.job_ended(status)

    # ------------------------------------------------------------------------------------------------------- details

    def _open_storage(self) -> CheckpointDirectory:
        checkpoints = self._settings.checkpoints
        # A directory is also given where state travels to the driver: then the driver alone writes to it, metadata
        # with all state in it.
        directory = checkpoints.directory if checkpoints.enabled else None
        store: FileStore = MemoryFiles() if directory is None else open_files(directory)
        storage = CheckpointDirectory(store, str(self._settings.job_id), create_subdir=checkpoints.create_subdir)
        storage.initialise(Driver.this_process(), self._clock.now_ms(), lease_ms=checkpoints.owner_lease_ms)
        return storage

    def _plan(self, graph: JobGraph, restored: Restored) -> RestorePlan:
        return plan_restore(
            graph,
            restored.metadata,
            restored.files.address,
            allow_non_restored_state=self._settings.allow_non_restored_state,
        )

    def _make_coordinator(self) -> rules.CheckpointCoordinator:
        checkpoints = self._settings.checkpoints
        tolerable = checkpoints.tolerable_failures
        settings = rules.CoordinatorSettings(
            interval_ms=checkpoints.interval_ms,
            timeout_ms=checkpoints.timeout_ms,
            min_pause_ms=checkpoints.min_pause_ms,
            max_concurrent=checkpoints.max_concurrent,
            tolerable_failures=None if tolerable >= KEEP_ALL_FAILURES else tolerable,
            after_tasks_finish=checkpoints.after_tasks_finish,
            backlog_interval_ms=checkpoints.backlog_interval_ms,
        )
        subtasks = frozenset(SubtaskId(v.id, i) for v in self._graph.vertices for i in range(v.parallelism))
        self._first_id = self._recovery.highest_id() + 1
        return rules.CheckpointCoordinator(subtasks, settings, first_id=self._first_id)


def _notified(failure: Failure | None) -> None:
    if failure is not None:
        raise AttemptFailed(failure)


def _readable(storage: CheckpointDirectory) -> Iterator[CheckpointMetadata]:
    """The checkpoints that an earlier driver of the job left."""
    for checkpoint_id in storage.completed_ids():
        try:
            yield storage.load(checkpoint_id)
        except (CheckpointError, OSError) as error:
            _log.warning("checkpoint %d of %s cannot be read: %s", checkpoint_id, storage.directory, error)
