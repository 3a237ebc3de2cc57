"""Where a subtask runs and what it is given there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tamias.common.accumulators import Accumulator
from tamias.common.clock import Clock
from tamias.graph.job_graph import JobGraph, Vertex
from tamias.metrics.metricbase import MetricGroup


@dataclass(frozen=True)
class Place:
    """One subtask of one vertex in one attempt, with the services of its slot."""

    job_id: str
    graph: JobGraph
    vertex: Vertex
    index: int
    attempt: int
    clock: Clock
    metrics: MetricGroup
    cached_file: Callable[[str], str]  # name -> local path
    accumulators: dict[str, Accumulator[Any, Any]] = field(default_factory=dict)
    state_backend: str = "hashmap"
    incremental: bool = True
    scratch: Callable[[], str] | None = None  # makes a folder on local disk that is removed with the job

    @property
    def name(self) -> str:
        """The vertex and the subtask, as people read it: `Map -> Filter (2/3)`."""
        return f"{self.vertex.name} ({self.index + 1}/{self.vertex.parallelism})"
