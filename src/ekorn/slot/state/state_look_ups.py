"""Queries of state in a slot: which states can be queried, and the values of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ekorn.errors import StateNotServed
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.graph.addresses import SubtaskId
from ekorn.slot_protocol.state_query import QueryableState, StateQuery
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.subtask.subtask import Subtask

__all__ = ["ServedState", "queryable_states", "served_state"]


class ServedState(NamedTuple):
    """A queryable state of one subtask, where it is."""

    state: QueryableState
    backend: KeyedStateBackend
    descriptor: StateDescriptor


def queryable_states(subtasks: Mapping[SubtaskId, Subtask]) -> tuple[QueryableState, ...]:
    """Return the states that functions of these subtasks have made queryable, each of them once."""
    return tuple(dict.fromkeys(found.state for of in subtasks for found in _registered(of, subtasks[of])))


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
