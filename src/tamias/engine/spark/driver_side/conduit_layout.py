"""Runs in the driver: lays out a region of a job that runs continuously as the levels of one Spark job. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tamias.engine.spark.task_side.conduit_task import ConduitTask, TaskAddress
from tamias.engine.spark.task_side.level_task import HostedSubtask
from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph, Vertex
from tamias.subtask.wire.frames import Destination

__all__ = ["conduit_tasks"]


def conduit_tasks(
    graph: JobGraph,
    region: int,
    regions: Mapping[SubtaskId, int],
    *,
    hosted: Callable[[Vertex, int], HostedSubtask],
    secret: bytes,
    attempt: int,
) -> list[ConduitTask]:
    """Return the levels of a region. A partition of a level is one subtask."""
    by_level = [
        [(v, i) for v in level for i in range(v.parallelism) if regions[SubtaskId(v.id, i)] == region]
        for level in graph.levels
    ]
    partitions = [level for level in by_level if level]
    addresses = {
        SubtaskId(vertex.id, index): TaskAddress(level, number)
        for level, subtasks in enumerate(partitions)
        for number, (vertex, index) in enumerate(subtasks)
    }
    tasks: list[ConduitTask] = []
    for level, subtasks in enumerate(partitions):
        sources = {vertex.id for vertex, _ in subtasks}
        tasks.append(
            ConduitTask(
                level=level,
                subtasks=tuple(hosted(vertex, index) for vertex, index in subtasks),
                next_partitions=len(partitions[level + 1]) if level + 1 < len(partitions) else 1,
                routes={
                    Destination(exchange.id, target.subtask): address
                    for exchange in graph.exchanges
                    if exchange.source in sources
                    for target, address in addresses.items()
                    if target.vertex == exchange.target
                },
                secret=secret,
                attempt=attempt,
                passes_rows_on=_passes_rows_on(graph, addresses, level),
            )
        )
    return tasks


def _passes_rows_on(graph: JobGraph, addresses: Mapping[SubtaskId, TaskAddress], level: int) -> bool:
    """Return whether an exchange passes a level on its way."""
    levels = {subtask.vertex: address.level for subtask, address in addresses.items()}
    ends = [(levels[e.source], levels[e.target]) for e in graph.exchanges if e.source in levels and e.target in levels]
    return any(source < level < target for source, target in ends)
