"""Finds the state that a query asks for: live in a subtask, or in the files of a completed checkpoint."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ekorn.clock import Clock
from ekorn.errors import StateNotServed
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.graph.addresses import SubtaskId
from ekorn.keygroups import KeyGroupRange
from ekorn.slot_protocol.state_query import CheckpointKeyGroup, QueryableState, StateQuery
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.storage.file_store import open_files
from ekorn.subtask.subtask import Subtask
from ekorn.types.type_information import TypeInformation

__all__ = ["CheckpointStates", "ServedState", "queryable_states", "served_state"]


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


_KEPT = 16  # key groups


class _Opened(NamedTuple):
    checkpoint_id: int
    operator_id: str
    key_group: int


class CheckpointStates:
    """The key groups of checkpoints that were asked for last, in memory. Thread-safe."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._opened: OrderedDict[_Opened, KeyedStateBackend] = OrderedDict()

    def backend(
        self, part: CheckpointKeyGroup, descriptor: StateDescriptor, key_type: TypeInformation | None
    ) -> KeyedStateBackend:
        """Return a backend with the state of a key group, read from the checkpoint's files unless it is kept.

        Args:
            part: The key group.
            descriptor: The state that is to be read from the backend.
            key_type: The declared type of the keys.

        Raises:
            CorruptFileError: The files are gone, or damaged.
        """
        name = _Opened(part.checkpoint_id, part.restore.operator_id, part.key_group)
        with self._lock:
            backend = self._opened.pop(name, None)
            if backend is None:
                backend = HeapStateBackend(tracked=False, clock=self._clock)
                backend.key_type = key_type
                groups = KeyGroupRange(part.key_group, part.key_group)
                backend.restore(part.restore, open_files(part.directory), groups)
            backend.state(descriptor)  # declares it
            self._opened[name] = backend
            if len(self._opened) > _KEPT:
                self._opened.popitem(last=False)
            return backend

    def clear(self) -> None:
        """Forget all of it."""
        with self._lock:
            self._opened.clear()
