"""Runs in the driver: lays out a region of a job that runs continuously as the tasks of its Spark jobs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ekorn.engine.spark.task_side.level_task import HostedSubtask
from ekorn.engine.spark.task_side.transport_tasks import InletTask, OutletTask
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Exchange, JobGraph, Vertex, VertexId
from ekorn.subtask.wire.frames import Destination

__all__ = ["TransportShuffle", "transport_shuffles"]


@dataclass(frozen=True)
class TransportShuffle:
    """One shuffle, which is a Spark job of its own: the tasks that write to it, and those that read from it.

    A subtask without inputs and outputs has a task that writes nothing, and there is no shuffle then.
    """

    outlets: OutletTask
    inlets: InletTask | None
    name: str


def transport_shuffles(
    graph: JobGraph,
    region: int,
    regions: Mapping[SubtaskId, int],
    *,
    hosted: Callable[[Vertex, int], HostedSubtask],
    secret: bytes,
    attempt: int,
) -> list[TransportShuffle]:
    """Return the shuffles of a region. Exchanges share one if they share a source or a target.

    So a subtask has one task for all of its outputs, and one for all of its inputs. A subtask without exchanges has a
    task too, which writes nothing.
    """

    def subtasks_of(vertices: Iterable[VertexId]) -> list[tuple[Vertex, int]]:
        found = [graph.vertices[vertex] for vertex in sorted(vertices)]
        return [(v, i) for v in found for i in range(v.parallelism) if regions[SubtaskId(v.id, i)] == region]

    def shuffle(exchanges: list[Exchange], sources: set[VertexId]) -> TransportShuffle:
        targets = subtasks_of({exchange.target for exchange in exchanges})
        partitions = {SubtaskId(vertex.id, index): number for number, (vertex, index) in enumerate(targets)}
        routes = {
            Destination(exchange.id, target.subtask): partition
            for exchange in exchanges
            for target, partition in partitions.items()
            if target.vertex == exchange.target
        }
        outlets = tuple(hosted(*of) for of in subtasks_of(sources))
        inlets = tuple(hosted(*of) for of in targets)
        return TransportShuffle(
            OutletTask(outlets, routes, secret, attempt),
            InletTask(inlets, secret, attempt) if inlets else None,
            name=", ".join(graph.vertices[vertex].name for vertex in sorted(sources)),
        )

    vertices = {VertexId(subtask.vertex) for subtask, number in regions.items() if number == region}
    exchanges = [e for e in graph.exchanges if e.source in vertices and e.target in vertices]
    alone = vertices - {vertex for exchange in exchanges for vertex in (exchange.source, exchange.target)}
    shuffles = [shuffle(group, {exchange.source for exchange in group}) for group in _groups(exchanges)]
    return [*shuffles, *([shuffle([], alone)] if alone else [])]


def _groups(exchanges: Iterable[Exchange]) -> list[list[Exchange]]:
    """Return the exchanges in groups that share no source and no target."""
    groups: list[list[Exchange]] = []
    for exchange in exchanges:
        shared = [g for g in groups if any(o.source == exchange.source or o.target == exchange.target for o in g)]
        groups = [g for g in groups if g not in shared]
        groups.append([*(other for group in shared for other in group), exchange])
    return groups
