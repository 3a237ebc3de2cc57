"""Chooses the state of batches for a state that a batch function asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.errors import StateError
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.operators.columns.batch_collections import ListsOfBatch, MapsOfBatch
from ekorn.operators.columns.batch_reductions import AggregatingOfBatch, ReducingOfBatch
from ekorn.operators.columns.batch_values import ValuesOfBatch
from ekorn.operators.columns.state_of_batch import KeyScope, StateOfBatch
from ekorn.state.keyed_backend import KeyedStateBackend

__all__ = ["batch_state"]


_KINDS: dict[str, Callable[..., StateOfBatch]] = {
    ValueStateDescriptor.kind: ValuesOfBatch,
    ListStateDescriptor.kind: ListsOfBatch,
    MapStateDescriptor.kind: MapsOfBatch,
    ReducingStateDescriptor.kind: ReducingOfBatch,
    AggregatingStateDescriptor.kind: AggregatingOfBatch,
}


def batch_state(scope: KeyScope, backend: KeyedStateBackend, descriptor: StateDescriptor, handle: Any) -> StateOfBatch:
    """Return the state of batches for a handle of rows.

    Raises:
        StateError: There are no such states of batches.
    """
    make = _KINDS.get(descriptor.kind)
    if make is None:
        raise StateError(
            f"state {descriptor.name!r}: a batch function has value, list, map, reducing and aggregating state, and "
            f"no {descriptor.kind} state; use an aggregating state"
        )
    return make(scope, backend, descriptor, handle)
