"""List state and map state of batch functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.functions.state.batch_states import (
    BatchListState,
    BatchMapState,
)
from ekorn.functions.state.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
)
from ekorn.operators.columns.state_of_batch import KeyScope, StateOfBatch
from ekorn.operators.columns.state_values import (
    arrow_type_of,
    dtype_of,
    list_array,
    objects_in,
)
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.table_handles import none_in_list
from ekorn.state.value_vectors import values_array

__all__ = ["ListsOfBatch", "MapsOfBatch"]


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
