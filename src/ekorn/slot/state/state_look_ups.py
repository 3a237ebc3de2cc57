"""Queries of state in a slot: which states can be queried, and the values of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ekorn.errors import QueryableNameTwice, QueryError, StateNotServed
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.slot.state.checkpoint_look_ups import CheckpointKeyGroup
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.subtask.subtask import Subtask

__all__ = [
    "RESCALED",
    "Found",
    "QueryableState",
    "ServedState",
    "StateQuery",
    "check_names",
    "queryable_states",
    "served_state",
    "slot_of_query",
]

RESCALED = "the job is being rescaled; ask again"


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


class ServedState(NamedTuple):
    """A queryable state of one subtask, where it is."""

    state: QueryableState
    backend: KeyedStateBackend
    descriptor: StateDescriptor


def queryable_states(subtasks: Mapping[SubtaskId, Subtask]) -> tuple[QueryableState, ...]:
    """Return the states that functions of these subtasks have made queryable, each of them once."""
    return tuple(dict.fromkeys(found.state for of in subtasks for found in _registered(of, subtasks[of])))


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


def served_state(subtasks: Mapping[SubtaskId, Subtask], query: StateQuery) -> ServedState:
    """Return the state that a query asks for.

    Raises:
        StateNotServed: The subtask does not run here, or its function has not asked for the state yet.
    """
    of = query.subtask
    for found in _registered(of, subtasks[of]) if of in subtasks else ():
        if found.state.name == query.name:
            return found
    raise StateNotServed(query.name, f"subtask {of.subtask} has no such state yet")


def _registered(of: SubtaskId, subtask: Subtask) -> Iterator[ServedState]:
    for operator in subtask.operators:
        if operator.backend is not None:
            for name, descriptor in operator.backend.queryable.items():
                owner = operator.operator
                state = QueryableState(name, of.vertex, owner.name, owner.id, descriptor.kind)
                yield ServedState(state, operator.backend, descriptor)
