"""`KeyElements`: any number of distinct values for each key, all of them numbered, found by key and value.

The elements of a key are linked to one another, so those of some keys are found without a look at all others. A key has
a place of its own, which it gives up when it is reset: its elements stay behind, until they are half of all.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Grown, KeyStore, Rows

__all__ = ["KeyElements"]

NOWHERE = 0
"""The place of a key without elements: a vector of places that is all zeros is that of no rows."""

_STEPS = 64  # elements of a key up to which they are followed one by one, for all keys at once


class KeyElements:
    """The elements of all keys.

    Args:
        kind: The type of the values.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._index = KeyIndex([pa.int64(), kind])
        self._stores: list[KeyStore] | None = None  # of a frozen copy
        self._places = Grown(np.int64)  # the place of each element
        self._before = Grown(np.int64)  # the element of the same place that came before each element, or -1
        self._last = np.full(64, -1, dtype=np.int64)  # the last element of each place
        self._next_place = NOWHERE + 1

    def __len__(self) -> int:
        return self._places.length

    def placed(self, places: NDArray[np.int64], keys: Rows) -> Rows:
        """Return the place of each row's key; keys that have none get one, in the vector of places."""
        found = places[keys]
        if (found == NOWHERE).any():
            new = np.unique(keys[found == NOWHERE])
            places[new] = np.arange(self._next_place, self._next_place + len(new))
            self._next_place += len(new)
            if self._next_place > len(self._last):
                grown = np.full(max(self._next_place, len(self._last) * 5 // 4), -1, dtype=np.int64)
                grown[: len(self._last)] = self._last
                self._last = grown
            found = places[keys]
        rows: Rows = found
        return rows

    def rows(self, places: Rows, values: pa.Array) -> Rows:
        """Return the element of each row. Values that are new to their key become elements."""
        before = len(self)
        elements = self._index.rows([pa.array(places), values])
        if len(self._index) > before:
            new = np.empty(len(self._index) - before, dtype=np.int64)
            fresh = elements >= before
            new[elements[fresh] - before] = places[fresh]
            self._link(new)
        return elements

    def _link(self, places: Rows) -> None:
        """Link new elements, whose places are given in their order."""
        first = len(self)
        order = np.argsort(places, kind="stable")
        sorted_places = places[order]
        begins = np.ones(len(places), dtype=np.bool_)
        begins[1:] = sorted_places[1:] != sorted_places[:-1]
        previous = np.empty(len(places), dtype=np.int64)
        previous[1:] = order[:-1] + first
        previous[begins] = self._last[sorted_places[begins]]
        before = np.empty(len(places), dtype=np.int64)
        before[order] = previous
        self._before.extend(before)
        self._places.extend(places)
        ends = np.append(begins[1:], True)
        self._last[sorted_places[ends]] = order[ends] + first

    def of(self, places: Rows) -> tuple[Rows, Rows]:
        """Return the elements of some places: for each element, the position of its place in `places`; the element."""
        at, current = np.arange(len(places)), self._last[places]
        owners, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for _ in range(_STEPS):
            live = current >= 0
            at, current = at[live], current[live]
            if not len(at):
                return np.concatenate(owners), np.concatenate(found)
            owners.append(at)
            found.append(current)
            current = self._before.values[current]
        many = np.zeros(len(places), dtype=np.bool_)  # places that have more elements than steps were made
        many[at[current >= 0]] = True
        joined, elements = np.concatenate(owners), np.concatenate(found)
        few = ~many[joined]
        owner_of_place = np.full(self._next_place, -1, dtype=np.int64)
        owner_of_place[places[many]] = np.flatnonzero(many)
        owner = owner_of_place[self._places.values]
        rest = np.flatnonzero(owner >= 0)
        return np.concatenate([joined[few], owner[rest]]), np.concatenate([elements[few], rest])

    def values(self, elements: Rows) -> pa.Array:
        """Return the values of some elements."""
        if self._stores is not None:
            return self._stores[1].to_arrow(elements)
        return self._index.columns(elements)[1]

    def frozen(self) -> KeyElements:
        """Return the elements so far, for another thread."""
        copy = KeyElements.__new__(KeyElements)
        copy.__dict__.update(self.__dict__)
        copy._stores = self._index.frozen()
        copy._places, copy._before, copy._last = self._places.frozen(), self._before.frozen(), self._last.copy()
        return copy

    def chosen(self, places: NDArray[np.int64]) -> tuple[KeyElements, Rows]:
        """Return the elements of some places alone, and which they were. The places are changed to new ones."""
        kept = KeyElements(self._kind)
        there = np.flatnonzero(places != NOWHERE)
        owners, elements = self.of(places[there])
        order = np.lexsort((elements, owners))
        owners, elements = owners[order], elements[order]
        places[there] = NOWHERE
        if len(there):
            kept.placed(places, there)
        if len(elements):
            rows = kept.rows(places[there][owners], self.values(elements))
            elements = elements[np.argsort(rows)]
        return kept, elements

    @property
    def size_bytes(self) -> int:
        """The memory of the elements."""
        vectors = self._places.size_bytes + self._before.size_bytes + self._last.nbytes
        return self._index.size_bytes + vectors
