"""Regions: the subtasks that fail together, because records can pass between them.

Pipelines that share no exchange are separate regions. So are the slices of a job whose records never change their
subtask. A region that fails is restored from the last checkpoint alone: no record has left the region.

A job that restarts as a whole has one region (`jobmanager.execution.failover-strategy`: full).

The subtasks of a source that reads in steps are in one region: a checkpoint lies at the same step in all of them, which
would no longer hold if only one of them were restored.
"""

from __future__ import annotations

from ekorn.graph.addresses import SubtaskId
from ekorn.graph.channels import targets_of
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.specs import SourceSpec


def regions(graph: JobGraph) -> dict[SubtaskId, int]:
    """Return the region of every subtask. Regions are numbered from 0 in the order of their first subtasks."""
    leader: dict[SubtaskId, SubtaskId] = {
        SubtaskId(vertex.id, index): SubtaskId(vertex.id, index)
        for vertex in graph.vertices
        for index in range(vertex.parallelism)
    }
    if not graph.settings.restarts_regions:
        return dict.fromkeys(leader, 0)

    def find(subtask: SubtaskId) -> SubtaskId:
        while leader[subtask] != subtask:
            leader[subtask] = leader[leader[subtask]]
            subtask = leader[subtask]
        return subtask

    def join(one: SubtaskId, other: SubtaskId) -> None:
        first, second = sorted((find(one), find(other)))
        leader[second] = first

    for exchange in graph.exchanges:
        source, target = graph.vertices[exchange.source], graph.vertices[exchange.target]
        for sender in range(source.parallelism):
            for receiver in targets_of(exchange, source, target, sender):
                join(SubtaskId(source.id, sender), SubtaskId(target.id, receiver))
    for vertex in graph.vertices:
        spec = vertex.operators[0].spec
        if isinstance(spec, SourceSpec) and spec.source.reads_in_steps:
            for index in range(1, vertex.parallelism):
                join(SubtaskId(vertex.id, 0), SubtaskId(vertex.id, index))
    numbers: dict[SubtaskId, int] = {}
    return {subtask: numbers.setdefault(find(subtask), len(numbers)) for subtask in leader}


def in_regions_of(graph: JobGraph, failed: frozenset[SubtaskId]) -> frozenset[SubtaskId]:
    """Return all subtasks in the regions of failed subtasks."""
    by_subtask = regions(graph)
    hit = {by_subtask[subtask] for subtask in failed}
    return frozenset(subtask for subtask, region in by_subtask.items() if region in hit)
