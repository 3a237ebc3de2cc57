"""Looks up keys in the state of a completed checkpoint, one key group at a time, beside the live state."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from ekorn.clock import Clock
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.keygroups import KeyGroupRange
from ekorn.slot_protocol.state_query import CheckpointKeyGroup
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.storage.file_store import open_files
from ekorn.types.type_information import TypeInformation

__all__ = ["CheckpointStates"]

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
