"""The events that the checkpoint coordinator handles, and the actions that it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ekorn.checkpoint.metadata import CheckpointKind
from ekorn.errors import UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.state.snapshots import SubtaskSnapshot

# ------------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class JobStarted:
    """The job starts, restarts after `JobFailed`, or continues at another parallelism."""

    now_ms: int
    restored_id: int | None = None  # the checkpoint that the job starts from, its own or another job's
    finished: frozenset[SubtaskId] = frozenset()  # subtasks that are asked for no snapshot
    subtasks: frozenset[SubtaskId] | None = None  # every subtask, if the parallelism is another one now


@dataclass(frozen=True, slots=True)
class JobFailed:
    """An attempt of the job has failed, whether the job is restarted or not."""

    now_ms: int
    why: str = ""  # the answer to savepoint requests


@dataclass(frozen=True, slots=True)
class EpochStarting:
    """The loop is about to run an epoch, which can carry a checkpoint."""

    now_ms: int
    backlog: bool = False  # a source had more to read at the end of the last epoch


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed. Drives timeouts while no epoch starts."""

    now_ms: int


@dataclass(frozen=True, slots=True)
class CheckpointRequested:
    """A checkpoint or savepoint is requested now: the final checkpoint of a bounded job, or a user's savepoint.

    A request does not wait for the pause. Unless it is forced, it waits for a free place.

    Args:
        now_ms: The time of the request.
        kind: Whether a checkpoint or a savepoint is requested.
        forced: Start even if the maximum of concurrent checkpoints is reached.
        request_id: Comes back in StartCheckpoint, or in RefuseRequest.
        synchronous: The job ends with the savepoint and reads nothing after it. A subtask that cannot write its
            snapshot then fails the job.
        last: The job is cancelled after the savepoint. Nothing is started until its outcome is known: what sinks
            commit with a later checkpoint would be written again by a job that starts from the savepoint.
    """

    now_ms: int
    kind: CheckpointKind = "checkpoint"
    forced: bool = False
    request_id: str = ""
    synchronous: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class BarrierPassed:
    """The epoch that carried a checkpoint has ended: every participant has taken the synchronous part."""

    checkpoint_id: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class SnapshotDone:
    """The snapshot of a participant is durable."""

    checkpoint_id: int
    snapshot: SubtaskSnapshot
    now_ms: int


@dataclass(frozen=True, slots=True)
class SnapshotFailed:
    """A participant could not write its snapshot, or an exception of the user's `snapshot_state` declined it."""

    checkpoint_id: int
    subtask: SubtaskId
    why: str
    now_ms: int
    error: UserFunctionError | None = None


@dataclass(frozen=True, slots=True)
class MetadataWritten:
    """The metadata of a checkpoint exists: the commit point is passed."""

    checkpoint_id: int
    now_ms: int


@dataclass(frozen=True, slots=True)
class MetadataFailed:
    """The metadata could not be written, as far as the driver can tell. After `Fenced` the driver stops instead."""

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


# ---------------------------------------------------------------------------------------------------------- actions


@dataclass(frozen=True, slots=True)
class StartCheckpoint:
    """Let the next epoch carry this checkpoint to the participants."""

    checkpoint_id: int
    participants: frozenset[SubtaskId]
    kind: CheckpointKind = "checkpoint"
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class WriteMetadata:
    """All participants have answered: publish the metadata, then report MetadataWritten or MetadataFailed."""

    checkpoint_id: int
    triggered_ms: int
    snapshots: tuple[SubtaskSnapshot, ...]
    finished: frozenset[SubtaskId]  # took no snapshot, having finished in an earlier checkpoint
    kind: CheckpointKind = "checkpoint"
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class NotifyComplete:
    """The checkpoint exists: apply retention, then notify the subtasks, before the next epoch starts."""

    checkpoint_id: int


@dataclass(frozen=True, slots=True)
class NotifyAborted:
    """The checkpoint is aborted: notify the subtasks."""

    checkpoint_id: int
    why: str


@dataclass(frozen=True, slots=True)
class DiscardFiles:
    """Delete files. A file that cannot be deleted now is deleted with a later checkpoint.

    With `directory` the whole checkpoint goes, in one call of `CheckpointDirectory.discard`, which deletes the metadata
    first. Otherwise only the files go, with `CheckpointDirectory.delete_files`.
    """

    checkpoint_id: int
    paths: tuple[str, ...] = ()
    directory: bool = False


@dataclass(frozen=True, slots=True)
class RefuseRequest:
    """A requested checkpoint will not be started: answer the request."""

    request_id: str
    why: str


@dataclass(frozen=True, slots=True)
class FailJob:
    """Fail the attempt: too many checkpoints failed in a row, or the savepoint that the job was to end with.

    Attributes:
        why: The reason.
        error: The exception of the user's function that is the whole reason, if no failed checkpoint is tolerated.
    """

    why: str
    error: UserFunctionError | None = None


Action: TypeAlias = (
    StartCheckpoint | WriteMetadata | NotifyComplete | NotifyAborted | DiscardFiles | RefuseRequest | FailJob
)
