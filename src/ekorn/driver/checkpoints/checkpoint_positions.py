"""The positions of checkpoints in the stream. A completed checkpoint commits the job's output up to its position."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ekorn.graph.addresses import SubtaskId

__all__ = ["CheckpointPosition", "CheckpointPositions"]


@dataclass(frozen=True)
class CheckpointPosition:
    """The end of the epoch that carried a checkpoint.

    Attributes:
        epoch: The number of the epoch.
        records_read: The records that each source subtask had read at its end.
    """

    epoch: int
    records_read: Mapping[SubtaskId, int]


class CheckpointPositions:
    """The positions of the checkpoints in flight, and of completed savepoints that a restart may restore."""

    def __init__(self) -> None:
        self._in_flight: dict[int, CheckpointPosition] = {}
        self._savepoints: dict[int, CheckpointPosition] = {}

    def begin(self, checkpoint_id: int, position: CheckpointPosition) -> None:
        """Add a checkpoint whose epoch is about to run, with the records read before the epoch."""
        self._in_flight[checkpoint_id] = position

    def update(self, checkpoint_id: int, position: CheckpointPosition) -> None:
        """Set the position of a checkpoint after its epoch. A checkpoint that was aborted meanwhile is ignored."""
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
        """Keep the position of a savepoint that commits nothing now. A restart that restores it commits the output."""
        self._savepoints[checkpoint_id] = position

    def of_savepoint(self, checkpoint_id: int | None) -> CheckpointPosition | None:
        """Return the position that `keep_savepoint` kept; None if there is none."""
        return self._savepoints.get(checkpoint_id) if checkpoint_id is not None else None
