"""The deployment that every slot receives when an attempt of a job starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from ekorn.config import options
from ekorn.config.settings.checkpoint_settings import CheckpointSettings, LocalCopySettings
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.state.snapshots import RestorePlan


@dataclass(frozen=True)
class Deployment:
    """One attempt of a job."""

    job_id: str
    graph: JobGraph
    attempt: int
    term: int = 0  # number of the driver's claim on the checkpoint directory; part of every file name
    checkpoint_directory: str | None = None  # None keeps checkpoints in the driver's memory
    inline_threshold_bytes: int = CheckpointSettings.inline_threshold_bytes
    max_state_bytes: int = CheckpointSettings.max_state_bytes  # limit for one state that is kept in the driver's memory
    acknowledged_bytes: int = CheckpointSettings.acknowledged_bytes  # limit for all such states of one subtask
    state_backend: str = "hashmap"
    rocksdb: RocksDBSettings | None = None
    incremental: bool = CheckpointSettings.incremental
    asynchronous: bool = CheckpointSettings.asynchronous  # False: an epoch waits for its snapshot to be written
    compression: bool = CheckpointSettings.compression  # compress state files
    hashed_files: bool = False  # give state files a SHA-256, since the metadata is signed
    write_buffer: int | None = None  # bytes handed to the file system at once; None: whole files
    local_copies: LocalCopySettings = field(default_factory=LocalCopySettings)
    restore: RestorePlan | None = None
    only: frozenset[SubtaskId] | None = None  # subtasks to restart while the others go on; None: restart all
    # With continuous execution: how long output may wait to be sent together with more; -1: until a blob is full.
    buffer_timeout_ms: int = options.BUFFER_TIMEOUT.default
    slot_hosts: tuple[str, ...] = ()  # the address of each slot's host, by slot; empty where all are on one host
    most_blob_bytes: int = 1 << 20  # of a continuous job; a smaller limit of the job itself takes precedence
    continuous: bool = False  # epochs are marks in the stream: subtasks run without a pause between them
