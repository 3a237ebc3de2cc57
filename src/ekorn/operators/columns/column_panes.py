"""The table of windows on columns: a pane for each key and window, as vectors with an element for each pane.

A pane's number is its element in the accumulators of all aggregates. Keys are numbered first, and panes by the number
of the key and the start of the window, so the bytes of a key are kept and compared once, however many windows it has.
Panes that are over keep their numbers until they are half of all panes. Then those left are numbered anew.

A snapshot has what the windows of rows have (`operators/windows/pane_table.py`): the address of an entry is
(key, (start, end)), and its value (contents, has fired). As in `ColumnTable`, only vectors are copied when a snapshot
is captured. Count windows have addresses and values of their own (`count_panes.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.kernels import Kernel
from ekorn.columns.key_index import ABSENT, KeyIndex
from ekorn.columns.key_words import Grown, Rows
from ekorn.columns.vectors import Vectors
from ekorn.columns.window_vectors import Starts
from ekorn.errors import StateMigrationError
from ekorn.operators.columns.table_changes import TableChanges, joined_changes
from ekorn.operators.windows.saved_windows import PANES, other_size
from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec, PickledCodec
from ekorn.state.column_table import KeyValues, LazyObjects, load_values, values_of
from ekorn.state.snapshots import WINDOWED, StateInfo
from ekorn.state.table import Table

__all__ = ["ColumnPanes", "PaneEntries", "loaded_contents"]

_NUMBERS = (pa.int64(), pa.int64())
_FEW = 1024  # panes that are over and not worth numbering the others anew


class ColumnPanes(Table):
    """The open windows of all keys."""

    saved_info = StateInfo(PANES, f"{WINDOWED}panes")

    __slots__ = (
        "_codec",
        "_gone",
        "_index",
        "_key_values",
        "_keys",
        "_next_id",
        "_over",
        "_tracked",
        "_undo",
        "_vectors",
        "first_open",
        "first_to_fire",
        "has_restored_fired",
        "kernels",
        "size_ms",
    )

    def __init__(
        self, keys: KeyIndex, kernels: Sequence[Kernel], key_values: KeyValues, size_ms: int, *, tracked: bool
    ) -> None:
        super().__init__(self.saved_info, tracked=False)
        self.kernels = list(kernels)
        self.size_ms = size_ms
        self.data = PaneEntries(self)  # type: ignore[assignment]  # the part of a dictionary that backends read
        self._codec = PickledCodec("contents")
        self._keys = keys
        self._key_values = key_values
        self._tracked = tracked
        self._undo: _Undo | None = None
        self._next_id = 0
        self._clear()

    def _clear(self) -> None:
        self._keys = KeyIndex(self._keys.types)
        self._index = KeyIndex(_NUMBERS)
        self._vectors = _PaneVectors()
        self._over = 0  # panes that are over and still have numbers
        self._gone: list[_Addresses] = []  # panes that a snapshot has, and that went since the last one
        self.first_to_fire: int | None = None  # no window that has yet to fire starts earlier
        self.first_open: int | None = None  # no open window starts earlier
        self.has_restored_fired = False  # some windows had fired before the restore, which happens with lateness

    def __len__(self) -> int:
        return len(self._index) - self._over

    # ------------------------------------------------------------------------------------------------ rows

    def key_numbers(self, columns: Sequence[pa.Array]) -> Rows:
        """Return the number of each row's key. Panes have to be asked for before windows are closed."""
        return self._keys.rows(columns)

    def panes(self, keys: Rows, starts: Starts) -> Rows:
        """Return the panes of keys, by their numbers, and windows. Panes that are new or over are opened."""
        before = len(self._index)
        panes = self._index.rows([pa.array(keys), pa.array(starts)])
        if self._undo is not None:
            self._undo.panes = self._kept(panes, before)
        if len(self._index) > before:
            self._open(np.arange(before, len(self._index)))
        vectors = self._vectors
        if self._over:
            again = np.unique(panes[vectors.over.values[panes]])
            if len(again):
                vectors.over.values[again] = vectors.fired.values[again] = False
                self._over -= len(again)
                for kernel in self.kernels:
                    kernel.reset(again)
        if self._tracked:
            vectors.changed.values[panes] = True
        first = int(starts.min())
        self.first_to_fire = first if self.first_to_fire is None else min(first, self.first_to_fire)
        self.first_open = first if self.first_open is None else min(first, self.first_open)
        return panes

    def attempt(self) -> Callable[[], None]:
        """Return a function that takes back what happens from now on, up to one call of `panes`."""
        self._undo = undo = _Undo(len(self._keys), self.first_to_fire, self.first_open)

        def take_back() -> None:
            if undo.panes is not None:
                self._put_back(undo.panes)
            self._keys.truncate(undo.keys)
            self.first_to_fire, self.first_open = undo.first_to_fire, undo.first_open

        return take_back

    def _kept(self, panes: Rows, count: int) -> _KeptPanes:
        held, vectors = np.unique(panes[panes < count]), self._vectors
        flags = [flag.values[held] for flag in (vectors.over, vectors.fired, vectors.changed)]
        return _KeptPanes(held, count, self._over, flags, [kernel.kept(held) for kernel in self.kernels])

    def _put_back(self, kept: _KeptPanes) -> None:
        vectors = self._vectors
        self._index.truncate(kept.count)
        vectors.truncate(kept.count)
        self._over = kept.over
        for flag, values in zip((vectors.over, vectors.fired, vectors.changed), kept.flags, strict=True):
            flag.values[kept.panes] = values
        for kernel, accumulators in zip(self.kernels, kept.accumulators, strict=True):
            kernel.put_back(kept.panes, accumulators, count=kept.count)

    def _open(self, panes: Rows) -> None:
        keys, starts = (column.to_numpy() for column in self._index.columns(panes))
        none = np.zeros(len(panes), dtype=np.bool_)
        ids = np.arange(self._next_id, self._next_id + len(panes))
        self._next_id += len(panes)
        self._vectors.append(keys=keys, starts=starts, ids=ids, fired=none, over=none, changed=none, saved=none)
        for kernel in self.kernels:
            kernel.make_room(len(self._index))

    def mark_fired(self, panes: Rows, *, fired: bool) -> None:
        """Note whether some panes have fired with all of their rows."""
        self._vectors.fired.values[panes] = fired

    # ------------------------------------------------------------------------------------------------ firing

    def starts(self, panes: Rows) -> Starts:
        """Return the starts of the windows of some panes."""
        starts: Starts = self._vectors.starts.values[panes]
        return starts

    def key_columns(self, panes: Rows) -> list[pa.Array]:
        """Return the keys of some panes."""
        return self._keys.columns(self._vectors.keys.values[panes])

    def fire(self, last_start_ms: int) -> Rows:
        """Return the panes that have yet to fire and start up to a time, in order of time; note that they fire."""
        vectors = self._vectors
        waiting = ~vectors.over.values & ~vectors.fired.values
        panes = np.flatnonzero(waiting & (vectors.starts.values <= last_start_ms))
        vectors.fired.values[panes] = True
        if self._tracked:
            vectors.changed.values[panes] = True
        self.first_to_fire = _smallest(vectors.starts.values[waiting & ~vectors.fired.values])
        return panes[np.argsort(vectors.starts.values[panes], kind="stable")]

    def close(self, last_start_ms: int) -> None:
        """Drop the panes of windows that start up to a time."""
        vectors = self._vectors
        self.drop_panes(np.flatnonzero(~vectors.over.values & (vectors.starts.values <= last_start_ms)))
        self.first_open = _smallest(vectors.starts.values[~vectors.over.values])
        self.tidy()

    def drop_panes(self, panes: Rows) -> None:
        """Drop some panes that are open. Their numbers stay until `tidy`."""
        vectors = self._vectors
        if self._tracked:
            saved = panes[vectors.saved.values[panes]]
            if len(saved):
                self._gone.append(_Addresses(self.key_columns(saved), self.starts(saved)))
        vectors.over.values[panes] = True
        self._over += len(panes)

    def tidy(self) -> None:
        """Give the panes that are open new numbers, if those that are over are many."""
        if self._over >= _FEW and 2 * self._over >= len(self._index):
            self._number_anew()

    def _number_anew(self) -> None:
        """Give numbers to the panes that are open, and to their keys."""
        vectors = self._vectors
        left = np.flatnonzero(~vectors.over.values)
        keys, key_of_pane = np.unique(vectors.keys.values[left], return_inverse=True)
        columns = self._keys.columns(keys)
        self._keys, self._index, self._over = KeyIndex(self._keys.types), KeyIndex(_NUMBERS), 0
        if len(left):
            numbers = self._keys.rows(columns)[key_of_pane]
            panes = self._index.rows([pa.array(numbers), pa.array(vectors.starts.values[left])])
            vectors.keys.values[left] = numbers
            left = left[np.argsort(panes)]
        self._vectors = _PaneVectors()
        self._vectors.append(**vectors.chosen(left))
        for kernel in self.kernels:
            kernel.keep(left)

    @property
    def size_bytes(self) -> int:
        """The memory of keys, windows and accumulators."""
        indexes = self._keys.size_bytes + self._index.size_bytes
        return indexes + self._vectors.size_bytes + sum(kernel.size_bytes for kernel in self.kernels)

    # ------------------------------------------------------------------------------------------- what backends call

    def codec(self) -> Codec:
        return self._codec

    def some_key(self) -> Any:
        left = self.open_panes()[:1]
        return self._key_values.keys(self.key_columns(left))[0] if len(left) else None

    def open_panes(self) -> Rows:
        """Return the panes that are open."""
        return np.flatnonzero(~self._vectors.over.values)

    def take_changed(self) -> Collection[Any]:
        vectors = self._vectors
        changed = np.flatnonzero(vectors.changed.values & ~vectors.over.values)
        taken = TableChanges(vectors.ids.values[changed], self._gone, sum(len(part.starts) for part in self._gone))
        vectors.changed.values[:] = False
        vectors.saved.values[:] = True
        self._gone = []
        return taken

    def whole(self) -> TableEntries:
        return self._entries(self.open_panes(), [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        return self._entries(self.changed_panes(keys), joined_changes(keys).gone, full=False)

    def changed_panes(self, keys: Collection[Any]) -> Rows:
        """Return the panes among some changes that are open."""
        vectors = self._vectors
        return np.flatnonzero(np.isin(vectors.ids.values, joined_changes(keys).ids) & ~vectors.over.values)

    def _entries(self, panes: Rows, gone: list[_Addresses], *, full: bool) -> TableEntries:
        there = _Addresses(self.key_columns(panes), self.starts(panes))
        left = self._left_out(gone)
        removed = self._objects(left) if left is not None else []
        return TableEntries(self.info, self._objects(there), self._values(panes), removed, full=full)  # type: ignore[arg-type]  # sliced

    def _values(self, panes: Rows) -> LazyObjects:
        """Return the values of entries as snapshots have them: (contents, has fired)."""
        kernels, fired = [kernel.frozen() for kernel in self.kernels], self._vectors.fired.values[panes]
        stored = self._codec.stored

        def values(part: Rows) -> list[tuple[Any, bool]]:
            contents = map(stored, values_of(kernels, panes[part]))
            return list(zip(contents, fired[part].tolist(), strict=True))

        return LazyObjects(np.arange(len(panes)), values)

    def _objects(self, addresses: _Addresses) -> LazyObjects:
        """Return addresses as snapshots have them."""

        def objects(rows: Rows) -> list[Any]:
            part = addresses.taken(rows)
            return list(zip(self._key_values.keys(part.keys), self._windows(part.starts), strict=True))

        return LazyObjects(np.arange(len(addresses.starts)), objects)

    def _windows(self, starts: Starts) -> list[Any]:
        """Return windows as addresses have them."""
        size = self.size_ms
        return [(start, start + size) for start in starts.tolist()]

    def _left_out(self, gone: list[_Addresses]) -> _Addresses | None:
        """Return the addresses that are gone and have not been opened again since."""
        if not gone:
            return None
        one = _joined(gone)
        keys = self._keys.find(one.keys)
        panes = self._index.find([pa.array(keys), pa.array(one.starts)])
        known = panes != ABSENT
        known[known] = ~self._vectors.over.values[panes[known]]
        return one.taken(np.flatnonzero(~known))

    def load(self, entries: Mapping[Any, Any]) -> None:
        self.drop()
        if not entries:
            return
        for _, (start, end) in entries:
            if end - start != self.size_ms:
                raise other_size(end - start, self.size_ms)
        starts = np.fromiter((start for _, (start, _) in entries), np.int64, len(entries))
        panes = self._load([key for key, _ in entries], starts, [saved for saved, _ in entries.values()])
        self._vectors.fired.values[panes] = fired = [fired for _, fired in entries.values()]
        self.has_restored_fired = any(fired)

    def _load(self, keys: list[Any], starts: Starts, saved: list[Any]) -> Rows:
        """Open panes with the contents of a snapshot, and return their numbers."""
        contents = loaded_contents(self._codec, self.kernels, saved)
        panes = self.panes(self.key_numbers(self._key_values.columns(keys)), starts)
        load_values(self.kernels, panes, contents)
        self._vectors.changed.values[:] = False
        self._vectors.saved.values[:] = True
        return panes

    def drop(self) -> None:
        self._clear()
        for kernel in self.kernels:
            kernel.keep(np.zeros(0, np.int64))


def loaded_contents(codec: Codec, kernels: Sequence[Kernel], saved: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the contents of windows of a snapshot.

    Raises:
        StateMigrationError: They are those of other aggregates.
    """
    contents = [codec.loaded(each) for each in saved]
    width = sum(kernel.aggregate.width for kernel in kernels)
    if any(not isinstance(each, tuple) or len(each) != width for each in contents):
        raise StateMigrationError(
            "the restored windows have the accumulators of other aggregates; restore with the aggregates that the "
            "job had, or give the operator another uid to start it empty"
        )
    return contents


def _smallest(starts: Starts) -> int | None:
    return int(starts.min()) if len(starts) else None


@dataclass
class _Undo:
    """What the table was before some rows."""

    keys: int
    first_to_fire: int | None
    first_open: int | None
    panes: _KeptPanes | None = None


@dataclass(frozen=True)
class _KeptPanes:
    """What the panes of some rows were: those whose numbers are below `count`."""

    panes: Rows
    count: int
    over: int
    flags: list[NDArray[np.bool_]]
    accumulators: list[list[NDArray[Any]]]


class _PaneVectors(Vectors):
    """What is known of each pane, by its number."""

    __slots__ = ("changed", "fired", "ids", "keys", "over", "saved", "starts")

    def __init__(self) -> None:
        self.keys = Grown(np.int64)  # the number of the key
        self.starts = Grown(np.int64)  # the start of the window
        self.ids = Grown(np.int64)  # stays the same when panes are numbered anew
        self.fired = Grown(np.bool_)  # the window has fired, with all rows of the pane
        self.over = Grown(np.bool_)  # the window takes no more rows
        self.changed = Grown(np.bool_)  # since the last snapshot
        self.saved = Grown(np.bool_)  # a snapshot has the pane


class _Addresses:
    """Keys with the starts of windows, as columns."""

    __slots__ = ("keys", "starts")

    def __init__(self, keys: list[pa.Array], starts: Starts) -> None:
        self.keys = keys
        self.starts = starts

    def taken(self, rows: Rows) -> _Addresses:
        return _Addresses([column.take(pa.array(rows)) for column in self.keys], self.starts[rows])


def _joined(parts: list[_Addresses]) -> _Addresses:
    keys = [pa.concat_arrays(columns) for columns in zip(*(part.keys for part in parts), strict=True)]
    return _Addresses(keys, np.concatenate([part.starts for part in parts]))


class PaneEntries(Mapping[Any, Any]):
    """The entries of the table as a dictionary would hold them."""

    def __init__(self, table: Any) -> None:
        self._table = table  # which has a length

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table.whole().keys[:])

    def __getitem__(self, address: Any) -> Any:
        entries = self._table.whole()
        return dict(zip(entries.keys[:], entries.values[:], strict=True))[address]
