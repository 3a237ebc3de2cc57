"""The metadata of a checkpoint, as a value. `metadata_file.py` has the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.state.declared import merged
from ekorn.state.snapshots import (
    InFlightFiles,
    OperatorSnapshot,
    StateFile,
    StateInfo,
    SubtaskSnapshot,
)

__all__ = [
    "FORMAT_VERSION",
    "CheckpointKind",
    "CheckpointMetadata",
    "OperatorMetadata",
    "assemble",
]

# The versions of docs/formats/metadata.md. A checkpoint without blobs in flight is written as version 3, which earlier
# releases read.
FORMAT_VERSION = 2
_WITHOUT_IN_FLIGHT = 1

CheckpointKind = Literal["checkpoint", "savepoint"]


@dataclass(frozen=True, slots=True)
class OperatorMetadata:
    """One operator's part of a checkpoint: its identity, and the snapshot of each of its subtasks."""

    operator_id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    subtasks: tuple[OperatorSnapshot | None, ...]  # by subtask; None if it stored nothing
    finished: tuple[bool, ...]  # by subtask: whether it had read its whole input
    states: tuple[StateInfo, ...] = ()

    @property
    def has_state(self) -> bool:
        """Whether any subtask stored state."""
        return any(s is not None and (s.keyed or s.operator_state or s.in_flight) for s in self.subtasks)

    @property
    def in_flight(self) -> tuple[InFlightFiles | None, ...]:
        """The blobs that were on their way to each subtask."""
        return tuple(None if s is None else s.in_flight for s in self.subtasks)

    @property
    def fully_finished(self) -> bool:
        """Whether every subtask had read its whole input."""
        return all(self.finished)

    def files(self) -> Iterator[StateFile]:
        """Yield every state file of every subtask."""
        for snapshot in self.subtasks:
            if snapshot is not None:
                yield from snapshot.files()

    def label(self) -> str:
        """Return the name that errors use: ``'count' (uid 'u1', id 0ab…)``."""
        uid = "no uid" if self.uid is None else f"uid {self.uid!r}"
        return f"{self.name!r} ({uid}, id {self.operator_id})"


@dataclass(frozen=True, slots=True)
class CheckpointMetadata:
    """A completed checkpoint or savepoint."""

    checkpoint_id: int
    job_id: str
    job_name: str
    timestamp_ms: int  # when the checkpoint was triggered
    operators: tuple[OperatorMetadata, ...]
    kind: CheckpointKind = "checkpoint"
    term: int = 0  # the term of the driver that wrote it: see ownership.py

    @property
    def format_version(self) -> int:
        """The version that the metadata is written in: the oldest that has all of it."""
        return FORMAT_VERSION if any(any(operator.in_flight) for operator in self.operators) else _WITHOUT_IN_FLIGHT

    def operator(self, operator_id: str) -> OperatorMetadata | None:
        """Return one operator's part, or None."""
        return next((o for o in self.operators if o.operator_id == operator_id), None)

    def files(self) -> Iterator[StateFile]:
        """Yield every state file of the checkpoint, including inline ones."""
        for operator in self.operators:
            yield from operator.files()

    def paths(self) -> frozenset[str]:
        """Return the paths of the state files, relative to the job's directory."""
        return frozenset(file.path for file in self.files() if file.path is not None)

    @property
    def state_bytes(self) -> int:
        """The bytes of all state files, including shared files of earlier checkpoints."""
        return sum(file.size for file in self.files())


def assemble(
    graph: JobGraph,
    *,
    job_id: str,
    checkpoint_id: int,
    timestamp_ms: int,
    snapshots: Iterable[SubtaskSnapshot],
    finished: Iterable[SubtaskId] = (),
    kind: CheckpointKind = "checkpoint",
    term: int = 0,
) -> CheckpointMetadata:
    """Turn the snapshots of the subtasks into metadata, operator by operator.

    Args:
        graph: The job.
        job_id: The job's id.
        checkpoint_id: The number of the checkpoint.
        timestamp_ms: When the checkpoint was triggered.
        snapshots: The snapshot of each participant.
        finished: The subtasks that took no snapshot, having finished in an earlier checkpoint.
        kind: A checkpoint or a savepoint.
        term: The term of this driver.
    """
    answered = {SubtaskId(s.vertex, s.subtask): s for s in snapshots}
    gone = set(finished)
    operators = []
    for vertex in graph.vertices:
        parts = [answered.get(SubtaskId(vertex.id, index)) for index in range(vertex.parallelism)]
        for index, part in enumerate(parts):
            assert part is not None or (vertex.id, index) in gone, f"subtask {index} of {vertex.name!r} did not answer"
        flags = tuple(part is None or part.finished for part in parts)
        for operator in vertex.operators:
            subtasks = tuple(None if part is None else _of(part, operator.id) for part in parts)
            states = merged(info for s in subtasks if s is not None for info in s.states)
            operators.append(
                OperatorMetadata(
                    operator_id=operator.id,
                    uid=operator.uid,
                    name=operator.name,
                    parallelism=vertex.parallelism,
                    max_parallelism=vertex.max_parallelism,
                    subtasks=subtasks,
                    finished=flags,
                    states=states,
                )
            )
    return CheckpointMetadata(
        checkpoint_id=checkpoint_id,
        job_id=job_id,
        job_name=graph.name,
        timestamp_ms=timestamp_ms,
        operators=tuple(operators),
        kind=kind,
        term=term,
    )


def _of(snapshot: SubtaskSnapshot, operator_id: str) -> OperatorSnapshot | None:
    return next((o for o in snapshot.operators if o.operator_id == operator_id), None)
