"""The table of sessions of columns: vectors with an element for each open session.

The number of a session is its element in the accumulators of all aggregates. The sessions of a key are a chain: a
vector has the last session of each key, and another one the session before each session. Sessions that are over keep
their numbers until they are half of all. Then those left are numbered anew.

A snapshot has what sessions of rows have (`operators/windows/session_table.py`): the address of an entry is the key,
and its value a list of (start, end, contents, has fired).
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
from ekorn.columns.session_plan import Merge, OpenSessions, SessionPlan
from ekorn.columns.vectors import Vectors
from ekorn.operators.columns.column_panes import loaded_contents
from ekorn.operators.columns.table_changes import TableChanges, joined_changes
from ekorn.operators.windows.saved_windows import SESSIONS
from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec, PickledCodec
from ekorn.state.column_table import KeyValues, LazyObjects, load_values, values_of
from ekorn.state.snapshots import StateInfo
from ekorn.state.table import Table

__all__ = ["ColumnSessions", "merge_sessions"]

_NONE = -1
_FEW = 1024  # sessions that are over and not worth numbering the others anew


class _SessionVectors(Vectors):
    """What is known of each session, by its number."""

    __slots__ = ("before", "ends", "fired", "keys", "over", "starts")

    def __init__(self) -> None:
        self.keys = Grown(np.int64)  # the number of the key
        self.starts = Grown(np.int64)
        self.ends = Grown(np.int64)
        self.before = Grown(np.int64)  # another open session of the key, or none
        self.fired = Grown(np.bool_)
        self.over = Grown(np.bool_)


class _KeyVectors(Vectors):
    """What is known of each key, by its number."""

    __slots__ = ("changed", "ids", "last", "saved")

    def __init__(self) -> None:
        self.ids = Grown(np.int64)  # stays the same when keys are numbered anew
        self.last = Grown(np.int64)  # the last of its open sessions, or none
        self.changed = Grown(np.bool_)  # since the last snapshot
        self.saved = Grown(np.bool_)  # a snapshot has the key


class ColumnSessions(Table):
    """The open sessions of all keys."""

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
        "first_to_end",
        "first_to_fire",
        "kernels",
    )

    def __init__(self, index: KeyIndex, kernels: Sequence[Kernel], key_values: KeyValues, *, tracked: bool) -> None:
        super().__init__(StateInfo(SESSIONS, "sessions"), tracked=False)
        self.kernels = list(kernels)
        self.data = _SessionEntries(self)  # type: ignore[assignment]  # the part of a dictionary that backends read
        self._codec = PickledCodec("contents")
        self._index = index
        self._key_values = key_values
        self._tracked = tracked
        self._undo: _Undo | None = None
        self._next_id = 0
        self._clear()

    def _clear(self) -> None:
        self._index = KeyIndex(self._index.types)
        self._keys, self._vectors = _KeyVectors(), _SessionVectors()
        self._over = 0  # sessions that are over and still have numbers
        self._gone: list[list[pa.Array]] = []  # keys that a snapshot has, and whose sessions went since the last one
        self.first_to_fire: int | None = None  # no session that has yet to fire ends earlier
        self.first_to_end: int | None = None  # no open session ends earlier

    def __len__(self) -> int:
        return self._vectors.length - self._over

    # ------------------------------------------------------------------------------------------------ rows

    def key_numbers(self, columns: Sequence[pa.Array]) -> Rows:
        """Return the number of each row's key."""
        numbers = self._index.rows(columns)
        more = len(self._index) - self._keys.length
        if more:
            none = np.zeros(more, dtype=np.bool_)
            ids = np.arange(self._next_id, self._next_id + more)
            self._next_id += more
            self._keys.append(ids=ids, last=np.full(more, _NONE), changed=none, saved=none)
        return numbers

    def of_keys(self, distinct: Rows) -> OpenSessions:
        """Return the open sessions of some keys."""
        numbers = self._chained(distinct)
        vectors = self._vectors
        keys, starts, ends = (each.values[numbers] for each in (vectors.keys, vectors.starts, vectors.ends))
        return OpenSessions(numbers, keys, starts, ends)

    def _chained(self, distinct: Rows) -> Rows:
        found = []
        left = self._keys.last.values[distinct]
        while len(left := left[left != _NONE]):
            found.append(left)
            left = self._vectors.before.values[left]
        return np.sort(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    @property
    def first_free(self) -> int:
        """The number of the next session."""
        return self._vectors.length

    def open(self, plan: SessionPlan, there: OpenSessions) -> None:
        """Open the new sessions of a plan, extend the others, and close those that merge into another one."""
        if self._undo is not None:
            self._undo.sessions = self._kept(there)
        vectors, keys, more = self._vectors, self._keys, len(plan.new_keys)
        none = np.zeros(more, dtype=np.bool_)
        blank = np.zeros(more, dtype=np.int64)
        vectors.append(keys=plan.new_keys, starts=blank, ends=blank, before=blank, fired=none, over=none)
        for kernel in self.kernels:
            kernel.make_room(vectors.length)
        taken = np.flatnonzero(plan.sessions != _NONE)
        sessions = plan.sessions[taken]  # of several rows of a session the last one stays: the widest span
        vectors.starts.values[sessions], vectors.ends.values[sessions] = plan.starts[taken], plan.ends[taken]
        if more or plan.merges:
            merged = np.array([other for merge in plan.merges for other in merge.others], dtype=np.int64)
            vectors.over.values[merged] = True
            self._over += len(merged)
            self._link(np.unique(np.concatenate([plan.new_keys, there.keys])), there.numbers, more)
        touched = np.unique(sessions)
        if self._tracked:
            keys.changed.values[vectors.keys.values[touched]] = True
        ends = vectors.ends.values[touched]
        if len(ends):
            first = int(ends.min())
            self.first_to_fire = first if self.first_to_fire is None else min(first, self.first_to_fire)
            self.first_to_end = first if self.first_to_end is None else min(first, self.first_to_end)

    def _link(self, keys: Rows, old: Rows, more: int) -> None:
        """Chain the open sessions of some keys: some old ones, and those that came last."""
        vectors = self._vectors
        numbers = np.concatenate([old, np.arange(vectors.length - more, vectors.length)])
        numbers = numbers[~vectors.over.values[numbers]]
        numbers = numbers[np.argsort(vectors.keys.values[numbers], kind="stable")]
        of = vectors.keys.values[numbers]
        same = of[1:] == of[:-1]
        vectors.before.values[numbers] = _NONE
        vectors.before.values[numbers[1:][same]] = numbers[:-1][same]
        self._keys.last.values[keys] = _NONE
        self._keys.last.values[of] = numbers  # of several sessions the last one stays

    def mark_fired(self, sessions: Rows, *, fired: NDArray[np.bool_]) -> None:
        """Note whether some sessions have fired with all of their rows."""
        self._vectors.fired.values[sessions] = fired

    # ------------------------------------------------------------------------------------------------ take back

    def attempt(self) -> Callable[[], None]:
        """Return a function that takes back what happens from now on, up to one call of `open` and what follows it."""
        self._undo = undo = _Undo(len(self._index), self.first_to_fire, self.first_to_end)

        def take_back() -> None:
            if undo.sessions is not None:
                self._put_back(undo.sessions)
            self._index.truncate(undo.keys)
            self._keys.truncate(undo.keys)
            self.first_to_fire, self.first_to_end = undo.first_to_fire, undo.first_to_end

        return take_back

    def _kept(self, there: OpenSessions) -> _KeptSessions:
        keys = np.unique(there.keys)
        sessions = self._vectors.kept(there.numbers)
        accumulators = [kernel.kept(there.numbers) for kernel in self.kernels]
        return _KeptSessions(
            there.numbers, self._vectors.length, self._over, sessions, keys, self._keys.kept(keys), accumulators
        )

    def _put_back(self, kept: _KeptSessions) -> None:
        self._vectors.truncate(kept.count)
        self._vectors.put_back(kept.numbers, kept.vectors)
        self._over = kept.over
        self._keys.last.values[:] = np.where(self._keys.last.values >= kept.count, _NONE, self._keys.last.values)
        self._keys.put_back(kept.keys, kept.key_vectors)
        for kernel, accumulators in zip(self.kernels, kept.accumulators, strict=True):
            kernel.put_back(kept.numbers, accumulators, count=kept.count)

    # ------------------------------------------------------------------------------------------------ time

    def spans(self, sessions: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the starts and ends of some sessions."""
        return self._vectors.starts.values[sessions], self._vectors.ends.values[sessions]

    def key_columns(self, sessions: Rows) -> list[pa.Array]:
        """Return the keys of some sessions."""
        return self._index.columns(self._vectors.keys.values[sessions])

    def fire(self, last_end_ms: int) -> Rows:
        """Return the sessions that have yet to fire and end up to a time, in order of time; note that they fire."""
        vectors = self._vectors
        waiting = ~vectors.over.values & ~vectors.fired.values
        sessions = np.flatnonzero(waiting & (vectors.ends.values <= last_end_ms))
        vectors.fired.values[sessions] = True
        if self._tracked:
            self._keys.changed.values[vectors.keys.values[sessions]] = True
        self.first_to_fire = _smallest(vectors.ends.values[waiting & ~vectors.fired.values])
        return sessions[np.argsort(vectors.ends.values[sessions], kind="stable")]

    def close(self, last_end_ms: int) -> None:
        """Drop the sessions that end up to a time."""
        vectors, keys = self._vectors, self._keys
        sessions = np.flatnonzero(~vectors.over.values & (vectors.ends.values <= last_end_ms))
        of = np.unique(vectors.keys.values[sessions])
        there = self._chained(of)
        vectors.over.values[sessions] = True
        self._over += len(sessions)
        self._link(of, there, 0)
        if self._tracked:
            keys.changed.values[of] = True
            gone = of[(keys.last.values[of] == _NONE) & keys.saved.values[of]]
            if len(gone):
                self._gone.append(self._index.columns(gone))
                keys.saved.values[gone] = False
        self.first_to_end = _smallest(vectors.ends.values[~vectors.over.values])
        self.tidy()

    def tidy(self) -> None:
        """Give sessions and keys new numbers, if those that are over or without a session are many."""
        idle = len(self._index) - len(self)
        if max(self._over, idle) >= _FEW and 2 * max(self._over, idle) >= max(self._vectors.length, len(self._index)):
            self._number_anew()

    def _number_anew(self) -> None:
        vectors = self._vectors
        left = np.flatnonzero(~vectors.over.values)
        used, key_of_session = np.unique(vectors.keys.values[left], return_inverse=True)
        columns = self._index.columns(used)
        self._index, keys = KeyIndex(self._index.types), self._keys
        numbers = self._index.rows(columns) if len(used) else np.zeros(0, np.int64)
        order = np.argsort(numbers)
        self._keys = _KeyVectors()
        self._keys.append(**keys.chosen(used[order]))
        self._vectors = _SessionVectors()
        self._vectors.append(**vectors.chosen(left))
        self._vectors.keys.values[:] = numbers[key_of_session]
        self._over = 0
        for kernel in self.kernels:
            kernel.keep(left)
        self._link(np.arange(len(self._index)), np.arange(len(left)), 0)

    @property
    def size_bytes(self) -> int:
        """The memory of keys, sessions and accumulators."""
        vectors = self._keys.size_bytes + self._vectors.size_bytes
        return self._index.size_bytes + vectors + sum(kernel.size_bytes for kernel in self.kernels)

    # ------------------------------------------------------------------------------------------- what backends call

    def codec(self) -> Codec:
        return self._codec

    def some_key(self) -> Any:
        keys = np.flatnonzero(self._keys.last.values != _NONE)[:1]
        return self._key_values.keys(self._index.columns(keys))[0] if len(keys) else None

    def take_changed(self) -> Collection[Any]:
        keys = self._keys
        there = keys.last.values != _NONE
        gone_count = sum(len(columns[0]) for columns in self._gone)
        taken = TableChanges(keys.ids.values[np.flatnonzero(keys.changed.values & there)], self._gone, gone_count)
        keys.changed.values[:] = False
        keys.saved.values[:] = there
        self._gone = []
        return taken

    def whole(self) -> TableEntries:
        return self._entries(np.flatnonzero(self._keys.last.values != _NONE), [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        changes = joined_changes(keys)
        there = np.isin(self._keys.ids.values, changes.ids) & (self._keys.last.values != _NONE)
        return self._entries(np.flatnonzero(there), changes.gone, full=False)

    def _entries(self, keys: Rows, gone: list[list[pa.Array]], *, full: bool) -> TableEntries:
        columns = self._index.columns(keys)
        return TableEntries(self.info, self._addresses(columns), self._values(keys), self._left_out(gone), full=full)  # type: ignore[arg-type]  # sliced

    def _addresses(self, columns: list[pa.Array]) -> LazyObjects:
        key_values = self._key_values
        return LazyObjects(
            np.arange(len(columns[0])),
            lambda part: key_values.keys([column.take(pa.array(part)) for column in columns]),
        )

    def _values(self, keys: Rows) -> LazyObjects:
        numbers = self._chained(keys)
        numbers = numbers[np.argsort(self._vectors.keys.values[numbers], kind="stable")]
        counts = np.bincount(self._vectors.keys.values[numbers], minlength=len(self._index))[keys]
        firsts = np.cumsum(counts) - counts
        starts, ends = self.spans(numbers)
        fired, kernels = self._vectors.fired.values[numbers], [kernel.frozen() for kernel in self.kernels]
        stored = self._codec.stored

        def values(part: Rows) -> list[list[Any]]:
            lengths = counts[part]
            at = np.repeat(firsts[part] - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
            contents = map(stored, values_of(kernels, numbers[at]))
            sessions = list(zip(starts[at].tolist(), ends[at].tolist(), contents, fired[at].tolist(), strict=True))
            limits = np.cumsum(lengths).tolist()
            return [sessions[end - length : end] for end, length in zip(limits, lengths.tolist(), strict=True)]

        return LazyObjects(np.arange(len(keys)), values)

    def _left_out(self, gone: list[list[pa.Array]]) -> Any:
        """Return the keys that are gone and have no open session."""
        if not gone:
            return []
        columns = [pa.concat_arrays(parts) for parts in zip(*gone, strict=True)]
        numbers = self._index.find(columns)
        known = numbers != ABSENT
        known[known] = self._keys.last.values[numbers[known]] != _NONE
        left = pa.array(np.flatnonzero(~known))
        return self._addresses([column.take(left) for column in columns])

    def load(self, entries: Mapping[Any, Any]) -> None:
        self.drop()
        if not entries:
            return
        sessions = [(key, *session) for key, of_key in entries.items() for session in of_key]
        contents = loaded_contents(self._codec, self.kernels, [saved for _, _, _, saved, _ in sessions])
        count = len(sessions)
        keys = self.key_numbers(self._key_values.columns([key for key, *_ in sessions]))
        self._vectors.append(
            keys=keys,
            starts=np.fromiter((start for _, start, *_ in sessions), np.int64, count),
            ends=np.fromiter((end for _, _, end, *_ in sessions), np.int64, count),
            before=np.full(count, _NONE),
            fired=np.fromiter((fired for *_, fired in sessions), np.bool_, count),
            over=np.zeros(count, dtype=np.bool_),
        )
        for kernel in self.kernels:
            kernel.make_room(count)
        load_values(self.kernels, np.arange(count), contents)
        self._link(np.unique(keys), np.arange(count), 0)
        self._keys.saved.values[:] = True
        self.first_to_fire = _smallest(self._vectors.ends.values[~self._vectors.fired.values])
        self.first_to_end = _smallest(self._vectors.ends.values)

    def drop(self) -> None:
        self._clear()
        for kernel in self.kernels:
            kernel.keep(np.zeros(0, np.int64))


def merge_sessions(kernels: Sequence[Kernel], merges: Sequence[Merge]) -> None:
    """Let sessions take the accumulators of others."""
    if not merges:
        return
    targets = np.array([merge.target for merge in merges])
    entries = values_of(kernels, targets)
    taken = iter(values_of(kernels, np.array([other for merge in merges for other in merge.others])))
    for number, merge in enumerate(merges):
        for _ in merge.others:
            entries[number] = _together(kernels, entries[number], next(taken))
    load_values(kernels, targets, entries)


def _together(kernels: Sequence[Kernel], one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    merged: tuple[Any, ...] = ()
    first = 0
    for kernel in kernels:
        end = first + kernel.aggregate.width
        merged += kernel.aggregate.merge(one[first:end], other[first:end])
        first = end
    return merged


def _smallest(times: NDArray[np.int64]) -> int | None:
    return int(times.min()) if len(times) else None


@dataclass
class _Undo:
    """What the table was before some rows."""

    keys: int
    first_to_fire: int | None
    first_to_end: int | None
    sessions: _KeptSessions | None = None


@dataclass(frozen=True)
class _KeptSessions:
    """What the open sessions of some keys were: those whose numbers are below `count`."""

    numbers: Rows
    count: int
    over: int
    vectors: list[NDArray[Any]]
    keys: Rows
    key_vectors: list[NDArray[Any]]
    accumulators: list[list[NDArray[Any]]]


class _SessionEntries(Mapping[Any, Any]):
    """The entries of the table as a dictionary would hold them."""

    def __init__(self, table: ColumnSessions) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._table.whole().keys[:])

    def __getitem__(self, key: Any) -> Any:
        entries = self._table.whole()
        return dict(zip(entries.keys[:], entries.values[:], strict=True))[key]
