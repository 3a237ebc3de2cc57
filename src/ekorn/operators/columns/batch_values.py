"""Value state of batch functions, in vectors or key by key."""

from __future__ import annotations

import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ekorn.columns.key_rows import as_mask
from ekorn.columns.key_words import Rows
from ekorn.errors import StateError
from ekorn.functions.state.batch_states import BatchValueState
from ekorn.functions.state.state_descriptors import (
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.operators.columns.state_of_batch import KeyScope, StateOfBatch
from ekorn.operators.columns.state_values import (
    dtype_of,
    vector_of,
)
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.value_vectors import ValueVectors, values_array
from ekorn.types.by_value import own
from ekorn.types.factory import Types

__all__ = ["KeyCells", "ValuesOfBatch", "VectorCells", "has_vectors", "without_default"]


class KeyValuesOfState(Protocol):
    """Reads and writes the values of the keys of a batch."""

    def read(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return the values, and which keys have one."""

    def write(self, keys: Rows, values: NDArray[Any], present: NDArray[np.bool_]) -> None:
        """Set or remove the values of some keys, by their positions in the batch."""


class KeyCells:
    """Values that are read and written key by key, by a handle of rows."""

    def __init__(self, scope: KeyScope, cell: list[Any], name: str, dtype: Any, handle: Any) -> None:
        self._scope = scope
        self._cell = cell
        self._name = name
        self._dtype = dtype
        self._handle = handle

    def read(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        cell, value, found = self._cell, self._handle.value, []
        for key in self._scope.stored_keys():  # hot
            cell[0] = key
            found.append(value())
        return values_array(found, self._name, self._dtype)

    def write(self, keys: Rows, values: NDArray[Any], present: NDArray[np.bool_]) -> None:
        cell, update, stored = self._cell, self._handle.update, self._scope.stored_keys()
        for key, value, there in zip(keys.tolist(), values.tolist(), present.tolist(), strict=True):  # hot
            cell[0] = stored[key]
            update(value if there else None)


class VectorCells:
    """Values that are read and written for all keys at once."""

    def __init__(self, scope: KeyScope, vectors: ValueVectors) -> None:
        self._scope = scope
        self._vectors = vectors

    def read(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        return self._vectors.read(self._scope.numbers())

    def write(self, keys: Rows, values: NDArray[Any], present: NDArray[np.bool_]) -> None:
        self._vectors.write(self._scope.numbers()[keys], values, present)


class ValuesOfBatch(StateOfBatch, BatchValueState):
    """Value state."""

    def __init__(
        self,
        scope: KeyScope,
        backend: KeyedStateBackend,
        descriptor: ValueStateDescriptor,
        handle: Any,
        source: KeyValuesOfState | None = None,
    ) -> None:
        self._type = descriptor.value_type
        self._dtype = dtype_of(self._type)
        # As on rows: the default is not used for a state with a time to live.
        self._default = descriptor.default_value if descriptor.ttl_config is None else None
        if self._default is not None:
            vector_of(self._default, 1, descriptor.name, self._type)  # refuses one that the state cannot hold
        self._source = source or KeyCells(scope, backend.cell, descriptor.name, self._dtype, handle)
        super().__init__(scope, backend, descriptor, handle)

    def forget(self) -> None:
        self._read = False
        self._dirty: NDArray[np.bool_] | None = None

    def _load(self) -> None:
        if not self._read:
            self._values, self._present = self._source.read()
            self._read = True

    def values(self, fill: Any = None) -> NDArray[Any]:
        self._load()
        values = self._values.copy()
        absent = np.flatnonzero(~self._present)
        if not len(absent):
            return values
        instead = self._default if fill is None else fill
        if values.dtype.kind == "O":
            for at in absent.tolist():
                values[at] = None if instead is None else own(instead)
            return values
        if instead is None:
            if values.dtype.kind != "f":
                raise StateError(
                    f"state {self._name!r} has no value for {len(absent)} of {len(values)} keys and no default, and "
                    f"an array of type {values.dtype} has no null: call values(fill=...), or give the descriptor a "
                    "default"
                )
            instead = np.nan
        values[absent] = instead
        return values

    def present(self) -> NDArray[np.bool_]:
        self._load()
        return self._present.copy()

    def update(self, values: Any, where: Any = None) -> None:
        count = self._scope.rows.key_count
        vector, valid = vector_of(values, count, self._name, self._type)
        self._set(as_mask(where, count, "key"), vector, valid)

    def clear(self, where: Any = None) -> None:
        count = self._scope.rows.key_count
        self._set(as_mask(where, count, "key"), np.zeros(count, self._dtype), np.zeros(count, np.bool_))

    def _set(self, mask: NDArray[np.bool_] | None, values: NDArray[Any], present: NDArray[np.bool_]) -> None:
        if mask is None:
            self._values, self._present, self._read = values, present, True
            self._dirty = np.ones(len(values), dtype=np.bool_)
            return
        self._load()
        self._values[mask] = values[mask]
        self._present[mask] = present[mask]
        self._dirty = mask.copy() if self._dirty is None else self._dirty | mask

    def value_of(self, at: int) -> Any:
        """Return the value of one key, as a handle of rows does."""
        self._load()
        if not self._present[at]:
            return None if self._default is None else own(self._default)
        value = self._values[at]
        return value if self._dtype.kind == "O" else value.item()

    def set_value(self, at: int, value: Any) -> None:
        """Set the value of one key; None removes it."""
        self._load()
        vector, present = vector_of([value], 1, self._name, self._type)
        self._values[at], self._present[at] = vector[0], present[0]
        if self._dirty is None:
            self._dirty = np.zeros(len(self._values), dtype=np.bool_)
        self._dirty[at] = True

    def clear_key(self, at: int) -> None:
        self.set_value(at, None)

    def commit(self) -> None:
        if self._dirty is not None:
            keys = np.flatnonzero(self._dirty)
            self._source.write(keys, self._values[keys], self._present[keys])


def without_default(descriptor: StateDescriptor) -> StateDescriptor:
    """Return a descriptor of the same state whose handle returns None for a key without a value."""
    plain = copy.copy(descriptor)
    if isinstance(plain, ValueStateDescriptor):
        plain.default_value = None
    return plain


def has_vectors(descriptor: StateDescriptor) -> bool:
    """Return whether the values of a state are kept in vectors: those that are numbers, bools or texts."""
    plain = dtype_of(descriptor.value_type).kind != "O" or descriptor.value_type == Types.STRING()
    return (
        isinstance(descriptor, ValueStateDescriptor)
        and plain
        and descriptor.ttl_config is None
        and descriptor.queryable_name is None
    )
