"""The states of batch functions: vectors over the keys of a batch, read from and written to the states of rows.

What a function writes is kept beside the state until its call is over. So a batch that fails has changed nothing, and
each key is written once. A key that is not read is not fetched.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.key_rows import KeyRows, as_mask
from ekorn.columns.key_words import Rows
from ekorn.errors import StateError
from ekorn.functions.state.batch_states import (
    BatchAggregatingState,
    BatchListState,
    BatchMapState,
    BatchReducingState,
    BatchState,
    BatchValueState,
)
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.operators.columns.state_values import (
    arrow_type_of,
    dtype_of,
    list_array,
    objects_in,
    vector_of,
)
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.table_handles import none_from_reduce, none_in_list
from ekorn.state.value_vectors import ValueVectors, values_array
from ekorn.types.by_value import own
from ekorn.types.factory import Types

__all__ = [
    "KeyCells",
    "StateOfBatch",
    "ValuesOfBatch",
    "VectorCells",
    "batch_state",
    "has_vectors",
    "positions_of",
    "without_default",
]


class KeyScope(Protocol):
    """The keys of the batch that is processed."""

    @property
    def rows(self) -> KeyRows:
        """The rows of the batch by their keys."""

    def stored_keys(self) -> list[Any]:
        """Return the keys in the form of tables."""

    def numbers(self) -> Rows:
        """Return the numbers of the keys in the vectors of the operator."""


class StateOfBatch(BatchState):
    """The base of states of batches."""

    def __init__(self, scope: KeyScope, backend: KeyedStateBackend, descriptor: StateDescriptor, handle: Any) -> None:
        self._scope = scope
        self._backend = backend
        self._cell = backend.cell
        self.descriptor = descriptor
        self._name = descriptor.name
        self._handle = handle
        self.forget()

    @abstractmethod
    def forget(self) -> None:
        """Forget what was read and written: the next call has other keys."""

    @abstractmethod
    def commit(self) -> None:
        """Write what the function has written."""

    @abstractmethod
    def clear_key(self, at: int) -> None:
        """Remove the state of one key."""

    def clear(self, where: Any = None) -> None:
        for at in self._keys(where):
            self.clear_key(at)

    def _keys(self, where: Any) -> list[int]:
        """Return the positions of the keys that a mask chooses."""
        count = self._scope.rows.key_count
        mask = as_mask(where, count, "key")
        return list(range(count)) if mask is None else np.flatnonzero(mask).tolist()

    def _rows(self, where: Any) -> list[int]:
        """Return the positions of the rows that a mask chooses."""
        count = len(self._scope.rows)
        mask = as_mask(where, count, "row")
        return list(range(count)) if mask is None else np.flatnonzero(mask).tolist()

    def _at(self, key: int) -> None:
        self._cell[0] = self._scope.stored_keys()[key]

    def _row_keys(self) -> list[int]:
        found: list[int] = self._scope.rows.key_of_row.tolist()
        return found


# --------------------------------------------------------------------------------------------------------- one value


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


# --------------------------------------------------------------------------------------------------------- lists


class ListsOfBatch(StateOfBatch, BatchListState):
    """List state."""

    def __init__(
        self, scope: KeyScope, backend: KeyedStateBackend, descriptor: ListStateDescriptor, handle: Any
    ) -> None:
        self._column = arrow_type_of(descriptor.value_type)
        super().__init__(scope, backend, descriptor, handle)

    def forget(self) -> None:
        self._lists: dict[int, list[Any]] = {}  # of the keys that were read or replaced
        self._added: dict[int, list[Any]] = {}
        self._replaced: set[int] = set()

    def list_of(self, at: int) -> list[Any]:
        """Return the list of one key."""
        found = self._lists.get(at)
        if found is None:
            self._at(at)
            found = self._lists[at] = [*self._handle.get(), *self._added.get(at, ())]
        return found

    def add_to(self, at: int, values: list[Any]) -> None:
        """Append to the list of one key."""
        if None in values:
            raise none_in_list()
        if at in self._lists:
            self._lists[at] += values
        if at not in self._replaced:
            self._added.setdefault(at, []).extend(values)

    def replace(self, at: int, values: list[Any]) -> None:
        """Replace the list of one key."""
        if None in values:
            raise none_in_list()
        self._lists[at] = list(values)
        self._replaced.add(at)
        self._added.pop(at, None)

    def lists(self) -> pa.ListArray:
        return list_array([self.list_of(at) for at in range(self._scope.rows.key_count)], self._column)

    def lengths(self) -> NDArray[np.int64]:
        count = self._scope.rows.key_count
        return np.fromiter((len(self.list_of(at)) for at in range(count)), np.int64, count)

    def add(self, values: Any, where: Any = None) -> None:
        given = objects_in(values, len(self._scope.rows), "row")
        keys = self._row_keys()
        more: dict[int, list[Any]] = {}
        for row in self._rows(where):
            more.setdefault(keys[row], []).append(given[row])
        for at, each in more.items():
            self.add_to(at, each)

    def update(self, lists: Any, where: Any = None) -> None:
        given = objects_in(lists, self._scope.rows.key_count, "key")
        for at in self._keys(where):
            self.replace(at, given[at] or [])

    def clear_key(self, at: int) -> None:
        self.replace(at, [])

    def commit(self) -> None:
        for at in self._replaced:
            self._at(at)
            self._handle.update(self._lists[at])
        for at, values in self._added.items():
            self._at(at)
            self._handle.add_all(values)


# --------------------------------------------------------------------------------------------------------- maps

_GONE = object()


class MapsOfBatch(StateOfBatch, BatchMapState):
    """Map state."""

    def __init__(
        self, scope: KeyScope, backend: KeyedStateBackend, descriptor: MapStateDescriptor, handle: Any
    ) -> None:
        self._dtype = dtype_of(descriptor.value_type)
        super().__init__(scope, backend, descriptor, handle)

    def forget(self) -> None:
        self._changed: dict[int, dict[Any, Any]] = {}  # new values, and `_GONE`
        self._cleared: set[int] = set()

    def has(self, at: int, map_key: Any) -> bool:
        """Return whether the map of one key has a key."""
        changed = self._changed.get(at)
        if changed is not None and map_key in changed:
            return changed[map_key] is not _GONE
        if at in self._cleared:
            return False
        self._at(at)
        return bool(self._handle.contains(map_key))

    def value_of(self, at: int, map_key: Any) -> Any:
        """Return the value under a key of the map of one key."""
        changed = self._changed.get(at)
        if changed is not None and map_key in changed:
            value = changed[map_key]
            return None if value is _GONE else value
        if at in self._cleared:
            return None
        self._at(at)
        return self._handle.get(map_key)

    def set_value(self, at: int, map_key: Any, value: Any) -> None:
        """Put an entry into the map of one key."""
        self._changed.setdefault(at, {})[map_key] = value

    def remove_value(self, at: int, map_key: Any) -> None:
        """Remove an entry from the map of one key."""
        self._changed.setdefault(at, {})[map_key] = _GONE

    def map_of(self, at: int) -> dict[Any, Any]:
        """Return the map of one key."""
        self._at(at)
        found = {} if at in self._cleared else dict(self._handle.items())
        for map_key, value in self._changed.get(at, {}).items():
            if value is _GONE:
                found.pop(map_key, None)
            else:
                found[map_key] = value
        return found

    def get(self, map_keys: Any, fill: Any = None) -> NDArray[Any]:
        given = objects_in(map_keys, len(self._scope.rows), "row")
        pairs = zip(self._row_keys(), given, strict=True)
        found = [fill if value is None else value for value in (self.value_of(at, key) for at, key in pairs)]
        dtype = np.dtype(np.object_) if None in found else self._dtype
        return values_array(found, self._name, dtype)[0]

    def contains(self, map_keys: Any) -> NDArray[np.bool_]:
        given = objects_in(map_keys, len(self._scope.rows), "row")
        pairs = zip(self._row_keys(), given, strict=True)
        return np.fromiter((self.has(at, key) for at, key in pairs), np.bool_, len(given))

    def put(self, map_keys: Any, values: Any, where: Any = None) -> None:
        count = len(self._scope.rows)
        given, new = objects_in(map_keys, count, "row"), objects_in(values, count, "row")
        keys = self._row_keys()
        for row in self._rows(where):
            self.set_value(keys[row], given[row], new[row])

    def remove(self, map_keys: Any, where: Any = None) -> None:
        given = objects_in(map_keys, len(self._scope.rows), "row")
        keys = self._row_keys()
        for row in self._rows(where):
            self.remove_value(keys[row], given[row])

    def entries(self) -> tuple[NDArray[np.int64], list[Any], list[Any]]:
        maps = [self.map_of(at) for at in range(self._scope.rows.key_count)]
        positions = np.repeat(np.arange(len(maps)), [len(each) for each in maps])
        return positions, [key for each in maps for key in each], [v for each in maps for v in each.values()]

    def clear_key(self, at: int) -> None:
        self._cleared.add(at)
        self._changed.pop(at, None)

    def commit(self) -> None:
        for at in self._cleared:
            self._at(at)
            self._handle.clear()
        for at, changed in self._changed.items():
            self._at(at)
            self._handle.put_all({key: value for key, value in changed.items() if value is not _GONE})
            for map_key, value in changed.items():
                if value is _GONE:
                    self._handle.remove(map_key)


# --------------------------------------------------------------------------------------------------------- adding


class _Adding(StateOfBatch):
    """The base of states to which values are added, one after the other, by a function of the user."""

    def forget(self) -> None:
        self._added: dict[int, list[Any]] = {}
        self._cleared: set[int] = set()
        self._results: dict[int, Any] = {}

    def add_to(self, at: int, value: Any) -> None:
        """Add a value to the state of one key; None removes the state, as on rows."""
        if value is None:
            self.clear_key(at)
        else:
            self._added.setdefault(at, []).append(value)
            self._results.pop(at, None)

    def result_of(self, at: int) -> Any:
        """Return the result of one key."""
        if at not in self._results:
            self._at(at)
            so_far = None if at in self._cleared else self._handle.get()
            added = self._added.get(at, [])
            self._results[at] = self._with(so_far, added) if added else so_far
        return self._results[at]

    @abstractmethod
    def _with(self, so_far: Any, added: list[Any]) -> Any:
        """Return the result of the current key with more values, and change nothing."""

    def add(self, values: Any, where: Any = None) -> None:
        """Add the value of each row to the state of its key."""
        given, keys = objects_in(values, len(self._scope.rows), "row"), self._row_keys()
        for row in self._rows(where):
            self.add_to(keys[row], given[row])

    def values(self) -> NDArray[Any]:
        """Return the result of each key."""
        found = [self.result_of(at) for at in range(self._scope.rows.key_count)]
        return values_array(found, self._name, np.dtype(np.object_))[0]

    def clear_key(self, at: int) -> None:
        self._cleared.add(at)
        self._added.pop(at, None)
        self._results.pop(at, None)

    def commit(self) -> None:
        for at in self._cleared:
            self._at(at)
            self._handle.clear()
        for at, values in self._added.items():
            self._at(at)
            for value in values:
                self._handle.add(value)


class ReducingOfBatch(_Adding, BatchReducingState):
    """Reducing state."""

    def __init__(
        self, scope: KeyScope, backend: KeyedStateBackend, descriptor: ReducingStateDescriptor, handle: Any
    ) -> None:
        self._reduce = descriptor.get_reduce_function().reduce
        super().__init__(scope, backend, descriptor, handle)

    def _with(self, so_far: Any, added: list[Any]) -> Any:
        result = so_far
        for value in added:
            result = own(value) if result is None else self._reduce(result, own(value))
            if result is None:
                raise none_from_reduce()
        return result


class AggregatingOfBatch(_Adding, BatchAggregatingState):
    """Aggregating state."""

    def __init__(
        self, scope: KeyScope, backend: KeyedStateBackend, descriptor: AggregatingStateDescriptor, handle: Any
    ) -> None:
        self._function = descriptor.get_agg_function()
        super().__init__(scope, backend, descriptor, handle)

    def _with(self, so_far: Any, added: list[Any]) -> Any:
        accumulator = None
        if so_far is not None:  # the handle knows that the accumulator has not expired
            kept = self._backend.entry(self._name, self._cell[0])
            if kept is not None and self.descriptor.ttl_config is not None:
                kept = kept[1]
            accumulator = None if kept is None else self._backend.declaration(self._name).value.loaded(kept)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        for value in added:
            accumulator = self._function.add(own(value), accumulator)
        return self._function.get_result(accumulator)


_KINDS: dict[str, Callable[..., StateOfBatch]] = {
    ValueStateDescriptor.kind: ValuesOfBatch,
    ListStateDescriptor.kind: ListsOfBatch,
    MapStateDescriptor.kind: MapsOfBatch,
    ReducingStateDescriptor.kind: ReducingOfBatch,
    AggregatingStateDescriptor.kind: AggregatingOfBatch,
}


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


def positions_of(rows: KeyRows) -> Iterator[Rows]:
    """Yield the positions of the rows of each key, in their order."""
    segments = rows.segments
    for start, count in zip(segments.starts.tolist(), segments.counts.tolist(), strict=True):
        yield segments.order[start : start + count]
