"""The coordinator in the driver: attempts, epochs, checkpoints, until the job has ended one way or another.

One thread per job. Rules live elsewhere (`checkpoint.coordinator`, `job.restarts`, `job.pacing`); this loop owns
the engine and the storage and performs what the rules decide, between epochs, when no user code runs.
"""

from __future__ import annotations

import logging
import random
import sys
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
from tamias.common.constants import MIN_TIMESTAMP
from tamias.common.job_execution_result import JobExecutionResult
from tamias.common.job_status import JobStatus
from tamias.contracts.checkpointing import CheckpointingMode, ExternalizedCheckpointRetention
from tamias.engine.base import Deployment, Engine, EpochResult, Failure, SnapshotWritten
from tamias.errors import (
    CheckpointError,
    CorruptFileError,
    JobCancelledError,
    JobExecutionError,
    RestoreError,
    TamiasError,
    UserFunctionError,
)
from tamias.faults import point
from tamias.graph.job_graph import JobGraph
from tamias.job.handle import JobHandle, merge_accumulators
from tamias.job.pacing import EpochPacer, EpochReport, PacingSettings
from tamias.job.restarts import restart_strategy
from tamias.job.settings import KEEP_ALL_FAILURES, JobSettings
from tamias.runtime.epoch import Ack, EpochOrder
from tamias.state.files import FileStore, MemoryFiles, open_files
from tamias.state.snapshots import RestorePlan

_log = logging.getLogger(__name__)

EngineFactory = Callable[[JobGraph], Engine]

_POLICIES = {
    ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS: RetentionPolicy.NEVER_RETAIN,
    ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION: RetentionPolicy.RETAIN_ON_FAILURE,
    ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION: RetentionPolicy.RETAIN_ON_CANCELLATION,
}
_EPOCH_TARGET_MS = 2_000  # under backlog; the fixed cost of an epoch on Spark is some 150 ms
_NEVER_RETRIED = {"StateMigrationError", "InvalidProgramError", "StateNotKeyed", "ConfigurationError"}


class Cancelled(Exception):
    """The job was cancelled: unwinds an attempt."""


class AttemptFailed(Exception):
    """An attempt failed: what happens next is the restart strategy's decision."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


@dataclass(frozen=True)
class Restored:
    """What an attempt starts from."""

    files: FileStore
    metadata: CheckpointMetadata


class JobLoop:
    """Runs one job to its end."""

    def __init__(
        self, graph: JobGraph, settings: JobSettings, handle: JobHandle, make_engine: EngineFactory, clock: Clock
    ) -> None:
        self._settings = settings
        self._handle = handle
        self._clock = clock
        self._started_ms = clock.now_ms()
        self._storage = self._open_storage()
        try:
            self._prepare(graph, make_engine)
        except BaseException:
            if self._storage is not None:
                self._storage.release()  # nothing was begun: the next one need not wait
            raise
        handle.on_cancel(self._interrupt)

    def _prepare(self, graph: JobGraph, make_engine: EngineFactory) -> None:
        settings = self._settings
        self._initial = self._initial_checkpoint()
        if self._initial is not None:
            graph = apply_max_parallelism(graph, self._initial.metadata)
        self._graph = graph
        if self._initial is not None:
            self._plan(self._initial)  # what does not fit is said before anything runs
        self._subtasks = frozenset((v.id, i) for v in graph.vertices for i in range(v.parallelism))
        self._coordinator = self._make_coordinator()
        self._retention = Retention(settings.checkpoints.num_retained)
        if self._storage is not None:
            self._retention.adopt(_readable(self._storage))
        self._strategy = restart_strategy(settings.restart, random.Random())
        self._refusal = ""  # why the restart strategy gave up
        self._group_watermarks: dict[str, int] = {}
        self._attempt = 0
        self._epoch = 0
        self._unreadable: set[int] = set()  # checkpoints that a slot could not read
        self._held: list[tuple[int, list[object]]] = []  # collected records that wait for their checkpoint
        self._carried: dict[int, int] = {}  # checkpoint -> the epoch that carried it
        self._newest: CheckpointMetadata | None = None
        self._bytes = self._taken_ms = 0  # of the newest checkpoint
        self._read_before: dict[int, int] = {}  # checkpoint -> records read when it was taken
        self._read_by_completed = 0
        self._records_read = 0
        self._engine = make_engine(graph)

    # ---------------------------------------------------------------------------------------------- the whole life

    def run(self) -> None:
        """Run attempts until the job is over; the handle then knows how it ended. Never raises."""
        status = JobStatus.FAILED
        error: BaseException | None = None
        try:
            self._attempts()
            status = JobStatus.FINISHED
        except Cancelled:
            status, error = JobStatus.CANCELED, JobCancelledError(self._settings.job_name)
        except AttemptFailed as failed:
            error = self._job_error(failed.failure.error)
        except Exception as unexpected:  # a defect of ours must still end the job and reach the user
            _log.exception("job %s failed", self._settings.job_name)
            error = self._job_error(unexpected)
        finally:
            self._tidy(status)
            result = None
            if error is None:
                runtime_ms = self._clock.now_ms() - self._started_ms
                try:
                    result = JobExecutionResult(self._settings.job_id, runtime_ms, self._handle.accumulators())
                except Exception as unreadable:  # an accumulator of the user's
                    status, error = JobStatus.FAILED, self._job_error(unreadable)
            self._handle.end(status, result, error)

    def _attempts(self) -> None:
        while True:
            try:
                self._run_attempt()
                return
            except AttemptFailed as failed:
                self._fail_or_wait(failed.failure)

    def _fail_or_wait(self, failure: Failure) -> None:
        """Ask the restart strategy; return when it is time for the next attempt."""
        self._check_cancelled()
        self._perform(self._coordinator.handle(rules.JobFailed(self._clock.now_ms())), failing=True)
        error = failure.error
        if isinstance(error, UserFunctionError) and error.original_type in _NEVER_RETRIED:
            raise AttemptFailed(failure) from error
        if isinstance(error, (RestoreError, Fenced)) and not isinstance(error, CorruptFileError):
            raise AttemptFailed(failure) from error
        decision = self._strategy.on_failure(self._clock.now_ms())
        if not decision.restart:
            self._refusal = decision.reason
            raise AttemptFailed(failure) from error
        _log.warning("job %s restarts in %d ms: %s", self._settings.job_name, decision.delay_ms, error)
        progress = self._handle.progress()
        self._handle.update(
            replace(
                progress,
                status=JobStatus.RESTARTING,
                restarts=progress.restarts + 1,
                last_failure=str(error).splitlines()[0] if str(error) else type(error).__name__,
            )
        )
        if self._handle.wait_for_cancel(decision.delay_ms / 1000):
            raise Cancelled
        self._attempt += 1

    def _job_error(self, error: BaseException) -> BaseException:
        log_path = getattr(self._engine, "log_path", None)
        restarts = self._handle.progress().restarts
        if isinstance(error, UserFunctionError):
            return JobExecutionError.from_user_error(
                self._settings.job_name,
                error,
                log_path=log_path,
                restarts=restarts,
                restart_description=self._refusal or None,
            )
        return JobExecutionError(
            self._settings.job_name,
            str(error) if isinstance(error, TamiasError) else f"{type(error).__name__}: {error}",
            log_path=log_path,
            restarts=restarts,
            restart_description=self._refusal or None,
        )

    # ------------------------------------------------------------------------------------------------ one attempt

    def _run_attempt(self) -> None:
        """Deploy, then epoch after epoch until every subtask has finished."""
        self._check_cancelled()
        restored = self._recover()
        self._deploy(restored)
        self._held.clear()
        self._group_watermarks = {}  # watermarks start anew with the attempt
        self._records_read = self._read_by_completed
        self._handle.update(
            replace(self._handle.progress(), status=JobStatus.RUNNING, attempt=self._attempt, slot_pids=self._pids())
        )
        pacer = EpochPacer(self._pacing())
        while True:
            self._attend()
            order = self._next_order(pacer)
            started = self._clock.monotonic()
            acks = self._run_epoch(order)
            wall_ms = (self._clock.monotonic() - started) * 1000
            self._publish(order, acks, wall_ms)
            if all(a.finished for a in acks):
                self._last_checkpoint()
                failure = self._engine.close_subtasks()
                if failure is not None:
                    raise AttemptFailed(failure)
                return
            sources = [a for a in acks if self._graph.vertices[a.vertex].is_source]
            report = EpochReport(
                wall_ms=wall_ms,
                records=sum(a.records_in for a in sources),
                backlog=any(a.backlog for a in sources),
                bytes_read=sum(a.bytes_out for a in sources),
            )
            self._idle(pacer.observe(report).idle_wait_ms, acks)

    def _deploy(self, restored: Restored | None) -> None:
        plan: RestorePlan | None = None
        finished: frozenset[tuple[int, int]] = frozenset()
        restored_id = None
        if restored is not None:
            plan = self._plan(restored)
            finished = frozenset(k for k, s in plan.subtasks.items() if s.finished)
            restored_id = restored.metadata.checkpoint_id
        checkpoints, storage = self._settings.checkpoints, self._storage
        on_disk = storage is not None and not isinstance(storage.files, MemoryFiles)
        failure = self._engine.deploy(
            Deployment(
                job_id=str(self._settings.job_id),
                graph=self._graph,
                attempt=self._attempt,
                term=storage.term if storage is not None else 0,
                checkpoint_directory=storage.directory if storage is not None and on_disk else None,
                inline_threshold=checkpoints.inline_threshold_bytes,
                max_state_size=checkpoints.max_state_bytes,
                state_backend=self._settings.state_backend,
                incremental=checkpoints.incremental,
                restore=plan,
            )
        )
        if failure is not None:
            if restored_id is not None and _is_damage(failure.error):
                self._unreadable.add(restored_id)
                self._retention.forget(restored_id)
            raise AttemptFailed(failure)
        self._engine.events()  # of an attempt that is over
        self._perform(self._coordinator.handle(rules.JobStarted(self._clock.now_ms(), restored_id, finished)))

    def _plan(self, restored: Restored) -> RestorePlan:
        return plan_restore(
            self._graph,
            restored.metadata,
            restored.files.url,
            allow_non_restored_state=self._settings.allow_non_restored_state,
        )

    def _next_order(self, pacer: EpochPacer) -> EpochOrder:
        budget = pacer.pace.budget
        actions = self._coordinator.handle(rules.EpochStarting(self._clock.now_ms()))
        start = next((a for a in actions if isinstance(a, rules.StartCheckpoint)), None)
        self._perform([a for a in actions if a is not start])
        order = EpochOrder(
            number=self._epoch,
            max_records=budget.max_records_per_source_subtask,
            max_source_ms=budget.max_source_ms,
            group_watermarks=self._group_watermarks,
        )
        self._epoch += 1
        if start is None:
            return order
        self._carried[start.checkpoint_id] = order.number
        return replace(order, checkpoint_id=start.checkpoint_id, settled=self._subtasks - start.participants)

    def _run_epoch(self, order: EpochOrder) -> list[Ack]:
        point("driver-epoch")
        result: EpochResult = self._engine.run_epoch(order)
        self._check_cancelled()
        if result.failure is not None:
            raise AttemptFailed(result.failure)
        self._group_watermarks = least_by_group(result.acks)
        if order.checkpoint_id is not None:
            self._perform(self._coordinator.handle(rules.BarrierPassed(order.checkpoint_id, self._clock.now_ms())))
        return result.acks

    def _last_checkpoint(self) -> None:
        """All input is read: one more checkpoint, so that transactional output of the last epochs is committed."""
        if self._storage is None or not self._settings.checkpoints.after_tasks_finish:
            self._release(self._epoch)
            return
        while self._coordinator.pending_ids:  # of epochs before
            self._attend()
            self._engine.wait(0.05)
        self._coordinator.handle(rules.CheckpointRequested(self._clock.now_ms(), forced=True))
        order = self._next_order(EpochPacer(self._pacing()))
        acks = self._run_epoch(order)
        self._publish(order, acks, 0.0)
        wanted = order.checkpoint_id
        while wanted is not None and wanted in self._coordinator.pending_ids:
            self._attend()
            self._engine.wait(0.05)
        if wanted is not None and self._coordinator.last_completed_id != wanted:
            raise AttemptFailed(Failure(CheckpointError("the last checkpoint of the job could not be taken")))

    # --------------------------------------------------------------------------------------------- between epochs

    def _attend(self) -> None:
        """See to everything that happened meanwhile: snapshots, timeouts, a request to cancel."""
        self._check_cancelled()
        for event in self._engine.events():
            if event.attempt != self._attempt:
                continue
            now_ms = self._clock.now_ms()
            if isinstance(event, SnapshotWritten):
                self._perform(self._coordinator.handle(rules.SnapshotDone(event.checkpoint_id, event.snapshot, now_ms)))
            else:
                self._perform(
                    self._coordinator.handle(
                        rules.SnapshotFailed(event.checkpoint_id, event.vertex, event.subtask, event.why, now_ms)
                    )
                )
        self._perform(self._coordinator.handle(rules.Tick(self._clock.now_ms())))
        if self._storage is not None:
            self._storage.renew(self._clock.now_ms())

    def _perform(self, actions: list[rules.Action], *, failing: bool = False) -> None:
        """Do what the checkpoint coordinator decided, in its order; while failing, without the slots."""
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
                        self._notified(self._engine.notify_aborted(checkpoint_id))
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
        epoch = self._carried.pop(checkpoint_id, self._epoch)
        self._carried = {c: e for c, e in self._carried.items() if c > checkpoint_id}
        self._read_by_completed = self._read_before.pop(checkpoint_id, self._records_read)
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
        self._release(epoch)
        self._notified(self._engine.notify_completed(checkpoint_id))
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

    @staticmethod
    def _notified(failure: Failure | None) -> None:
        if failure is not None:
            raise AttemptFailed(failure)

    def _publish(self, order: EpochOrder, acks: list[Ack], wall_ms: float) -> None:
        """Show what an epoch gave: printed lines, collected records, accumulators, progress."""
        for ack in acks:
            for line in ack.lines:
                sys.stdout.write(line + "\n")
        sys.stdout.flush()
        read = sum(a.records_in for a in acks if self._graph.vertices[a.vertex].is_source)
        self._records_read += read
        if order.checkpoint_id is not None:
            self._read_before[order.checkpoint_id] = self._records_read
        self._held.append((order.number, [r for a in acks for r in a.records]))
        if not self._takes_back:
            self._release(order.number)
        self._handle.set_accumulators(merge_accumulators([a.accumulators for a in acks]))
        marks = [a.watermark for a in acks if not self._graph.vertices[a.vertex].is_source]
        progress = self._handle.progress()
        self._handle.update(
            replace(
                progress,
                epochs=progress.epochs + 1,
                records_read=self._records_read,
                last_epoch_ms=wall_ms,
                last_epoch_records=read,
                watermark=min(marks, default=MIN_TIMESTAMP),
            )
        )

    @property
    def _takes_back(self) -> bool:
        """Whether a failure takes back what was collected: up to the last checkpoint, or, in BATCH, to the start."""
        if self._storage is None:
            return self._graph.settings.batch
        return self._settings.checkpoints.mode is CheckpointingMode.EXACTLY_ONCE

    def _release(self, epoch: int) -> None:
        """Hand over the records collected up to an epoch: nothing can take them back now."""
        for number, records in self._held:
            if number <= epoch:
                self._handle.deliver(records)
        self._held = [(n, r) for n, r in self._held if n > epoch]

    def _idle(self, wait_ms: int, acks: list[Ack]) -> None:
        """Wait before the next epoch, but not past a timer, a checkpoint that is due, or news."""
        buffer_timeout_ms = self._settings.buffer_timeout_ms
        if buffer_timeout_ms >= 0:
            wait_ms = min(wait_ms, max(buffer_timeout_ms, 1))
        if wait_ms <= 0:
            return
        now_ms = self._clock.now_ms()
        due = [now_ms + wait_ms, self._coordinator.next_due_ms(now_ms)]
        due += [a.next_timer_ms for a in acks]
        self._engine.wait(max(0, min(d for d in due if d is not None) - now_ms) / 1000)

    # ------------------------------------------------------------------------------------------------- checkpoints

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
        restored = self._initial.metadata.checkpoint_id if self._initial is not None else 0
        first_id = max(restored, self._storage.highest_id() if self._storage is not None else 0) + 1
        return rules.CheckpointCoordinator(self._subtasks, settings, first_id=first_id)

    def _recover(self) -> Restored | None:
        """The newest checkpoint of this job that can be read, else what it started from."""
        if self._storage is not None and (self._attempt > 0 or self._unreadable):
            try:
                found = choose_checkpoint(self._storage, exclude=self._unreadable)
            except (RestoreError, CheckpointError) as error:
                raise AttemptFailed(Failure(error)) from error
            if found is not None:
                return Restored(self._storage.files, found.metadata)
        if self._attempt == 0 and self._storage is not None:
            ours = self._initial is not None and self._initial.files is self._storage.files
            self._storage.start_from(self._initial.metadata.checkpoint_id if ours and self._initial else None)
        return self._initial

    def _pacing(self) -> PacingSettings:
        target = self._settings.configuration.get("tamias.epoch.target-ms")
        settings = PacingSettings(
            target_ms=_EPOCH_TARGET_MS, checkpoint_interval_ms=self._settings.checkpoints.interval_ms
        )
        return replace(settings, target_ms=int(target)) if target else settings

    # ------------------------------------------------------------------------------------------------- the end

    def _check_cancelled(self) -> None:
        if self._handle.cancel_requested:
            raise Cancelled

    def _interrupt(self) -> None:
        self._engine.cancel_epoch()
        self._engine.wake()

    def _tidy(self, status: JobStatus) -> None:
        """Release everything; checkpoints are kept or deleted as the job asked."""
        try:
            self._engine.shutdown()
        except Exception:  # the job's outcome stands; what could not be released is in the log
            _log.exception("job %s could not be shut down in order", self._settings.job_name)
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

    def _pids(self) -> tuple[int, ...]:
        return tuple(getattr(self._engine, "slot_pids", ()))


def least_by_group(acks: list[Ack]) -> dict[str, int]:
    """How far the slowest source of each watermark alignment group has come; idle and finished ones do not count."""
    least: dict[str, int] = {}
    for ack in acks:
        for group, watermark in ack.group_watermarks.items():
            least[group] = min(watermark, least.get(group, watermark))
    return least


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
