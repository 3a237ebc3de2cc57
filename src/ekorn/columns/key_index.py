"""`KeyIndex`: numbers the distinct keys of a stream of batches, a batch at a time.

An operator on columns keeps its state in vectors. The number of a key is its row in all of them. A batch is looked up
in an open-addressing hash table by a few NumPy calls, whatever its number of rows: a key costs a table entry, its hash,
and its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.distinct_first import DistinctFirst
from ekorn.columns.key_words import Grown, KeyStore, Rows, Words, mixed_words, store_for

__all__ = ["ABSENT", "KeyIndex"]

ABSENT = -1
_FIRST_SLOTS = 1 << 10
_LOAD = 0.6  # the share of table entries in use above which the table doubles


class KeyIndex:
    """The distinct keys of some columns, numbered from 0: those of one batch before those of the next.

    Args:
        types: The Arrow types of the key columns.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        stores = [store_for(kind) for kind in types]
        self.types = tuple(types)
        self._stores: list[KeyStore] = [
            s if s is not None else _ObjectStore(k) for s, k in zip(stores, types, strict=True)
        ]
        self._table = np.full(_FIRST_SLOTS, ABSENT, dtype=np.int32)
        self._hashes = Grown(np.uint32)  # the low half of each key's hash
        self._distinct = DistinctFirst()

    def __len__(self) -> int:
        return self._hashes.length

    @property
    def size_bytes(self) -> int:
        """The memory that the index takes."""
        return self._table.nbytes + self._hashes.size_bytes + sum(store.size_bytes for store in self._stores)

    def rows(self, columns: Sequence[pa.Array]) -> Rows:
        """Return the number of the key in each row of a batch. Keys that are new get the next numbers."""
        return self._found(columns, adds=True)

    def find(self, columns: Sequence[pa.Array]) -> Rows:
        """Return the number of the key in each row of a batch; `ABSENT` for a key that is not here."""
        return self._found(columns, adds=False)

    def columns(self, keys: Rows | None = None) -> list[pa.Array]:
        """Return the columns of the keys with some numbers, or of all keys in the order of their numbers."""
        return [store.to_arrow(keys) for store in self._stores]

    def truncate(self, count: int) -> None:
        """Forget the keys that came last, and keep so many."""
        if count < len(self):
            self._table[self._table >= count] = ABSENT  # later keys are behind earlier ones wherever both were probed
            self._hashes.truncate(count)
            for store in self._stores:
                store.truncate(count)

    def frozen(self) -> list[KeyStore]:
        """Return the columns of the keys so far, for another thread."""
        return [store.frozen() for store in self._stores]

    def _found(self, columns: Sequence[pa.Array], *, adds: bool) -> Rows:
        encoded = self._distinct.of(columns[0]) if len(columns) == 1 else None
        if encoded is None:
            return self._look_up(*self._prepare(columns), adds=adds)
        distinct, rows = encoded
        return self._look_up(*self._prepare([distinct]), adds=adds).take(rows)

    def _prepare(self, columns: Sequence[pa.Array]) -> tuple[list[Any], Words]:
        prepared = [store.prepare(column) for store, column in zip(self._stores, columns, strict=True)]
        hashes = prepared[0].hashes
        for column in prepared[1:]:
            hashes = mixed_words(hashes + np.uint64(0x9E3779B97F4A7C15)) ^ column.hashes
        return prepared, mixed_words(hashes) if len(prepared) > 1 else hashes

    def _look_up(self, prepared: list[Any], hashes: Words, *, adds: bool) -> Rows:  # hot
        if adds:
            self._make_room(len(hashes))
        elif not len(self):
            return np.full(len(hashes), ABSENT, dtype=np.int64)
        mask, low = len(self._table) - 1, hashes.astype(np.uint32)
        slots = (hashes & np.uint64(mask)).astype(np.int64)
        found = np.full(len(hashes), ABSENT, dtype=np.int64)
        open_rows: Rows | None = None  # all of them; then those whose slot has another key
        while True:
            kept: Any = self._table.take(slots)
            there = kept != ABSENT
            if not there.all():
                if adds:
                    empty = np.flatnonzero(~there)
                    self._add(prepared, hashes, empty if open_rows is None else open_rows[empty], slots[empty])
                    kept = self._table.take(slots)
                    there[:] = True
                else:
                    kept = np.maximum(kept, 0)
            same = self._hashes.values.take(kept) == (low if open_rows is None else low.take(open_rows))
            same &= there
            for store, column in zip(self._stores, prepared, strict=True):
                same &= store.equal(column, open_rows, kept)
            hits = np.flatnonzero(same)
            found[hits if open_rows is None else open_rows[hits]] = kept[hits]
            wrong = np.flatnonzero(there & ~same)
            if not len(wrong):
                return found
            open_rows = wrong if open_rows is None else open_rows[wrong]
            slots = (slots[wrong] + 1) & mask

    def _add(self, prepared: list[Any], hashes: Words, rows: Rows, slots: Rows) -> None:
        """Keep the keys of some rows in slots that are empty. If several rows want one slot, one of them gets it."""
        order = np.arange(len(rows), dtype=np.int32)
        self._table[slots[::-1]] = order[::-1]  # the last one that is written stays: the first row that wants the slot
        winners = np.flatnonzero(self._table.take(slots) == order)
        first = self._hashes.length
        chosen = rows[winners]
        self._table[slots[winners]] = np.arange(first, first + len(chosen), dtype=np.int32)
        self._hashes.extend(hashes[chosen].astype(np.uint32))
        for store, column in zip(self._stores, prepared, strict=True):
            store.append(column, chosen)

    def _make_room(self, more: int) -> None:
        """Double the table while the keys of a batch, if all of them were new, would fill too much of it."""
        needed = self._hashes.length + more
        slots = len(self._table)
        if self._hashes.length < slots * _LOAD / 2 and needed < slots:
            return
        while self._hashes.length > slots * _LOAD / 2 or needed >= slots:
            slots *= 2
            if self._hashes.length <= slots * _LOAD and needed < slots:
                break
        if slots != len(self._table):
            self._rebuild(slots)

    def _rebuild(self, slots: int) -> None:
        self._table = np.full(slots, ABSENT, dtype=np.int32)
        hashes, mask = self._hashes.values, slots - 1
        waiting: NDArray[np.int64] = np.arange(len(hashes))
        at = (hashes & np.uint32(mask)).astype(np.int64)
        while len(waiting):
            free = np.flatnonzero(self._table.take(at) == ABSENT)
            self._table[at[free]] = waiting[free].astype(np.int32)
            left = self._table.take(at) != waiting
            waiting, at = waiting[left], (at[left] + 1) & mask


class _ObjectColumn:
    """Keys of a batch as Python objects.

    Attributes:
        values: The values.
        keys: What is hashed and compared: equal where the values are one key.
    """

    __slots__ = ("hashes", "keys", "values")

    def __init__(self, column: pa.Array) -> None:
        self.values = column.to_pylist()
        self.keys = [_compared(v) for v in self.values] if pa.types.is_nested(column.type) else self.values
        self.hashes = np.fromiter((hash(key) & (1 << 64) - 1 for key in self.keys), np.uint64, len(column))

    def __len__(self) -> int:
        return len(self.values)


class _ObjectStore(KeyStore):
    """Keys of any other type, as Python objects: decimals, lists, structs."""

    def __init__(self, arrow_type: pa.DataType) -> None:
        self._type = arrow_type
        self._values: list[Any] = []
        self._keys: list[Any] = []

    def prepare(self, column: pa.Array) -> _ObjectColumn:
        return _ObjectColumn(column)

    def equal(self, column: _ObjectColumn, at: Rows | None, kept: Rows) -> NDArray[np.bool_]:
        pairs = zip(range(len(kept)) if at is None else at.tolist(), kept.tolist(), strict=True)
        return np.fromiter((column.keys[a] == self._keys[k] for a, k in pairs), np.bool_, len(kept))

    def append(self, column: _ObjectColumn, at: Rows) -> None:
        positions = at.tolist()
        self._values += [column.values[a] for a in positions]
        self._keys += [column.keys[a] for a in positions]

    def to_arrow(self, keys: Rows | None = None) -> pa.Array:
        values = self._values if keys is None else [self._values[key] for key in keys.tolist()]
        return pa.array(values, self._type)

    def truncate(self, count: int) -> None:
        del self._values[count:]
        del self._keys[count:]

    def frozen(self) -> _ObjectStore:
        copy = _ObjectStore(self._type)
        copy._values, copy._keys = self._values.copy(), self._keys.copy()
        return copy

    @property
    def size_bytes(self) -> int:
        return (200 if pa.types.is_nested(self._type) else 100) * len(self._values)


def _compared(value: Any) -> Any:
    """Return what stands for a nested value: NaN is one key, 0.0 and -0.0 are two, as in streams of rows."""
    if isinstance(value, list | tuple):
        return tuple(map(_compared, value))
    if isinstance(value, dict):
        return tuple((name, _compared(each)) for name, each in value.items())
    if isinstance(value, float) and (value != value or value == 0.0):
        return "NaN" if value != value else repr(value)
    return value
