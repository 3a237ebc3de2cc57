"""The deployment that every slot receives when an attempt of a job starts."""

from __future__ import annotations

from dataclasses import dataclass, field

from ekorn.config.settings.checkpoint_settings import LocalCopySettings
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
    inline_threshold_bytes: int = 20 * 1024
    max_state_bytes: int = 5 * 1024 * 1024  # limit for one state that is kept in the driver's memory
    state_backend: str = "hashmap"
    rocksdb: RocksDBSettings | None = None
    incremental: bool = True
    asynchronous: bool = True  # False: a snapshot is written before its epoch is acknowledged
    compression: bool = False  # compress state files
    hashed_files: bool = False  # give state files a SHA-256, since the metadata is signed
    write_buffer: int | None = None  # bytes handed to the file system at once; None: whole files
    local_copies: LocalCopySettings = field(default_factory=LocalCopySettings)
    restore: RestorePlan | None = None
    only: frozenset[SubtaskId] | None = None  # subtasks to restart while the others go on; None: restart all
    buffer_timeout_ms: int = 100  # where jobs run continuously: how long output may wait for more; -1: for a full blob
    slot_hosts: tuple[str, ...] = ()  # the address of each slot's host, by slot; empty where all are on one host
    most_blob_bytes: int = 1 << 20  # where jobs run continuously, blobs leave at this size, or at the job's
    continuous: bool = False  # epochs are marks in the stream: subtasks run without a pause between them
