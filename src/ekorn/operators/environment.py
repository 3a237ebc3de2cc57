"""The environment that a slot gives to a subtask."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ekorn.clock import Clock
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.functions.results.accumulators import Accumulator
from ekorn.graph.job_graph import JobGraph, Operator, Vertex
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.sources.epoch_cut import EpochCut
from ekorn.state.restored_tables import ReadTables, read_tables


class LoopSubtask(NamedTuple):
    """One subtask of the head and of the tail of a feedback loop."""

    loop: int
    subtask: int


FeedbackQueues = dict[LoopSubtask, deque[tuple[Any, int | None]]]
"""Records with their timestamps, on the way from the tail of a feedback loop to its head."""


@dataclass(frozen=True)
class SubtaskEnvironment:
    """One subtask of one vertex in one attempt, with the services of its slot."""

    job_id: str
    graph: JobGraph
    vertex: Vertex
    index: int
    attempt: int
    clock: Clock
    metrics: dict[str, MetricGroup]  # by operator id, created on first use
    cached_file: Callable[[str], str]  # name -> local path
    accumulators: dict[str, Accumulator[Any, Any]] = field(default_factory=dict)
    state_backend: str = "hashmap"
    rocksdb: RocksDBSettings | None = None
    incremental: bool = True
    reuses_restored: bool = False  # checkpoints go to the restored checkpoint's directory and may refer to its files
    # The slot's queues: the slot hosts both head and tail of a loop.
    feedback_queues: FeedbackQueues = field(default_factory=dict)
    # A blob leaves at this size, or at the size that the job sets if that is smaller.
    most_blob_bytes: int | None = None
    continuous: bool = False  # the subtask runs without a pause between epochs
    # Lets readers access state between two runs; returns whether more readers may come.
    give_way: Callable[[], bool] = lambda: False
    epoch_cut: EpochCut = field(default_factory=EpochCut)  # the slot's
    read_tables: ReadTables = read_tables  # reads restored state into heap tables
    # Shows a hint of an operator, given its subject and its text, in the driver.
    hint: Callable[[Operator, str, str], None] = lambda operator, about, text: None
    scratch: Callable[[], str] | None = None  # makes a folder on local disk, which is removed with the job

    def scratch_root(self) -> str:
        """Return the folder in which `scratch` makes folders: the slot's own, or one shared by the machine's slots."""
        assert self.scratch is not None, "a slot has a folder for files"
        made = self.scratch()
        os.rmdir(made)
        return os.path.dirname(made)

    @property
    def on_rocksdb(self) -> bool:
        """Whether keyed state is in RocksDB.

        BATCH mode never uses it: the state of one key at a time fits into memory.
        """
        return self.state_backend == "rocksdb" and not self.graph.settings.batch

    @property
    def name(self) -> str:
        """The vertex and the subtask as people read them: `Map -> Filter (2/3)`."""
        return f"{self.vertex.name} ({self.index + 1}/{self.vertex.parallelism})"
