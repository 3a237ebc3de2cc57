"""Decides when a checkpoint starts, completes, fails, and fails the job: events in, actions out.

The coordinator has no threads, files or clocks. The job loop reports what happened and when, and performs the actions
in the order given. The life of a checkpoint:

    EpochStarting -> StartCheckpoint(n)     the next epoch carries the checkpoint to every participant
    SnapshotDone, for each participant      from a background writer, while later epochs run
      -> WriteMetadata(n)                   the commit point
    MetadataWritten -> NotifyComplete(n)    the checkpoint exists: retention, then the subtasks are notified
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import assert_never

from ekorn.checkpoint.events import (
    Action,
    BarrierPassed,
    CheckpointRequested,
    DiscardFiles,
    EpochStarting,
    Event,
    FailJob,
    JobFailed,
    JobStarted,
    MetadataFailed,
    MetadataWritten,
    NotifyAborted,
    NotifyComplete,
    RefuseRequest,
    SnapshotDone,
    SnapshotFailed,
    StartCheckpoint,
    Tick,
    WriteMetadata,
)
from ekorn.checkpoint.file_names import files_created_for
from ekorn.checkpoint.finished_subtasks import has_union_state, settled
from ekorn.checkpoint.metadata import CheckpointKind
from ekorn.checkpoint.schedule import CoordinatorSettings, Schedule
from ekorn.errors import UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.state.snapshots import SubtaskSnapshot

__all__ = ["CheckpointCoordinator", "CheckpointStats"]

HISTORY_LENGTH = 100  # completed and aborted checkpoints kept for display
MOST_REQUESTS = 1000  # the most requests that wait to be started
_SOME_FINISHED = (
    "some subtasks have finished, and checkpoints are then disabled "
    "(execution.checkpointing.checkpoints-after-tasks-finish)"
)


@dataclass(frozen=True, slots=True)
class CheckpointStats:
    """A completed or aborted checkpoint, for people to look at."""

    checkpoint_id: int
    kind: CheckpointKind
    completed: bool
    triggered_ms: int
    ended_ms: int
    barrier_ms: int | None
    bytes_written: int
    longest_sync_ms: float
    longest_async_ms: float
    why: str | None


@dataclass(slots=True)
class _Pending:
    checkpoint_id: int
    kind: CheckpointKind
    request_id: str
    triggered_ms: int
    participants: frozenset[SubtaskId]
    finished: frozenset[SubtaskId]
    synchronous: bool
    last: bool
    answers: dict[SubtaskId, SubtaskSnapshot] = field(default_factory=dict)
    barrier_ms: int | None = None
    writing: bool = False  # the metadata is being written: only the outcome of that decides

    @property
    def answered(self) -> bool:
        return len(self.answers) == len(self.participants)


class CheckpointCoordinator:
    """Coordinates the checkpoints of one job.

    Args:
        subtasks: Every subtask of the job.
        settings: The limits and intervals.
        first_id: The first checkpoint id to use. Ids only go up, and none is used twice.

    Example:
        >>> coordinator = CheckpointCoordinator({SubtaskId(0, 0)}, CoordinatorSettings(interval_ms=1000))
        >>> coordinator.handle(JobStarted(now_ms=0))
        []
        >>> [start] = coordinator.handle(EpochStarting(now_ms=1000))
        >>> start.checkpoint_id, start.participants
        (1, frozenset({SubtaskId(vertex=0, subtask=0)}))
    """

    def __init__(self, subtasks: Iterable[SubtaskId], settings: CoordinatorSettings, *, first_id: int = 1) -> None:
        self._subtasks = frozenset(subtasks)
        self._settings = settings
        self._next_id = first_id
        self._running = False
        self._pending: dict[int, _Pending] = {}  # in the order of their ids
        self._requests: list[CheckpointRequested] = []
        self._finished: frozenset[SubtaskId] = frozenset()  # subtasks that are no longer asked for a snapshot
        self._suspended = False  # a subtask has finished, and the settings end checkpointing then
        self._schedule = Schedule(settings)
        self._last_completed_id: int | None = None
        self._failures_in_a_row = 0
        self.history: deque[CheckpointStats] = deque(maxlen=HISTORY_LENGTH)

    @property
    def pending_ids(self) -> frozenset[int]:
        """The checkpoints and savepoints in flight."""
        return frozenset(self._pending)

    @property
    def newest_id(self) -> int:
        """The newest checkpoint begun. Every file of this driver was written for this one or an older one."""
        return self._next_id - 1

    @property
    def last_completed_id(self) -> int | None:
        """The newest checkpoint that this coordinator has completed."""
        return self._last_completed_id

    def is_held_back(self, now_ms: int) -> bool:
        """Return whether a periodic checkpoint is due and only waits for one in flight."""
        due_ms = self._schedule.due_ms()
        held = self._running and not self._suspended and len(self._pending) >= self._settings.concurrent
        return held and due_ms is not None and due_ms <= now_ms

    @property
    def is_requested(self) -> bool:
        """Whether a requested checkpoint or savepoint starts with the next epoch."""
        return any(self._may_start(forced=request.forced) for request in self._requests)

    @property
    def refusal(self) -> str | None:
        """The reason checkpointing is suspended, or None if it is active."""
        return _SOME_FINISHED if self._suspended else None

    def handle(self, event: Event) -> list[Action]:
        """Take note of an event; return the actions to perform, in order."""
        match event:
            case EpochStarting():
                self._schedule.backlog = event.backlog
                expired = self._expire(event.now_ms)
                failing = any(isinstance(action, FailJob) for action in expired)
                return expired if failing else [*expired, *self._start(event.now_ms)]
            case Tick():
                return self._expire(event.now_ms)
            case CheckpointRequested():
                return self._request(event)
            case BarrierPassed():
                return self._pass_barrier(event)
            case SnapshotDone():
                return self._acknowledge(event)
            case SnapshotFailed():
                why = f"{_named(event.subtask)} could not write its state: {event.why}"
                return self._fail(event.checkpoint_id, why, event.now_ms, by_subtask=True, error=event.error)
            case MetadataWritten():
                return self._complete(event)
            case MetadataFailed():
                return self._fail_metadata(event)
            case JobStarted():
                return self._begin_run(event)
            case JobFailed():
                return self._end_run(event)
            case _:
                assert_never(event)

    def next_due_ms(self, now_ms: int) -> int | None:
        """Return when the next event is due at the latest if nothing else happens; None if nothing is due."""
        due = [p.triggered_ms + self._settings.timeout_ms for p in self._pending.values() if not p.writing]
        if self.is_requested:
            due.append(now_ms)
        elif self._may_start(forced=False) and (trigger := self._schedule.due_ms()) is not None:
            due.append(trigger)
        return max(now_ms, min(due)) if due else None

    # ---------------------------------------------------------------------------------------------------- starting

    def _request(self, event: CheckpointRequested) -> list[Action]:
        if len(self._requests) >= MOST_REQUESTS:
            return [RefuseRequest(event.request_id, f"{MOST_REQUESTS} requests are already waiting")]
        self._requests.append(event)
        return self._refuse_requests(_SOME_FINISHED) if self._suspended else []

    def _refuse_requests(self, why: str) -> list[Action]:
        refused = [RefuseRequest(request.request_id, why) for request in self._requests]
        self._requests.clear()
        return [*refused]

    def _start(self, now_ms: int) -> list[Action]:
        request = self._take_request()
        if request is None:
            trigger_ms = self._schedule.due_ms()
            if trigger_ms is None or now_ms < trigger_ms or not self._may_start(forced=False):
                return []
            self._schedule.triggered(now_ms)
        pending = _Pending(
            checkpoint_id=self._next_id,
            kind=request.kind if request else "checkpoint",
            request_id=request.request_id if request else "",
            triggered_ms=now_ms,
            participants=self._subtasks - self._finished,
            finished=self._finished,
            synchronous=request is not None and request.synchronous,
            last=request is not None and request.last,
        )
        self._next_id += 1
        self._pending[pending.checkpoint_id] = pending
        start = StartCheckpoint(pending.checkpoint_id, pending.participants, pending.kind, pending.request_id)
        # Without participants, the answers are complete from the start.
        return [start, *self._write_next(now_ms)]

    def _take_request(self) -> CheckpointRequested | None:
        # Flink: savepoints before checkpoints, forced before not, older first; the sort is stable.
        for request in sorted(self._requests, key=lambda r: (r.kind != "savepoint", not r.forced)):
            if self._may_start(forced=request.forced):
                self._requests.remove(request)
                return request
        return None

    def _may_start(self, *, forced: bool) -> bool:
        if not self._running or self._suspended or any(p.last for p in self._pending.values()):
            return False
        return forced or len(self._pending) < self._settings.concurrent

    # --------------------------------------------------------------------------------------------------- completing

    def _pass_barrier(self, event: BarrierPassed) -> list[Action]:
        pending = self._pending.get(event.checkpoint_id)
        if pending is not None:
            pending.barrier_ms = event.now_ms
        return []

    def _acknowledge(self, event: SnapshotDone) -> list[Action]:
        snapshot = event.snapshot
        subtask = SubtaskId(snapshot.vertex, snapshot.subtask)
        created = files_created_for(snapshot, event.checkpoint_id)
        pending = self._pending.get(event.checkpoint_id)
        if pending is None:
            # A late answer. The files of an aborted checkpoint are deleted. A completed checkpoint may refer to its
            # files; if it does not, retention finds them.
            aborted = any(s.checkpoint_id == event.checkpoint_id and not s.completed for s in self.history)
            return [DiscardFiles(event.checkpoint_id, created)] if aborted and created else []
        first = pending.answers.get(subtask)
        if subtask not in pending.participants or first is not None:
            keep = files_created_for(first, event.checkpoint_id) if first is not None else ()
            extra = tuple(path for path in created if path not in keep)
            return [DiscardFiles(event.checkpoint_id, extra)] if extra else []
        pending.answers[subtask] = snapshot
        return self._write_next(event.now_ms)

    def _write_next(self, now_ms: int) -> list[Action]:
        """Write the metadata of a checkpoint that has all answers, one at a time: checkpoints complete in order."""
        if any(p.writing for p in self._pending.values()):
            return []
        for pending in list(self._pending.values()):
            if not pending.answered:
                continue
            if not self._settings.after_tasks_finish and any(s.finished for s in pending.answers.values()):
                # Flink: declines the checkpoint because not all subtasks run, which does not count as a failure.
                self._suspended = True
                aborted = [*self._abort(pending, _SOME_FINISHED, now_ms), *self._refuse_requests(_SOME_FINISHED)]
                return [*aborted, *self._write_next(now_ms)]
            pending.writing = True
            return [
                WriteMetadata(
                    checkpoint_id=pending.checkpoint_id,
                    triggered_ms=pending.triggered_ms,
                    snapshots=tuple(pending.answers[subtask] for subtask in sorted(pending.answers)),
                    finished=pending.finished,
                    kind=pending.kind,
                    request_id=pending.request_id,
                )
            ]
        return []

    def _settle(self, done: _Pending) -> None:
        """Stop asking for snapshots of the subtasks that had finished when a completed checkpoint was taken."""
        finished = self._finished | {subtask for subtask, snapshot in done.answers.items() if snapshot.finished}
        with_union = {s.vertex for s in done.answers.values() if has_union_state(s.operators)}
        self._finished |= settled(finished, self._subtasks, with_union)

    def _complete(self, event: MetadataWritten) -> list[Action]:
        done = self._pending.pop(event.checkpoint_id)
        assert done.writing, f"the metadata of checkpoint {event.checkpoint_id} was not asked for"
        self._record(done, event.now_ms, why=None)
        actions: list[Action] = [NotifyComplete(done.checkpoint_id)]
        if done.kind == "checkpoint":
            self._last_completed_id = done.checkpoint_id
            self._schedule.completed(event.now_ms)
            self._failures_in_a_row = 0
            for older in [p for p in self._pending.values() if p.checkpoint_id < done.checkpoint_id]:
                if older.kind == "checkpoint":
                    actions += self._abort(older, f"subsumed by checkpoint {done.checkpoint_id}", event.now_ms)
            if self._running:
                self._settle(done)
        return [*actions, *self._write_next(event.now_ms)]

    # ------------------------------------------------------------------------------------------------------ failing

    def _expire(self, now_ms: int) -> list[Action]:
        actions: list[Action] = []
        for pending in list(self._pending.values()):
            waited_ms = now_ms - pending.triggered_ms
            # Not while the metadata is written: the checkpoint may exist already, and must not be aborted as well.
            if waited_ms >= self._settings.timeout_ms and not pending.writing:
                missing = sorted(pending.participants - pending.answers.keys())
                why = f"expired after {waited_ms} ms; no answer yet from {_listed(missing)}"
                actions += self._fail(pending.checkpoint_id, why, now_ms)
                if isinstance(actions[-1], FailJob):
                    break
        return actions

    def _fail_metadata(self, event: MetadataFailed) -> list[Action]:
        assert self._pending[event.checkpoint_id].writing
        self._pending[event.checkpoint_id].writing = False
        failed = self._fail(event.checkpoint_id, f"could not write the metadata: {event.why}", event.now_ms)
        failing = any(isinstance(action, FailJob) for action in failed)
        return failed if failing else [*failed, *self._write_next(event.now_ms)]

    def _fail(
        self,
        checkpoint_id: int,
        why: str,
        now_ms: int,
        *,
        by_subtask: bool = False,
        error: UserFunctionError | None = None,
    ) -> list[Action]:
        """Abort a checkpoint because of a failure, which counts once for each checkpoint."""
        pending = self._pending.get(checkpoint_id)
        if pending is None or pending.writing:
            return []  # the checkpoint is over already, or has all answers and only a repeated snapshot has failed
        actions = self._abort(pending, why, now_ms)
        if pending.synchronous and by_subtask and self._running:
            return [*actions, FailJob(f"the savepoint that the job was to end with, {checkpoint_id}, failed: {why}")]
        if pending.kind == "savepoint" or not self._running:
            return actions
        self._failures_in_a_row += 1
        tolerable = self._settings.tolerable_failures
        if tolerable is not None and self._failures_in_a_row > tolerable:
            self._failures_in_a_row = 0
            reason = (
                f"more than {tolerable} checkpoints in a row failed (tolerable checkpoint failures: {tolerable}); "
                f"the last one, checkpoint {checkpoint_id}: {why}"
            )
            actions.append(FailJob(reason, error if tolerable == 0 else None))
        return actions

    def _abort(self, pending: _Pending, why: str, now_ms: int) -> list[Action]:
        """Abort a checkpoint. The caller decides whether that counts as a failure."""
        del self._pending[pending.checkpoint_id]
        self._record(pending, now_ms, why=why)
        return [NotifyAborted(pending.checkpoint_id, why), self._discard(pending)]

    def _discard(self, pending: _Pending) -> DiscardFiles:
        created = [files_created_for(snapshot, pending.checkpoint_id) for snapshot in pending.answers.values()]
        paths = tuple(path for paths in created for path in paths)
        return DiscardFiles(pending.checkpoint_id, paths, directory=True)

    # ---------------------------------------------------------------------------------------------- the job's own life

    def _begin_run(self, event: JobStarted) -> list[Action]:
        actions: list[Action] = []
        for pending in list(self._pending.values()):
            assert pending.writing, "a job that starts has nothing in flight"
            # The loop was interrupted after WriteMetadata and before its outcome. The newest checkpoint that exists
            # was just restored: either it is this one, or this one never came to exist.
            if pending.checkpoint_id == event.restored_id:
                del self._pending[pending.checkpoint_id]
                self._record(pending, event.now_ms, why=None)
            else:
                actions += self._abort(pending, "the job failed before its metadata was written", event.now_ms)
        self._running = True
        self._subtasks = self._subtasks if event.subtasks is None else event.subtasks
        self._finished = event.finished
        self._suspended = bool(event.finished) and not self._settings.after_tasks_finish
        if event.restored_id is not None:
            self._next_id = max(self._next_id, event.restored_id + 1)
        self._schedule.begin(event.now_ms)
        return actions

    def _end_run(self, event: JobFailed) -> list[Action]:
        """Abort the checkpoints in flight, which does not count as a failure.

        A checkpoint whose metadata is being written is not aborted: its outcome must be known before the newest
        checkpoint is chosen for the restart.
        """
        self._running = False
        because = f": {event.why}" if event.why else ""
        actions = self._refuse_requests(f"the job failed before it could be started{because}")
        for pending in [p for p in self._pending.values() if not p.writing]:
            actions += self._abort(pending, f"the job failed{because}", event.now_ms)
        return actions

    def _record(self, pending: _Pending, now_ms: int, *, why: str | None) -> None:
        answers = pending.answers.values()
        self.history.append(
            CheckpointStats(
                checkpoint_id=pending.checkpoint_id,
                kind=pending.kind,
                completed=why is None,
                triggered_ms=pending.triggered_ms,
                ended_ms=now_ms,
                barrier_ms=pending.barrier_ms,
                bytes_written=sum(s.bytes_written for s in answers),
                longest_sync_ms=max((s.sync_ms for s in answers), default=0.0),
                longest_async_ms=max((s.async_ms for s in answers), default=0.0),
                why=why,
            )
        )


def _named(subtask: SubtaskId) -> str:
    return f"subtask {subtask.subtask} of vertex {subtask.vertex}"


def _listed(subtasks: list[SubtaskId]) -> str:
    shown = ", ".join(_named(subtask) for subtask in subtasks[:3])
    return shown if len(subtasks) <= 3 else f"{shown} and {len(subtasks) - 3} more"
