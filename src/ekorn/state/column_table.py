"""`ColumnTable`: one state of an operator on columns, as vectors with an element for each key.

To a backend it is a `Table` that an operator brings along (`KeyedStateBackend.adopt`). Snapshots hold what the same
state has on rows: a key of the stream, and a tuple of the accumulators of all aggregates. So a checkpoint that was
taken on columns restores on rows, and the other way round.

Only the vectors are copied when a snapshot is captured. The thread that writes makes Python objects of keys and values,
a chunk at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.kernels import Kernel
from ekorn.columns.key_index import ABSENT, KeyIndex
from ekorn.columns.key_words import KeyStore, Rows
from ekorn.columns.row_columns import RowColumns
from ekorn.keygroups import state_key, user_key
from ekorn.state.canonical_format import TableEntries
from ekorn.state.snapshots import StateInfo
from ekorn.state.table import Table
from ekorn.types.data_types import RowType

__all__ = ["ColumnTable", "KeyValues", "LazyObjects", "load_values", "values_of"]


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


class ColumnTable(Table):
    """The accumulators of all aggregates of an operator, by key."""

    __slots__ = ("_changed_rows", "_key_values", "_tracked", "index", "kernels")

    def __init__(
        self, info: StateInfo, index: KeyIndex, kernels: Sequence[Kernel], key_values: KeyValues, *, tracked: bool
    ) -> None:
        super().__init__(info, tracked=False)
        self.index = index
        self.kernels = list(kernels)
        self.data = _Entries(self)  # type: ignore[assignment]  # the part of a dictionary that backends read
        self._key_values = key_values
        self._tracked = tracked
        self._changed_rows: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def rows(self, keys: Sequence[pa.Array]) -> Rows:
        """Return the element of each row's key. New keys get elements, and all of them count as changed."""
        rows = self.index.rows(keys)
        count = len(self.index)
        for kernel in self.kernels:
            kernel.make_room(count)
        if self._tracked:
            if len(self._changed_rows) < count:
                grown = np.zeros(max(count, len(self._changed_rows) * 9 // 8), dtype=np.bool_)
                grown[: len(self._changed_rows)] = self._changed_rows
                self._changed_rows = grown
            self._changed_rows[rows] = True
        return rows

    @property
    def size_bytes(self) -> int:
        """The memory of the keys and of all accumulators."""
        return self.index.size_bytes + sum(kernel.size_bytes for kernel in self.kernels) + self._changed_rows.nbytes

    # ------------------------------------------------------------------------------------------ what backends call

    def take_changed(self) -> Collection[Any]:
        changed = np.flatnonzero(self._changed_rows)
        self._changed_rows[:] = False
        return _RowNumbers(changed)

    def some_key(self) -> Any:
        return self._stored_keys(self.index.frozen(), np.zeros(1, np.int64))[0] if len(self.index) else None

    def whole(self) -> TableEntries:
        return self._entries(np.arange(len(self.index)), full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        chosen = keys.numbers if isinstance(keys, _RowNumbers) else np.fromiter(keys, np.int64, len(keys))
        return self._entries(chosen, full=False)

    def _entries(self, rows: Rows, *, full: bool) -> TableEntries:
        stores = self.index.frozen()
        kernels = [kernel.frozen() for kernel in self.kernels]
        keys = LazyObjects(rows, lambda part: self._stored_keys(stores, part))
        values = LazyObjects(rows, lambda part: values_of(kernels, part))
        return TableEntries(self.info, keys, values, [], full=full)  # type: ignore[arg-type]  # sliced, and counted

    def _stored_keys(self, stores: Sequence[KeyStore], rows: Rows) -> list[Any]:
        return self._key_values.keys([store.to_arrow(rows) for store in stores])

    def load(self, entries: Mapping[Any, Any]) -> None:
        if not entries:
            return
        rows = self.rows(self._key_values.columns(list(entries)))
        self._changed_rows[:] = False
        load_values(self.kernels, rows, list(entries.values()))

    def drop(self) -> None:
        self.index = KeyIndex(self.index.types)
        self._changed_rows[:] = False
        for kernel in self.kernels:
            kernel._vectors = [vector[:0] for vector in kernel._vectors]


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


class _RowNumbers(Collection[int]):
    """Numbers of rows that changed, in the order of their numbers."""

    def __init__(self, numbers: Rows) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[int]:
        return iter(self.numbers.tolist())

    def __contains__(self, number: object) -> bool:
        return number in self.numbers


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
        row = table.index.find(table._key_values.columns([key]))
        if row[0] == ABSENT:
            raise KeyError(key)
        return values_of(table.kernels, row)[0]
