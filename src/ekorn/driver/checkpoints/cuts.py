"""The cuts at which checkpoints are taken: up to where the job's output stands once a checkpoint is complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ekorn.graph.addresses import SubtaskId

__all__ = ["Cut", "Cuts"]


@dataclass(frozen=True)
class Cut:
    """The end of the epoch that carried a checkpoint, and how many records each source subtask had read by then."""

    epoch: int
    records_read: Mapping[SubtaskId, int]


class Cuts:
    """The cuts of the checkpoints in flight, and of the completed savepoints that a restart may go back to."""

    def __init__(self) -> None:
        self._in_flight: dict[int, Cut] = {}
        self._savepoints: dict[int, Cut] = {}

    def begin(self, checkpoint_id: int, cut: Cut) -> None:
        """Note a checkpoint whose epoch is about to run; the cut holds what is known before the epoch."""
        self._in_flight[checkpoint_id] = cut

    def place(self, checkpoint_id: int, cut: Cut) -> None:
        """Note where a checkpoint was taken, after its epoch. A checkpoint that was aborted meanwhile is left out."""
        if checkpoint_id in self._in_flight:
            self._in_flight[checkpoint_id] = cut

    def drop(self, checkpoint_id: int) -> None:
        """Forget an aborted checkpoint."""
        self._in_flight.pop(checkpoint_id, None)

    def take_completed(self, checkpoint_id: int, is_savepoint: Callable[[int], object]) -> Cut:
        """Return the cut of a completed checkpoint, and forget the older checkpoints that it subsumes."""
        cut = self._in_flight[checkpoint_id]
        self._in_flight = {c: e for c, e in self._in_flight.items() if c > checkpoint_id or is_savepoint(c)}
        self._savepoints = {c: e for c, e in self._savepoints.items() if c > checkpoint_id}
        return cut

    def take_savepoint(self, checkpoint_id: int) -> Cut:
        """Return the cut of a completed savepoint. A savepoint subsumes no checkpoint."""
        return self._in_flight.pop(checkpoint_id)

    def keep_savepoint(self, checkpoint_id: int, cut: Cut) -> None:
        """Keep the cut of a savepoint that commits nothing now, but that a restart may go back to."""
        self._savepoints[checkpoint_id] = cut

    def of_savepoint(self, checkpoint_id: int | None) -> Cut | None:
        """Return the cut that was kept for a savepoint."""
        return self._savepoints.get(checkpoint_id) if checkpoint_id is not None else None
