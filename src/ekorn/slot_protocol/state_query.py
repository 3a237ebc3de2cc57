"""Queries of state on their way to the slots: which states can be queried, which slot has a key, and the answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ekorn.errors import QueryableNameTwice, QueryError, StateNotServed
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.state.snapshots import OperatorRestore

__all__ = ["RESCALED", "CheckpointKeyGroup", "Found", "QueryableState", "StateQuery", "check_names", "slot_of_query"]


class CheckpointKeyGroup(NamedTuple):
    """The state of one key group of an operator in a checkpoint.

    Attributes:
        checkpoint_id: The checkpoint.
        directory: The directory of its files.
        restore: The files that have the key group.
        key_group: The key group.
    """

    checkpoint_id: int
    directory: str
    restore: OperatorRestore
    key_group: int


RESCALED = "the job is being rescaled; try again"


class QueryableState(NamedTuple):
    """One queryable state of a job."""

    name: str
    vertex: int
    operator: str
    operator_id: str
    kind: str


class StateQuery(NamedTuple):
    """A query of some keys of one subtask's state.

    Attributes:
        subtask: The subtask that has the keys.
        attempt: The attempt by whose graph the keys were assigned to the subtask.
        name: The queryable name.
        keys: The keys as the program gives them.
        timeout_s: How long to wait for user code.
        checkpoint: The key group of a checkpoint in which to look, and not in the live state. All keys are of it.
    """

    subtask: SubtaskId
    attempt: int
    name: str
    keys: list[Any]
    timeout_s: float
    checkpoint: CheckpointKeyGroup | None = None


Found = list[bytes | None] | QueryError
"""The answer to a query: the pickled value of each key, None for a key that has none; or why there is no answer."""


def check_names(states: Iterable[QueryableState]) -> None:
    """Refuse two states with one name.

    Raises:
        QueryableNameTwice: There are two.
    """
    known: dict[str, QueryableState] = {}
    for state in states:
        other = known.setdefault(state.name, state)
        if other != state:
            raise QueryableNameTwice(state.name, f"one of operator {other.operator!r}, one of {state.operator!r}")


def slot_of_query(graph: JobGraph, query: StateQuery) -> int:
    """Return the slot of the subtask that a query asks.

    Raises:
        StateNotServed: The graph has no such subtask: the query was made for the graph of an attempt before.
    """
    of = query.subtask
    if of.vertex >= len(graph.vertices) or of.subtask >= graph.vertices[of.vertex].parallelism:
        raise StateNotServed(query.name, RESCALED)
    return graph.slot_of(graph.vertices[of.vertex], of.subtask)
