"""Value states as vectors with an element for each key, for functions that process all keys of a batch at once.

`KeyVectors` numbers the keys of an operator. `ValueVectors` has the values of one state. To a backend it is a table
that the operator brings along, with the entries that the same state has on rows. So a checkpoint that was taken by a
function of rows restores here, and the other way round.

On the heap, the numbers of keys that have no state any more are given to others: when the keys have doubled, those
with a value, or with a change that a checkpoint has to write, get new numbers.

With RocksDB the vectors hold the keys in use, as in `column_table.py`. The keys of a batch that are not among them are
read in one call for each state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.key_index import ABSENT, KeyIndex
from ekorn.columns.key_words import KeyStore, Rows
from ekorn.errors import StateError, preview
from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec
from ekorn.state.column_table import ChangedRows, KeyValues, LazyObjects, changed_rows
from ekorn.state.declared import Declaration
from ekorn.state.table import EntryStore, FrontTable

__all__ = ["KeyVectors", "ValueVectors", "values_array"]

_FIRST_KEYS = 1024
_OBJECT_BYTES = 100
_PART = 16_384  # keys that are Python objects at the same time
Present = NDArray[np.bool_]


def values_array(values: Sequence[Any], state: str, dtype: Any) -> tuple[NDArray[Any], Present]:
    """Return values as a vector, and where there is one: None says that there is none.

    Raises:
        StateError: A row function has kept a value that the vector cannot have.
    """
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    if dtype.kind == "O":
        vector = np.empty(len(values), dtype=np.object_)
        vector[:] = values
        return vector, present
    kinds = {int} if dtype.kind == "i" else {bool} if dtype.kind == "b" else {int, float}
    if not set(map(type, values)) <= {*kinds, type(None)}:
        odd = next(value for value in values if value is not None and type(value) not in kinds)
        raise StateError(
            f"state {state!r} holds {preview(odd)}, which a function of rows has kept there; a batch function reads it "
            f"as numbers of type {dtype}: declare the state with the type of its values"
        )
    return np.fromiter((0 if value is None else value for value in values), dtype, len(values)), present


class KeyVectors:
    """The keys of an operator, numbered for all of its vectors.

    Args:
        types: The Arrow types of the key columns.
        key_values: The conversions of keys.
    """

    def __init__(self, types: Sequence[pa.DataType], key_values: KeyValues) -> None:
        self.index = KeyIndex(types)
        self.key_values = key_values
        self.tables: list[ValueVectors] = []
        self._check_at = _FIRST_KEYS

    def numbers(self, keys: Sequence[pa.Array]) -> Rows:
        """Return the number of each row's key, valid until the next call."""
        stores = [table.store for table in self.tables if table.store is not None]
        if stores:
            if self.size_bytes > sum(store.room_bytes() for store in stores):
                for store in stores:
                    store.spill()
                self.index = KeyIndex(self.index.types)
                for table in self.tables:
                    table.empty()
        elif len(self.index) >= self._check_at:
            self._renumber()
        return self.add(keys)

    def add(self, keys: Sequence[pa.Array]) -> Rows:
        """Return the number of each row's key, and keep the numbers of all others."""
        numbers = self.index.rows(keys)
        for table in self.tables:
            table.make_room(len(self.index))
        return numbers

    def _renumber(self) -> None:
        """Give new numbers to the keys that are needed, if many are not."""
        count = len(self.index)
        needed = np.zeros(count, dtype=np.bool_)
        for table in self.tables:
            table.note_needed(needed)
        kept = np.flatnonzero(needed)
        if 4 * len(kept) < 3 * count:
            columns = self.index.columns(kept)
            self.index = KeyIndex(self.index.types)
            new = np.full(count, ABSENT, dtype=np.int64)
            if len(kept):
                new[kept] = self.index.rows(columns)
            for table in self.tables:
                table.renumber(kept, new)
        self._check_at = max(_FIRST_KEYS, 2 * len(self.index))

    @property
    def size_bytes(self) -> int:
        """The memory of the keys and of all vectors."""
        return self.index.size_bytes + sum(table.size_bytes for table in self.tables)

    def stored_keys(self, stores: Sequence[KeyStore], numbers: Rows) -> list[Any]:
        """Return keys in the form of tables."""
        return self.key_values.keys([store.to_arrow(numbers) for store in stores])


class ValueVectors(FrontTable):
    """The values of one state, by the number of the key.

    Args:
        declared: The declaration of the state.
        keys: The keys of the operator.
        dtype: The NumPy type of the values; that of objects for values that are kept as they are.
    """

    __slots__ = (
        "__weakref__", "_changed", "_codec", "_dtype", "_keys", "_loaded", "_noted", "_present", "_tracked",
        "_values", "store",
    )  # fmt: skip

    def __init__(self, declared: Declaration, keys: KeyVectors, dtype: Any, *, tracked: bool) -> None:
        super().__init__(declared.info, tracked=False)
        self._codec = declared.value
        self._keys = keys
        self._dtype = np.dtype(dtype)
        self._tracked = tracked
        self.store: EntryStore | None = None
        self._noted: WeakSet[ChangedRows] = WeakSet()  # what checkpoints that are not complete refer to
        self.data = _Entries(self)  # type: ignore[assignment]  # the part of a dictionary that backends read
        self.empty()
        keys.tables.append(self)

    def empty(self) -> None:
        """Remove every value, and give back the memory."""
        self._values = np.zeros(0, dtype=self._dtype)
        self._present: Present = np.zeros(0, dtype=np.bool_)
        self._changed: Present = np.zeros(0, dtype=np.bool_)
        self._loaded: Present = np.zeros(0, dtype=np.bool_)
        self.make_room(len(self._keys.index))

    # ---------------------------------------------------------------------------------------------- for the function

    def read(self, numbers: Rows) -> tuple[NDArray[Any], Present]:
        """Return the values of some keys, and which of them have one."""
        if self.store is not None:
            self._fetch(self.store, numbers)
        return self._values[numbers], self._present[numbers]

    def write(self, numbers: Rows, values: NDArray[Any], present: Present) -> None:
        """Set or remove the values of some keys."""
        if self._dtype.kind == "O":
            for value, there in zip(values.tolist(), present.tolist(), strict=True):
                if there:
                    self._codec.stored(value)  # refuses one of another type
        self._values[numbers] = values
        self._present[numbers] = present
        self._loaded[numbers] = True
        if self._tracked:
            self._changed[numbers] = True

    def _fetch(self, store: EntryStore, numbers: Rows) -> None:
        missing = numbers[~self._loaded[numbers]]
        if len(missing):
            found = store.read(self._keys.stored_keys(self._keys.index.frozen(), missing))
            self._values[missing], self._present[missing] = self._vector(found)
            self._loaded[missing] = True

    def _vector(self, kept: Sequence[Any]) -> tuple[NDArray[Any], Present]:
        loaded = [None if value is None else self._codec.loaded(value) for value in kept]
        return values_array(loaded, self.info.name, self._dtype)

    # ---------------------------------------------------------------------------------------------- for the keys

    def make_room(self, count: int) -> None:
        """Let the vectors have an element for each key."""
        if len(self._values) < count:
            size = max(count, _FIRST_KEYS, len(self._values) * 9 // 8)
            for name in ("_values", "_present", "_changed", "_loaded"):
                old = getattr(self, name)
                grown = np.zeros(size, dtype=old.dtype)
                grown[: len(old)] = old
                setattr(self, name, grown)

    def note_needed(self, needed: Present) -> None:
        """Note which keys have a value, or a change that is to be written."""
        count = len(needed)
        needed |= self._present[:count]
        needed |= self._changed[:count]
        for noted in self._noted:
            needed[noted.numbers] = True

    def renumber(self, kept: Rows, new: Rows) -> None:
        """Keep some keys, which have new numbers."""
        size = max(len(kept), _FIRST_KEYS)
        for name in ("_values", "_present", "_changed", "_loaded"):
            old = getattr(self, name)
            moved = np.zeros(size, dtype=old.dtype)
            moved[new[kept]] = old[kept]
            setattr(self, name, moved)
        for noted in self._noted:
            noted.numbers = new[noted.numbers]

    @property
    def size_bytes(self) -> int:
        """The memory of the values."""
        objects = _OBJECT_BYTES * len(self._keys.index) if self._dtype.kind == "O" else 0
        return self._values.nbytes + 3 * self._present.nbytes + objects

    # ---------------------------------------------------------------------------------------------- in front of a store

    def put_in_front(self, store: EntryStore) -> None:
        self.store = store
        self._tracked = True

    def take_writes(self) -> Iterator[tuple[list[Any], list[Any]]]:
        changed = np.flatnonzero(self._changed)
        stores = self._keys.index.frozen()
        for first in range(0, len(changed), _PART):
            part = changed[first : first + _PART]
            there = self._present[part].tolist()
            values = [v if t else None for v, t in zip(self._stored(self._values[part]), there, strict=True)]
            yield self._keys.stored_keys(stores, part), values
        self._changed[:] = False

    def forget(self) -> None:
        for vector in (self._present, self._changed, self._loaded):
            vector[:] = False

    def known(self, key: Any) -> Any:
        number = self._number(key)
        if number == ABSENT or not self._present[number]:
            return None
        return self._stored(self._values[number : number + 1])[0]

    def has(self, key: Any) -> bool:
        """Return whether a key is in the vectors, with or without a value."""
        number = self._number(key)
        return number != ABSENT and bool(self._loaded[number])

    def _number(self, key: Any) -> int:
        return int(self._keys.index.find(self._keys.key_values.columns([key]))[0])

    # ---------------------------------------------------------------------------------------------- what backends call

    def codec(self) -> Codec:
        return self._codec

    def _stored(self, values: NDArray[Any]) -> list[Any]:
        found: list[Any] = values.tolist()
        return found

    def take_changed(self) -> Collection[Any]:
        changed = ChangedRows(np.flatnonzero(self._changed))
        self._changed[:] = False
        self._noted.add(changed)
        return changed

    def some_key(self) -> Any:
        first = np.flatnonzero(self._present)[:1]
        return self._keys.stored_keys(self._keys.index.frozen(), first)[0] if len(first) else None

    def whole(self) -> TableEntries:
        return self._entries(np.flatnonzero(self._present), np.zeros(0, np.int64), full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        chosen = changed_rows(keys)
        there = self._present[chosen]
        return self._entries(chosen[there], chosen[~there], full=False)

    def _entries(self, there: Rows, gone: Rows, *, full: bool) -> TableEntries:
        stores, group = self._keys.index.frozen(), self._keys
        values = self._values[there]
        return TableEntries(
            self.info,
            LazyObjects(there, lambda part: group.stored_keys(stores, part)),  # type: ignore[arg-type]
            LazyObjects(np.arange(len(there)), lambda part: self._stored(values[part])),  # type: ignore[arg-type]
            LazyObjects(gone, lambda part: group.stored_keys(stores, part)),  # type: ignore[arg-type]
            full=full,
        )

    def load(self, entries: Mapping[Any, Any]) -> None:
        if entries:
            numbers = self._keys.add(self._keys.key_values.columns(list(entries)))
            self._values[numbers], self._present[numbers] = self._vector(list(entries.values()))

    def drop(self) -> None:
        self.forget()


class _Entries(Mapping[Any, Any]):
    """The entries of a state as a dictionary would hold them. With RocksDB, those in memory."""

    def __init__(self, table: ValueVectors) -> None:
        self._table = table

    def __len__(self) -> int:
        return int(np.count_nonzero(self._table._present))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table.whole().keys[:])

    def __getitem__(self, key: Any) -> Any:
        table = self._table
        found = table.known(key)
        if found is None and table.store is not None and not table.has(key):
            found = table.store.read([key])[0]
        if found is None:
            raise KeyError(key)
        return found
