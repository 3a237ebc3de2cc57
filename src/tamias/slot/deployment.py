"""What a slot is told when an attempt of a job starts, and what it reports while the attempt runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from tamias.config.checkpoint_settings import LocalCopySettings
from tamias.config.rocksdb_settings import RocksDBSettings
from tamias.graph.job_graph import JobGraph
from tamias.state.snapshots import RestorePlan, SubtaskSnapshot


@dataclass(frozen=True)
class Deployment:
    """One attempt of a job: what every slot is told."""

    job_id: str
    graph: JobGraph
    attempt: int
    term: int = 0  # of the driver's claim on the checkpoint directory: part of every file name
    checkpoint_directory: str | None = None  # None keeps state in the driver's memory
    inline_threshold: int = 20 * 1024
    max_state_size: int = 5 * 1024 * 1024  # of one state kept in memory
    state_backend: str = "hashmap"
    rocksdb: RocksDBSettings | None = None
    incremental: bool = True
    asynchronous: bool = True  # snapshots are written while the job goes on; else before an epoch is acknowledged
    compression: bool = False  # of state files
    write_buffer: int | None = None  # bytes handed over to the file system at once; None: whole files
    local_copies: LocalCopySettings = field(default_factory=LocalCopySettings)
    restore: RestorePlan | None = None
    only: frozenset[tuple[int, int]] | None = None  # subtasks that start anew, the others go on; None: all start anew


@dataclass(frozen=True)
class SnapshotWritten:
    """A subtask's state files of a checkpoint are durable."""

    checkpoint_id: int
    attempt: int
    snapshot: SubtaskSnapshot


@dataclass(frozen=True)
class SnapshotNotWritten:
    """A subtask could not write its state files."""

    checkpoint_id: int
    attempt: int
    vertex: int
    subtask: int
    why: str


SlotEvent = SnapshotWritten | SnapshotNotWritten
