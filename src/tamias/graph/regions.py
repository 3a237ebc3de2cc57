"""Which subtasks fail together: those that records can pass between.

Pipelines that share no exchange are regions of their own, and so are the slices of a job whose records never change
their subtask. A region that fails goes back to the last checkpoint by itself; nothing outside of it has seen
anything of it.
"""

from __future__ import annotations

from tamias.graph.addresses import SubtaskId
from tamias.graph.channels import targets_of
from tamias.graph.job_graph import JobGraph


def regions(graph: JobGraph) -> dict[SubtaskId, int]:
    """The region of every subtask, numbered from 0 in the order of their first subtasks."""
    leader: dict[SubtaskId, SubtaskId] = {
        SubtaskId(vertex.id, index): SubtaskId(vertex.id, index)
        for vertex in graph.vertices
        for index in range(vertex.parallelism)
    }

    def find(subtask: SubtaskId) -> SubtaskId:
        while leader[subtask] != subtask:
            leader[subtask] = leader[leader[subtask]]
            subtask = leader[subtask]
        return subtask

    for exchange in graph.exchanges:
        source, target = graph.vertices[exchange.source], graph.vertices[exchange.target]
        for sender in range(source.parallelism):
            for receiver in targets_of(exchange, source, target, sender):
                one, other = sorted((find(SubtaskId(source.id, sender)), find(SubtaskId(target.id, receiver))))
                leader[other] = one
    numbers: dict[SubtaskId, int] = {}
    return {subtask: numbers.setdefault(find(subtask), len(numbers)) for subtask in leader}


def in_regions_of(graph: JobGraph, failed: frozenset[SubtaskId]) -> frozenset[SubtaskId]:
    """All subtasks that some failed ones take with them."""
    by_subtask = regions(graph)
    hit = {by_subtask[subtask] for subtask in failed}
    return frozenset(subtask for subtask, region in by_subtask.items() if region in hit)
