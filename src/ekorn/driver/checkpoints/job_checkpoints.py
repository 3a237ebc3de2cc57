"""The checkpoints and savepoints of a running job: tells the coordinator what happened and has its actions performed.

`checkpoint.coordinator` decides, `checkpoint_actions` performs. Both run on the loop's thread, between epochs.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ekorn.checkpoint import events
from ekorn.checkpoint.checkpoint_directory import CheckpointDirectory
from ekorn.checkpoint.coordinator import CheckpointCoordinator, CheckpointStats
from ekorn.checkpoint.restore_plan import settled_subtasks
from ekorn.checkpoint.restore_point import RestorePoint
from ekorn.checkpoint.schedule import CoordinatorSettings
from ekorn.config.settings.checkpoint_settings import KEEP_ALL_FAILURES, CheckpointSettings
from ekorn.driver.checkpoints.checkpoint_actions import CheckpointActions
from ekorn.driver.checkpoints.checkpoint_positions import CheckpointPosition, CheckpointPositions
from ekorn.driver.checkpoints.checkpoint_requests import CheckpointRequest, CheckpointRequests
from ekorn.driver.checkpoints.retained_checkpoints import RetainedCheckpoints
from ekorn.driver.checkpoints.savepoint_requests import SavepointRequest, SavepointRequests
from ekorn.driver.loop.interrupts import raise_failure
from ekorn.driver.loop.job import Job
from ekorn.driver.output.job_output import JobOutput
from ekorn.driver.recovery.job_recovery import JobRecovery
from ekorn.engine.protocol import Engine
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import SavepointOrder
from ekorn.slot_protocol.slot_events import OperatorHint, SnapshotNotWritten, SnapshotWritten
from ekorn.state.snapshots import RestorePlan

__all__ = ["DueCheckpoint", "JobCheckpoints", "patience_of"]

_log = logging.getLogger(__name__)

_PATIENCE = 0.1  # the longest wait for a checkpoint, as a share of the checkpoint interval
_LONGEST_PATIENCE_MS = 100.0


@dataclass(frozen=True)
class DueCheckpoint:
    """The checkpoint or savepoint that the next epoch carries, and the subtasks that take a snapshot."""

    checkpoint_id: int
    participants: frozenset[SubtaskId]
    savepoint: SavepointOrder | None


class JobCheckpoints:
    """The checkpoints of one job, from the first attempt to the end of the job.

    Args:
        job: The job.
        engine: Hosts the job's subtasks.
        directory: The job's checkpoint directory.
        recovery: Knows what attempts start from.
        retained: The completed checkpoints.
        output: What the job has put out, which a completed checkpoint commits.
    """

    def __init__(
        self,
        job: Job,
        engine: Engine,
        *,
        directory: CheckpointDirectory,
        recovery: JobRecovery,
        retained: RetainedCheckpoints,
        output: JobOutput,
    ) -> None:
        self._job = job
        self._engine = engine
        self._directory = directory
        self._retained = retained
        self._recovery = recovery
        self._output = output
        self._attempt: int | None = None
        self._under_way: set[int] = set()  # checkpoints whose epochs have not ended
        # The events of these checkpoints, handled when their epochs have ended.
        self._early: list[SnapshotWritten | SnapshotNotWritten] = []
        self._untold: list[int] = []  # aborted checkpoints of which running subtasks were not notified
        self._first_id = recovery.highest_id() + 1
        self._coordinator = CheckpointCoordinator(
            job.subtasks, _coordinator_settings(job.settings.checkpoints), first_id=self._first_id
        )
        self._savepoints = SavepointRequests(str(job.settings.job_id))
        self._requests = CheckpointRequests()
        self._positions = CheckpointPositions()
        self._actions = CheckpointActions(
            job,
            engine,
            self._coordinator,
            directory=directory,
            recovery=recovery,
            retained=retained,
            savepoints=self._savepoints,
            requests=self._requests,
            positions=self._positions,
            output=output,
        )

    def plan_for(self, graph: JobGraph) -> RestorePlan | None:
        """Return what the subtasks of a graph would restore from the newest checkpoint; None if there is none.

        Raises:
            RestoreError: Its state does not fit the graph.
        """
        newest = self._retained.newest
        return None if newest is None else self._recovery.plan(graph, RestorePoint(self._directory.files, newest))

    # --------------------------------------------------------------------------------------------------- attempts

    def begin_attempt(self, attempt: int, plan: RestorePlan | None) -> None:
        """Start the schedule after all subtasks were deployed and restored by the plan."""
        self._attempt = attempt
        self._under_way.clear()
        self._early.clear()
        self._untold.clear()
        finished = settled_subtasks(plan) if plan is not None else frozenset()
        restored_id = plan.checkpoint_id if plan is not None else None
        position = self._positions.of_savepoint(restored_id)
        if (
            position is not None
        ):  # the subtasks were never notified of that savepoint, but restoring it commits its output
            self._output.commit(position)
        self._handle(events.JobStarted(self._job.steady.now_ms(), restored_id, finished, self._job.subtasks))

    def end_attempt(self, why: str) -> None:
        """Abort the checkpoints in flight of an attempt that has failed. `tell_aborted` tells the slots."""
        actions = self._coordinator.handle(events.JobFailed(self._job.steady.now_ms(), why))
        self._untold += [action.checkpoint_id for action in actions if isinstance(action, events.NotifyAborted)]
        self._actions.perform(actions, failing=True)

    def tell_aborted(self, failed: frozenset[SubtaskId]) -> None:
        """Tell the subtasks that have not failed which checkpoints the failure of others has aborted.

        Raises:
            AttemptFailed: A subtask could not be told.
        """
        # Flink: all tasks that run are told.
        while self._untold:
            raise_failure(self._engine.notify_aborted(self._untold.pop(0), failed))

    # ------------------------------------------------------------------------------------------------ while it runs

    @property
    def pending_ids(self) -> frozenset[int]:
        """The checkpoints and savepoints in flight."""
        return self._coordinator.pending_ids

    @property
    def last_completed_id(self) -> int | None:
        """The newest checkpoint that this job has completed."""
        return self._coordinator.last_completed_id

    @property
    def is_requested(self) -> bool:
        """Whether a requested checkpoint or savepoint starts with the next epoch."""
        return self._coordinator.is_requested

    def next_due_ms(self, now_ms: int) -> int | None:
        """Return the latest time for the next call of `attend`; None if nothing is due."""
        return self._coordinator.next_due_ms(now_ms)

    def patience_ms(self) -> float:
        """Return how long to wait for the checkpoint of the last epoch before the next epoch starts; 0 for not at all.

        An epoch may be as long as the checkpoint interval. The next checkpoint would then come due while the last one
        is still being written, and only every second epoch would carry a checkpoint. If checkpoints are written within
        milliseconds, waiting for the one in flight is better.
        """
        interval_ms = self._job.settings.checkpoints.interval_ms
        if interval_ms is None or not self._coordinator.is_held_back(self._job.steady.now_ms()):
            return 0.0
        return patience_of(interval_ms, next((s for s in reversed(self._coordinator.history) if s.completed), None))

    @property
    def newest_id(self) -> int:
        """The newest checkpoint or savepoint that was begun."""
        return self._coordinator.newest_id

    @property
    def refusal(self) -> str | None:
        """The reason checkpointing is suspended, or None if it is active."""
        return self._coordinator.refusal

    def request(self) -> None:
        """Let one of the next epochs carry a checkpoint beside the schedule, within the limit of concurrent ones."""
        self._handle(events.CheckpointRequested(self._job.steady.now_ms()))

    def request_checkpoint(self, request: CheckpointRequest) -> None:
        """Let one of the next epochs carry a checkpoint that a user requests, within the limit of concurrent ones."""
        self._requests.add(request)
        self._handle(events.CheckpointRequested(self._job.steady.now_ms(), request_id=request.request_id))

    def admit(self, request: SavepointRequest) -> bool:
        """Create the directory of a savepoint. If there can be none, answer the request and return False."""
        return self._savepoints.admit(request, self._coordinator.refusal)

    def request_savepoint(self, request: SavepointRequest) -> None:
        """Let one of the next epochs carry an admitted savepoint, whatever the schedule says."""
        self._handle(
            events.CheckpointRequested(
                self._job.steady.now_ms(),
                kind="savepoint",
                forced=True,  # Flink: a savepoint waits for neither the minimum pause nor the limit
                request_id=request.request_id,
                synchronous=request.synchronous,
                last=request.then == "cancel",
            )
        )

    def start_due(self, position: CheckpointPosition, *, backlog: bool = False) -> DueCheckpoint | None:
        """Start the checkpoint that the next epoch carries, if one is due.

        Args:
            position: The next epoch, and the records read before it.
            backlog: Whether a source had more to read at the end of the last epoch.
        """
        actions = self._coordinator.handle(events.EpochStarting(self._job.steady.now_ms(), backlog))
        start = next((a for a in actions if isinstance(a, events.StartCheckpoint)), None)
        due = None
        if start is not None:
            self._positions.begin(start.checkpoint_id, position)
            self._under_way.add(start.checkpoint_id)
            self._requests.start(start.request_id, start.checkpoint_id)
            is_savepoint = start.kind == "savepoint"
            order = self._savepoints.start(start.request_id, start.checkpoint_id) if is_savepoint else None
            due = DueCheckpoint(start.checkpoint_id, start.participants, order)
            self._note_begun(due, self._savepoints.in_flight(start.checkpoint_id))
        self._actions.perform([a for a in actions if a is not start])
        return due

    def _note_begun(self, due: DueCheckpoint, request: SavepointRequest | None) -> None:
        statistics = self._job.statistics.checkpoints
        if request is None:
            statistics.begin(due.checkpoint_id, due.participants)
        else:
            statistics.begin(
                due.checkpoint_id,
                due.participants,
                "NATIVE" if request.native else "CANONICAL",
                synchronous=request.synchronous,
            )

    def barrier_passed(self, checkpoint_id: int) -> None:
        """Note that the epoch that carried a checkpoint has ended."""
        self._handle(events.BarrierPassed(checkpoint_id, self._job.steady.now_ms()))

    def taken_at(self, checkpoint_id: int, position: CheckpointPosition) -> None:
        """Note where a checkpoint was taken, after its epoch."""
        self._positions.update(checkpoint_id, position)
        self._under_way.discard(checkpoint_id)

    def attend(self) -> None:
        """Handle the events of the slots and timeouts, and renew the lease on the directory."""
        reported, self._early = [*self._early, *self._engine.events()], []
        for event in reported:
            if isinstance(event, OperatorHint):
                self._job.hints.show(event)
                continue
            if event.attempt != self._attempt:
                continue
            if event.checkpoint_id in self._under_way:  # its completion would commit output that has not arrived yet
                self._early.append(event)
                continue
            now_ms = self._job.steady.now_ms()
            if isinstance(event, SnapshotWritten):
                self._job.statistics.checkpoints.acknowledge(event.checkpoint_id, event.snapshot)
                self._handle(events.SnapshotDone(event.checkpoint_id, event.snapshot, now_ms))
            else:
                failed = events.SnapshotFailed(event.checkpoint_id, event.subtask, event.why, now_ms, event.error)
                self._handle(failed)
            self._savepoints.remove_aborted(event.checkpoint_id)  # a late slot may have written files again
        self._handle(events.Tick(self._job.steady.now_ms()))
        self._directory.renew(self._job.clock.now_ms())

    def show_last_hints(self) -> None:
        """Show the hints that the slots have given since the last epoch. The engine is shut down."""
        for event in self._engine.events():
            if isinstance(event, OperatorHint):
                self._job.hints.show(event)

    def _handle(self, event: events.Event) -> None:
        self._actions.perform(self._coordinator.handle(event))

    # ---------------------------------------------------------------------------------------------------- the end

    def job_cancelled(self) -> None:
        """Note that the job was cancelled, before anything is released."""
        self._directory.note_cancelled()

    def check_owner(self) -> None:
        """Raise `Fenced` if another driver has taken the job over."""
        self._directory.check_owner()

    def job_ended(self, status: JobStatus) -> None:
        """Keep or delete the checkpoints of a job that has ended, and remove unfinished savepoints."""
        self._savepoints.remove_unfinished()
        self._retained.job_ended(status, first_id=self._first_id)
        self._job.statistics.checkpoints.keep(self._retained.retained_ids)

    def answer_requests(self, status: JobStatus) -> None:
        """Answer the requests for checkpoints and savepoints that are still open: the job is over."""
        self._requests.job_ended(status)
        self._savepoints.job_ended(status)


def patience_of(interval_ms: int, last: CheckpointStats | None) -> float:
    """Return how long to wait for a checkpoint, by the time that the last completed one took."""
    patience_ms = min(interval_ms * _PATIENCE, _LONGEST_PATIENCE_MS)
    return patience_ms if last is not None and last.longest_async_ms <= patience_ms / 2 else 0.0


def _coordinator_settings(checkpoints: CheckpointSettings) -> CoordinatorSettings:
    tolerable = checkpoints.tolerable_failures
    return CoordinatorSettings(
        interval_ms=checkpoints.interval_ms,
        timeout_ms=checkpoints.timeout_ms,
        min_pause_ms=checkpoints.min_pause_ms,
        max_concurrent=checkpoints.max_concurrent,
        tolerable_failures=None if tolerable >= KEEP_ALL_FAILURES else tolerable,
        after_tasks_finish=checkpoints.after_tasks_finish,
        backlog_interval_ms=checkpoints.backlog_interval_ms,
    )
