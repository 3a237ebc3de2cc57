"""The state that a slot is asked to read in advance of a rescale."""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.keygroups import KeyGroupRange, key_group_range
from ekorn.state.snapshots import OperatorRestore, RestorePlan

__all__ = ["PreloadPlan", "preload_plans"]


@dataclass(frozen=True, slots=True)
class PreloadPlan:
    """What one slot reads in advance: the operators of its subtasks, each with the key groups of the subtask."""

    directory: str = ""
    operators: tuple[tuple[OperatorRestore, KeyGroupRange], ...] = ()


def preload_plans(graph: JobGraph, restore: RestorePlan) -> dict[int, PreloadPlan]:
    """Return what each slot of a graph reads in advance, by the number of the slot."""
    by_slot: dict[int, list[tuple[OperatorRestore, KeyGroupRange]]] = {n: [] for n in range(graph.slot_count)}
    for vertex in graph.vertices:
        for index in range(vertex.parallelism):
            key_groups = key_group_range(vertex.max_parallelism, vertex.parallelism, index)
            saved = restore.subtasks.get(SubtaskId(vertex.id, index))
            operators = saved.operators if saved is not None else ()
            by_slot[graph.slot_of(vertex, index)] += [(each, key_groups) for each in operators if each.keyed]
    return {slot: PreloadPlan(restore.directory, tuple(operators)) for slot, operators in by_slot.items()}
