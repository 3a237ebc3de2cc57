"""What the checkpoint coordinator is told, and what it answers with: values, one for each thing that can happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tamias.graph.addresses import SubtaskId
from tamias.state.snapshots import SubtaskSnapshot

Kind: TypeAlias = Literal["checkpoint", "savepoint"]


# ------------------------------------------------------------------------------------------------------- what happened


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The job starts, or starts again, after `JobFailed`."""

    now_ms: int
    restored_id: int | None = None  # the checkpoint it starts from, of this job or of another
    finished: frozenset[SubtaskId] = frozenset()  # subtasks that were restored as finished


@dataclass(frozen=True, slots=True)
class JobFailed:
    """The job is going down, to be restarted or not."""

    now_ms: int
    why: str = ""  # for whoever waits for a savepoint


@dataclass(frozen=True, slots=True)
class EpochStarting:
    """The loop is about to run an epoch, which can carry a checkpoint."""

    now_ms: int
    backlog: bool = False  # sources left off reading in the last epoch although there was more


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; for timeouts while no epoch starts."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """Someone asks for a checkpoint now, or for a savepoint: the last one of a bounded job, or a user's.

    It does not wait for the pause; unless forced it waits for a free place. `synchronous` is the savepoint that a job
    ends with: nothing follows it, so that a subtask which cannot write its part fails the job. `last` is one that the
    job is to be cancelled after: nothing is begun until its outcome is known, since what sinks commit with a later
    checkpoint would be written again by whoever starts from it.
    """

    now_ms: int
    kind: Kind = "checkpoint"
    forced: bool = False
    request_id: str = ""  # comes back in StartCheckpoint, or in RefuseRequest
    synchronous: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class BarrierPassed:
    """The epoch that carried a checkpoint is over: every participant has taken the synchronous part."""

    checkpoint_id: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class SnapshotDone:
    """A participant's state is durable."""

    checkpoint_id: int
    snapshot: SubtaskSnapshot
    now_ms: int


@dataclass(frozen=True, slots=True)
class SnapshotFailed:
    """A participant could not write its state."""

    checkpoint_id: int
    subtask: SubtaskId
    why: str
    now_ms: int


@dataclass(frozen=True, slots=True)
class MetadataWritten:
    """The commit point was passed."""

    checkpoint_id: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class MetadataFailed:
    """The commit point was not passed, as far as one can tell. (Not for `Fenced`: then the driver just stops.)"""

    checkpoint_id: int
    why: str
    now_ms: int


Event: TypeAlias = (
    JobStarted
    | JobFailed
    | EpochStarting
    | Tick
    | CheckpointRequested
    | BarrierPassed
    | SnapshotDone
    | SnapshotFailed
    | MetadataWritten
    | MetadataFailed
)


# ---------------------------------------------------------------------------------------------------------- what to do


@dataclass(frozen=True, slots=True)
class StartCheckpoint:
    """Let the epoch about to run carry this checkpoint to these subtasks."""

    checkpoint_id: int
    participants: frozenset[SubtaskId]
    kind: Kind = "checkpoint"
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class WriteMetadata:
    """Everyone answered: assemble the metadata and publish it; answer with MetadataWritten or MetadataFailed."""

    checkpoint_id: int
    triggered_ms: int
    snapshots: tuple[SubtaskSnapshot, ...]
    finished: frozenset[SubtaskId]  # took no part, having finished in an earlier checkpoint
    kind: Kind = "checkpoint"
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class NotifyComplete:
    """The checkpoint exists: apply retention, then tell the subtasks, before the next epoch starts."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """The checkpoint will never exist: tell the subtasks."""

    checkpoint_id: int
    why: str


@dataclass(frozen=True, slots=True)
class DiscardFiles:
    """Delete files, best effort: leftovers go with a later checkpoint.

    With `directory` the checkpoint is dead: `storage.discard(checkpoint_id, paths)`, in one call, which keeps the order
    that matters. Otherwise only the files: `storage.delete_files(paths)`.
    """

    checkpoint_id: int
    paths: tuple[str, ...] = ()
    directory: bool = False


@dataclass(frozen=True, slots=True)
class RefuseRequest:
    """A requested checkpoint will not be started: tell who asked for it."""

    request_id: str
    why: str


@dataclass(frozen=True, slots=True)
class FailJob:
    """Too many checkpoints failed in a row, or the one that the job was to end with: fail the job, which is then up to
    the restart strategy."""

    why: str


Action: TypeAlias = (
    StartCheckpoint | WriteMetadata | NotifyComplete | NotifyAborted | DiscardFiles | RefuseRequest | FailJob
)
