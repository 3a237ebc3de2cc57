"""The events that a slot reports to the driver while an attempt runs."""

from __future__ import annotations

from dataclasses import dataclass

from tamias.graph.addresses import SubtaskId
from tamias.state.snapshots import SubtaskSnapshot


@dataclass(frozen=True)
class SnapshotWritten:
    """A subtask's state files of a checkpoint are durable."""

    checkpoint_id: int
    attempt: int
    snapshot: SubtaskSnapshot


@dataclass(frozen=True)
class SnapshotNotWritten:
    """A subtask's state files of a checkpoint could not be written."""

    checkpoint_id: int
    attempt: int
    subtask: SubtaskId
    why: str


SlotEvent = SnapshotWritten | SnapshotNotWritten
