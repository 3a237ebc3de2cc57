"""What an engine is: it hosts the subtasks of a job and runs one epoch at a time. The job room drives it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from tamias.engine.local_copies import LocalCopySettings
from tamias.graph.job_graph import JobGraph
from tamias.runtime.epoch import Ack, EpochOrder
from tamias.state.rocksdb_settings import RocksDBSettings
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
class Failure:
    """Why an epoch, a deployment or a notification failed, and of whom it is known that they did."""

    error: BaseException
    slot: int | None = None
    subtasks: frozenset[tuple[int, int]] = frozenset()  # (vertex, index); none: nothing is known of anyone


@dataclass(frozen=True)
class EpochResult:
    """What came of an epoch: an answer from every subtask, or a failure.

    With a failure that names its subtasks come the answers of all that are in no region with them, whose epoch went
    well. After any other failure nothing is known, and everything starts anew.
    """

    acks: list[Ack] = field(default_factory=list)
    failure: Failure | None = None


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


class Engine(Protocol):
    """Hosts a job's subtasks. Used by one thread, but for `cancel_epoch` and `wake`."""

    def deploy(self, deployment: Deployment) -> Failure | None:
        """Start an attempt: fresh slots where one is gone, new subtasks in all of them, state restored, opened."""

    def run_epoch(self, order: EpochOrder) -> EpochResult:
        """Push one epoch through all levels."""

    def events(self) -> list[SlotEvent]:
        """What the slots reported since the last call."""

    def wait(self, timeout_s: float) -> None:
        """Sleep until a slot reports something, `wake` is called, or the time is up."""

    def wake(self) -> None:
        """End a `wait`. From any thread."""

    def lost(self) -> Failure | None:
        """A slot that is gone, found while no epoch runs: what it has not reported will never be."""

    def cancel_epoch(self) -> None:
        """Make a running `run_epoch` return soon. From any thread."""

    def notify_completed(self, checkpoint_id: int) -> Failure | None:
        """Tell all subtasks that a checkpoint is complete."""

    def notify_aborted(self, checkpoint_id: int) -> Failure | None:
        """Tell all subtasks that a checkpoint was given up."""

    def close_subtasks(self) -> Failure | None:
        """Close all subtasks in the order of the graph; what `close` raised, if anything."""

    def shutdown(self) -> None:
        """Release everything: processes, sockets, folders. Never raises for what is gone already."""
