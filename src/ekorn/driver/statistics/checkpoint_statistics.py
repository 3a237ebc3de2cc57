"""The checkpoints and savepoints of a job, for people to look at: in flight, completed, failed, restored."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from ekorn.clock import Clock
from ekorn.graph.addresses import SubtaskId
from ekorn.state.snapshots import NO_ALIGNMENT, AlignmentStats, SubtaskSnapshot

__all__ = ["CheckpointRecord", "CheckpointStatistics", "RestoredRecord", "SnapshotRecord"]

_MOST_ENDED = 100

Outcome = Literal["IN_PROGRESS", "COMPLETED", "FAILED"]


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """One subtask's part of a checkpoint.

    Attributes:
        acknowledged_ms: When its report arrived, in milliseconds since 1970.
        state_bytes: The size of all files that it refers to.
        written_bytes: The size of what was written for this checkpoint.
        alignment: How the mark of the checkpoint came to the subtask.
    """

    acknowledged_ms: int
    state_bytes: int
    written_bytes: int
    sync_ms: float
    async_ms: float
    alignment: AlignmentStats = NO_ALIGNMENT


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """One checkpoint or savepoint.

    Attributes:
        savepoint_format: The format of a savepoint, as Flink names it; None for a checkpoint.
        synchronous: Whether the job ends with it.
        triggered_ms: When it was triggered, in milliseconds since 1970.
        ended_ms: When it completed or failed; None while it is in flight.
        participants: The subtasks that take a snapshot.
        snapshots: The parts that have arrived.
        path: Where it lies, once it is complete.
        why: Why it failed.
        discarded: Whether its files are deleted.
    """

    checkpoint_id: int
    savepoint_format: Literal["CANONICAL", "NATIVE"] | None
    synchronous: bool
    triggered_ms: int
    participants: frozenset[SubtaskId]
    snapshots: Mapping[SubtaskId, SnapshotRecord] = field(default_factory=dict)
    outcome: Outcome = "IN_PROGRESS"
    ended_ms: int | None = None
    path: str | None = None
    why: str | None = None
    discarded: bool = False

    @property
    def is_savepoint(self) -> bool:
        """Whether a user asked for it, as a savepoint."""
        return self.savepoint_format is not None

    @property
    def state_bytes(self) -> int:
        """The size of the whole state."""
        return sum(each.state_bytes for each in list(self.snapshots.values()))

    @property
    def written_bytes(self) -> int:
        """The size of what was written for this checkpoint."""
        return sum(each.written_bytes for each in list(self.snapshots.values()))

    @property
    def in_flight_bytes(self) -> int:
        """The size of the records in flight that were written."""
        return sum(each.alignment.in_flight_bytes for each in list(self.snapshots.values()))

    @property
    def last_acknowledged_ms(self) -> int | None:
        """When the last part arrived; None if none has."""
        return max((each.acknowledged_ms for each in list(self.snapshots.values())), default=None)


@dataclass(frozen=True, slots=True)
class RestoredRecord:
    """A checkpoint or savepoint that an attempt started from."""

    checkpoint_id: int
    is_savepoint: bool
    restored_ms: int
    path: str | None


class CheckpointStatistics:
    """The latest checkpoints of a job. The job's thread writes, any thread reads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pending: dict[int, CheckpointRecord] = {}
        self._ended: tuple[CheckpointRecord, ...] = ()  # the oldest first
        self.completed = 0
        self.failed = 0
        self.restored = 0
        self.last_restored: RestoredRecord | None = None
        self.last_completed: CheckpointRecord | None = None
        self.last_savepoint: CheckpointRecord | None = None
        self.last_failed: CheckpointRecord | None = None

    def begin(
        self,
        checkpoint_id: int,
        participants: frozenset[SubtaskId],
        savepoint_format: Literal["CANONICAL", "NATIVE"] | None = None,
        *,
        synchronous: bool = False,
    ) -> None:
        """Note that a checkpoint was triggered."""
        now_ms = self._clock.now_ms()
        record = CheckpointRecord(checkpoint_id, savepoint_format, synchronous, now_ms, participants)
        self._pending = {**self._pending, checkpoint_id: record}

    def acknowledge(self, checkpoint_id: int, snapshot: SubtaskSnapshot) -> None:
        """Note that a subtask's part has arrived."""
        pending = self._pending.get(checkpoint_id)
        if pending is None:
            return  # it was aborted
        part = SnapshotRecord(
            self._clock.now_ms(),
            _size_of(snapshot),
            snapshot.bytes_written,
            snapshot.sync_ms,
            snapshot.async_ms,
            snapshot.alignment,
        )
        # The dictionary grows in place: a new one for each of N parts would make N squared entries. Readers copy it.
        parts = pending.snapshots
        assert isinstance(parts, dict)
        parts[SubtaskId(snapshot.vertex, snapshot.subtask)] = part

    def complete(self, checkpoint_id: int, path: str | None) -> None:
        """Note that a checkpoint exists."""
        record = self._end(checkpoint_id, "COMPLETED", path=path)
        if record is not None:
            self.completed += 1
            if record.is_savepoint:
                self.last_savepoint = record
            else:
                self.last_completed = record

    def fail(self, checkpoint_id: int, why: str) -> None:
        """Note that a checkpoint was aborted."""
        record = self._end(checkpoint_id, "FAILED", why=why)
        if record is not None:
            self.failed += 1
            self.last_failed = record

    def end(self) -> None:
        """Note that the job has ended: checkpoints in flight do not complete any more."""
        for checkpoint_id in list(self._pending):
            self.fail(checkpoint_id, "the job ended before the checkpoint was complete")

    def keep(self, retained_ids: Set[int]) -> None:
        """Note which checkpoints still have their files. Savepoints belong to the user and are kept."""
        gone = {
            each.checkpoint_id
            for each in self._ended
            if each.outcome == "COMPLETED" and not each.is_savepoint and each.checkpoint_id not in retained_ids
        }
        if any(each.checkpoint_id in gone and not each.discarded for each in self._ended):
            self._ended = tuple(
                replace(each, discarded=True) if each.checkpoint_id in gone else each for each in self._ended
            )
            if self.last_completed is not None and self.last_completed.checkpoint_id in gone:
                self.last_completed = replace(self.last_completed, discarded=True)

    def restore(self, checkpoint_id: int, path: str | None, *, is_savepoint: bool) -> None:
        """Note that an attempt starts from a checkpoint."""
        self.restored += 1
        self.last_restored = RestoredRecord(checkpoint_id, is_savepoint, self._clock.now_ms(), path)

    def records(self) -> list[CheckpointRecord]:
        """Return the checkpoints in flight and the latest ones that have ended, the newest first."""
        pending = self._pending  # read first: a checkpoint that ends meanwhile is in both, and has ended
        found = pending | {each.checkpoint_id: each for each in self._ended}
        return [found[number] for number in sorted(found, reverse=True)]

    def find(self, checkpoint_id: int) -> CheckpointRecord | None:
        """Return a checkpoint that is remembered."""
        return next((each for each in self.records() if each.checkpoint_id == checkpoint_id), None)

    @property
    def in_progress(self) -> int:
        """How many checkpoints are in flight."""
        return len(self._pending)

    def _end(
        self, checkpoint_id: int, outcome: Outcome, *, path: str | None = None, why: str | None = None
    ) -> CheckpointRecord | None:
        pending = self._pending.get(checkpoint_id)
        if pending is None:
            return None
        now_ms = self._clock.now_ms()
        record = replace(
            pending, outcome=outcome, ended_ms=now_ms, path=path, why=why, snapshots=dict(pending.snapshots)
        )
        self._ended = (*self._ended[1 - _MOST_ENDED :], record)
        self._pending = {number: each for number, each in self._pending.items() if number != checkpoint_id}
        return record


def _size_of(snapshot: SubtaskSnapshot) -> int:
    return sum(file.size for operator in snapshot.operators for file in operator.files())
