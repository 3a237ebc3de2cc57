"""Decides which finished subtasks a checkpoint no longer asks for a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Set

from ekorn.graph.addresses import SubtaskId
from ekorn.state.snapshots import OperatorRestore, OperatorSnapshot

__all__ = ["has_union_state", "settled"]


def settled(finished: Set[SubtaskId], subtasks: Set[SubtaskId], with_union: Set[int]) -> frozenset[SubtaskId]:
    """Return the finished subtasks whose last snapshot stands for good.

    Flink: union list state needs the part of every subtask, so Flink takes no checkpoint of an operator that has
    finished in part. Ekorn keeps asking the finished subtasks of such a vertex until all of them have finished: they
    still hold their part.

    Args:
        finished: Every subtask that a completed checkpoint records as finished.
        subtasks: Every subtask of the job.
        with_union: The vertices that have an operator with union list state.

    Example:
        >>> one, other = SubtaskId(1, 0), SubtaskId(1, 1)
        >>> settled({one}, {one, other}, with_union={1})
        frozenset()
        >>> settled({one}, {one, other}, with_union=set())
        frozenset({SubtaskId(vertex=1, subtask=0)})
    """
    running = {subtask.vertex for subtask in subtasks - finished}
    return frozenset(subtask for subtask in finished if subtask.vertex not in with_union & running)


def has_union_state(operators: Iterable[OperatorSnapshot | OperatorRestore]) -> bool:
    """Return whether one of these operators has union list state."""
    return any(info.kind == "list-union" for operator in operators for info in operator.states)
