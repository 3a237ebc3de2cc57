"""Looks up keys in the state of a completed checkpoint, one key group at a time, beside the live state."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from ekorn.clock import Clock
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.keygroups import KeyGroupRange
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.file_store import open_files
from ekorn.types.type_information import TypeInformation

__all__ = ["CheckpointKeyGroup", "CheckpointStates"]

_KEPT = 16  # key groups


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
