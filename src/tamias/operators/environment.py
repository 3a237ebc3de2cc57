"""Where a subtask runs and what it is given there."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tamias.clock import Clock
from tamias.config.rocksdb_settings import RocksDBSettings
from tamias.functions.accumulators import Accumulator
from tamias.graph.job_graph import JobGraph, Vertex
from tamias.metrics.metricbase import MetricGroup

FeedbackQueues = dict[tuple[int, int], deque[tuple[Any, int | None]]]
"""What is on its way from the tail of a loop to its head: by loop and subtask, records with their times."""


@dataclass(frozen=True)
class SubtaskEnvironment:
    """One subtask of one vertex in one attempt, with the services of its slot."""

    job_id: str
    graph: JobGraph
    vertex: Vertex
    index: int
    attempt: int
    clock: Clock
    metrics: dict[str, MetricGroup]  # by operator id, made on first use
    cached_file: Callable[[str], str]  # name -> local path
    accumulators: dict[str, Accumulator[Any, Any]] = field(default_factory=dict)
    state_backend: str = "hashmap"
    rocksdb: RocksDBSettings | None = None
    incremental: bool = True
    reuses_restored: bool = False  # checkpoints go where the restored one is, and may refer to its files
    feedback_queues: FeedbackQueues = field(default_factory=dict)  # of the slot: head and tail of a loop meet there
    scratch: Callable[[], str] | None = None  # makes a folder on local disk that is removed with the job

    def scratch_root(self) -> str:
        """The folder in which `scratch` makes folders: the slot's, or that of all slots on this machine."""
        assert self.scratch is not None, "a slot has a place for files"
        made = self.scratch()
        os.rmdir(made)
        return os.path.dirname(made)

    @property
    def on_rocksdb(self) -> bool:
        """Whether keyed state is in RocksDB; of one key at a time, as in BATCH mode, there is never too much for it."""
        return self.state_backend == "rocksdb" and not self.graph.settings.batch

    @property
    def name(self) -> str:
        """The vertex and the subtask, as people read it: `Map -> Filter (2/3)`."""
        return f"{self.vertex.name} ({self.index + 1}/{self.vertex.parallelism})"
