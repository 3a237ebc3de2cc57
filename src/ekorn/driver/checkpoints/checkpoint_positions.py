"""The positions at which checkpoints are taken: up to where the job's output stands once a checkpoint is complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ekorn.graph.addresses import SubtaskId

__all__ = ["CheckpointPosition", "CheckpointPositions"]


@dataclass(frozen=True)
class CheckpointPosition:
    """The end of the epoch that carried a checkpoint, and how many records each source subtask had read by then."""

    epoch: int
    records_read: Mapping[SubtaskId, int]


class CheckpointPositions:
    """The positions of the checkpoints in flight, and of the completed savepoints that a restart may go back to."""

    def __init__(self) -> None:
        self._in_flight: dict[int, CheckpointPosition] = {}
        self._savepoints: dict[int, CheckpointPosition] = {}

    def begin(self, checkpoint_id: int, position: CheckpointPosition) -> None:
        """Note a checkpoint whose epoch is about to run; the position holds what is known before the epoch."""
        self._in_flight[checkpoint_id] = position

    def place(self, checkpoint_id: int, position: CheckpointPosition) -> None:
        """Note where a checkpoint was taken, after its epoch. A checkpoint that was aborted meanwhile is left out."""
        if checkpoint_id in self._in_flight:
            self._in_flight[checkpoint_id] = position

    def drop(self, checkpoint_id: int) -> None:
        """Forget an aborted checkpoint."""
        self._in_flight.pop(checkpoint_id, None)

    def take_completed(self, checkpoint_id: int, is_savepoint: Callable[[int], object]) -> CheckpointPosition:
        """Return the position of a completed checkpoint, and forget the older checkpoints that it subsumes."""
        position = self._in_flight[checkpoint_id]
        self._in_flight = {c: e for c, e in self._in_flight.items() if c > checkpoint_id or is_savepoint(c)}
        self._savepoints = {c: e for c, e in self._savepoints.items() if c > checkpoint_id}
        return position

    def take_savepoint(self, checkpoint_id: int) -> CheckpointPosition:
        """Return the position of a completed savepoint. A savepoint subsumes no checkpoint."""
        return self._in_flight.pop(checkpoint_id)

    def keep_savepoint(self, checkpoint_id: int, position: CheckpointPosition) -> None:
        """Keep the position of a savepoint that commits nothing now, but that a restart may go back to."""
        self._savepoints[checkpoint_id] = position

    def of_savepoint(self, checkpoint_id: int | None) -> CheckpointPosition | None:
        """Return the position that was kept for a savepoint."""
        return self._savepoints.get(checkpoint_id) if checkpoint_id is not None else None
