"""`ColumnTable`: one state of an operator on columns, as vectors with an element for each key.

To a backend it is a `Table` that an operator brings along (`KeyedStateBackend.adopt`). Snapshots hold what the same
state has on rows: a key of the stream, and a tuple of the accumulators of all aggregates. So a checkpoint that was
taken on columns restores on rows, and the other way round.

Only the vectors are copied when a snapshot is captured. The thread that writes makes Python objects of keys and values,
a chunk at a time.

With RocksDB the vectors hold the keys in use. Keys that are not among them are read when a batch has them, all keys of
the batch in one call. When the vectors have outgrown their memory, what has changed is written, and they begin anew. So
a state that is larger than memory costs what it costs on rows for keys that come rarely, and nothing for those that
come often.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.kernels import Kernel
from ekorn.columns.key_index import ABSENT, KeyIndex
from ekorn.columns.key_words import KeyStore, Rows
from ekorn.columns.row_columns import RowColumns
from ekorn.errors import RecordTypeError
from ekorn.keygroups import state_key, user_key
from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec, PickledCodec
from ekorn.state.snapshots import StateInfo
from ekorn.state.table import EntryStore, FrontTable
from ekorn.types.data_types import RowType

__all__ = ["ChangedRows", "ColumnTable", "KeyValues", "LazyObjects", "changed_rows", "load_values", "values_of"]

_OBJECT_BYTES = 200  # the memory of an accumulator that is a Python object, without what it holds
_PART = 16_384  # keys that are Python objects at the same time


class KeyValues:
    """The conversions between key columns and keys as state tables hold them: tuples of the fields."""

    def __init__(self, key_type: RowType) -> None:
        self._columns = RowColumns(key_type)

    def keys(self, columns: Sequence[pa.Array]) -> list[Any]:
        """Return the keys in key columns."""
        return list(map(state_key, self._columns.values(columns)))

    def columns(self, stored: Sequence[Any]) -> list[pa.Array]:
        """Return the key columns of keys."""
        return list(self._columns.batch(list(map(user_key, stored))).columns)


class ColumnTable(FrontTable):
    """The accumulators of all aggregates of an operator, by key."""

    __slots__ = ("_changed_rows", "_codec", "_key_values", "_known", "_store", "_tracked", "index", "kernels")

    def __init__(
        self, info: StateInfo, index: KeyIndex, kernels: Sequence[Kernel], key_values: KeyValues, *, tracked: bool
    ) -> None:
        super().__init__(info, tracked=False)
        self.index = index
        self.kernels = list(kernels)
        self.data = _Entries(self)  # type: ignore[assignment]  # the part of a dictionary that backends read
        self._key_values = key_values
        self._codec = PickledCodec(info.name)
        self._tracked = tracked
        self._store: EntryStore | None = None
        self._changed_rows: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._known = 0  # the number of keys before the last batch

    def rows(self, keys: Sequence[pa.Array]) -> Rows:
        """Return the element of each row's key. New keys get elements, and all of them count as changed.

        The elements are those of the keys until the next call.
        """
        if self._store is not None and self.size_bytes + self._object_bytes(self._store) > self._store.room_bytes():
            self._store.spill()
        self._known = before = len(self.index)
        rows = self.index.rows(keys)
        count = len(self.index)
        if count > before:
            self._make_room(count)
            if self._store is not None:
                self._read(self._store, np.arange(before, count))
        if self._tracked:
            self._changed_rows[rows] = True
        return rows

    def attempt(self, keys: Sequence[pa.Array]) -> tuple[Rows, Callable[[], None]]:
        """Return what `rows` returns, and a function that takes back what happens to the accumulators from now on.

        The function may be called until `rows` or `attempt` is called again.
        """
        rows = self.rows(keys)
        known = self._known
        held = np.unique(rows[rows < known])
        kept = [kernel.kept(held) for kernel in self.kernels]

        def take_back() -> None:
            self.index.truncate(known)
            self._changed_rows[known:] = False
            for kernel, values in zip(self.kernels, kept, strict=True):
                kernel.put_back(held, values, count=known)

        return rows, take_back

    def _object_bytes(self, store: EntryStore) -> int:
        """Return about what the accumulators take that are Python objects; vectors have references to them."""
        if not any(vector.dtype == np.object_ for kernel in self.kernels for vector in kernel._vectors):
            return 0
        return len(self.index) * (_OBJECT_BYTES + 3 * store.value_bytes())

    def _make_room(self, count: int) -> None:
        for kernel in self.kernels:
            kernel.make_room(count)
        if len(self._changed_rows) < count:
            grown = np.zeros(max(count, len(self._changed_rows) * 9 // 8), dtype=np.bool_)
            grown[: len(self._changed_rows)] = self._changed_rows
            self._changed_rows = grown

    def _read(self, store: EntryStore, rows: Rows) -> None:
        """Read the accumulators of keys that have just got their elements."""
        found = store.read(self._stored_keys(self.index.frozen(), rows))
        there = [number for number, value in enumerate(found) if value is not None]
        if there:
            self._load_values(rows[there], [found[number] for number in there])

    def parts(self) -> Iterator[Rows]:
        """Yield the elements of all keys, in parts; a part is to be used before the next one is asked for."""
        if self._store is None:
            yield np.arange(len(self.index))
            return
        entries = self._store.scan()
        while part := list(islice(entries, _PART)):
            self.forget()
            self._load(dict(part))
            yield np.arange(len(self.index))

    @property
    def size_bytes(self) -> int:
        """The memory of the keys and of all accumulators."""
        vectors = sum(kernel.size_bytes for kernel in self.kernels) + self._changed_rows.nbytes
        return self.index.size_bytes + vectors

    # -------------------------------------------------------------------------------------------- in front of a store

    def put_in_front(self, store: EntryStore) -> None:
        self._store = store
        self._tracked = True

    def take_writes(self) -> Iterator[tuple[list[Any], list[Any]]]:
        changed = np.flatnonzero(self._changed_rows)
        stores = self.index.frozen()
        for first in range(0, len(changed), _PART):
            part = changed[first : first + _PART]
            yield self._stored_keys(stores, part), self._stored_values(self.kernels, part)
        self._changed_rows[:] = False

    def forget(self) -> None:
        self.drop()

    def known(self, key: Any) -> Any:
        return self.data.get(key)

    # ------------------------------------------------------------------------------------------ what backends call

    def codec(self) -> Codec:
        return self._codec

    def take_changed(self) -> Collection[Any]:
        changed = np.flatnonzero(self._changed_rows)
        self._changed_rows[:] = False
        return ChangedRows(changed)

    def some_key(self) -> Any:
        return self._stored_keys(self.index.frozen(), np.zeros(1, np.int64))[0] if len(self.index) else None

    def whole(self) -> TableEntries:
        return self._entries(np.arange(len(self.index)), full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        chosen = changed_rows(keys)
        return self._entries(chosen, full=False)

    def _entries(self, rows: Rows, *, full: bool) -> TableEntries:
        stores = self.index.frozen()
        kernels = [kernel.frozen() for kernel in self.kernels]
        keys = LazyObjects(rows, lambda part: self._stored_keys(stores, part))
        values = LazyObjects(rows, lambda part: self._stored_values(kernels, part))
        return TableEntries(self.info, keys, values, [], full=full)  # type: ignore[arg-type]  # sliced, and counted

    def _stored_keys(self, stores: Sequence[KeyStore], rows: Rows) -> list[Any]:
        return self._key_values.keys([store.to_arrow(rows) for store in stores])

    def _stored_values(self, kernels: Sequence[Kernel], rows: Rows) -> list[Any]:
        """Return the values of entries as tables keep them."""
        return list(map(self._codec.stored, values_of(kernels, rows)))

    def _load_values(self, rows: Rows, kept: Sequence[Any]) -> None:
        """Set the accumulators of some rows to those of values as tables keep them."""
        load_values(self.kernels, rows, list(map(self._codec.loaded, kept)))

    def load(self, entries: Mapping[Any, Any]) -> None:
        if entries:
            self._load(entries)

    def _load(self, entries: Mapping[Any, Any]) -> None:
        rows = self.index.rows(self._key_values.columns(list(entries)))
        self._make_room(len(self.index))
        self._load_values(rows, list(entries.values()))

    def drop(self) -> None:
        self.index = KeyIndex(self.index.types)
        self._changed_rows[:] = False
        for kernel in self.kernels:
            kernel.keep(np.zeros(0, np.int64))


def values_of(kernels: Sequence[Kernel], rows: Rows) -> list[tuple[Any, ...]]:
    """Return the entries of some rows: the accumulators of all aggregates, one after the other."""
    parts = [kernel.accumulators(rows) for kernel in kernels]
    return [sum(entry, ()) for entry in zip(*parts, strict=True)]


def load_values(kernels: Sequence[Kernel], rows: Rows, entries: Sequence[tuple[Any, ...]]) -> None:
    """Set the accumulators of some rows to those of their entries."""
    first = 0
    for kernel in kernels:
        width = kernel.aggregate.width
        kernel.load(rows, [entry[first : first + width] for entry in entries])
        first += width


class ChangedRows(Collection[int]):
    """The numbers of rows that changed. A table may set them anew while a checkpoint refers to them."""

    def __init__(self, numbers: Rows) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers.tolist())

    def __contains__(self, number: object) -> bool:
        return number in self.numbers


def changed_rows(changes: Collection[Any]) -> Rows:
    """Return the numbers of rows in what a checkpoint refers to."""
    return changes.numbers if isinstance(changes, ChangedRows) else np.fromiter(changes, np.int64, len(changes))


class LazyObjects(Sequence[Any]):
    """Keys or values that become Python objects when a slice of them is asked for."""

    def __init__(self, rows: Rows, objects: Callable[[Rows], list[Any]]) -> None:
        self._rows = rows
        self._objects = objects

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, part: Any) -> Any:
        if isinstance(part, slice):
            return self._objects(self._rows[part])
        return self._objects(self._rows[part : part + 1])[0]


class _Entries(Mapping[Any, Any]):
    """The entries of a column table as a dictionary would hold them."""

    def __init__(self, table: ColumnTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table.index)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table.whole().keys[:])

    def __getitem__(self, key: Any) -> Any:
        table = self._table
        try:
            columns = table._key_values.columns([key])
        except RecordTypeError:  # a key of another type, which a client asks for
            raise KeyError(key) from None
        row = table.index.find(columns)
        if row[0] == ABSENT:
            raise KeyError(key)
        return table._stored_values(table.kernels, row)[0]
