"""`Table`: the entries of one named state in a dictionary, and the keys that changed since the last snapshot.

A table holds the entries of all key groups of the subtask together. The key group of a key is computed only when state
is restored into another range. An entry costs one dictionary slot, the key and the value.

The heap backend keeps every state in such a table. Operators subclass it for tables of their own (timers, panes,
sessions), which every backend adopts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol

from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec, PickledCodec
from ekorn.state.declared import Declaration
from ekorn.state.kinds import shape_of
from ekorn.state.snapshots import StateInfo


class Table:
    """The entries of one named state."""

    __slots__ = ("changed", "data", "declared", "info", "leave_out", "mark")

    def __init__(self, info: StateInfo, *, tracked: bool) -> None:
        self.info = info
        self.declared: Declaration | None = None  # None for a restored state that the job has not asked for yet
        self.data: dict[Any, Any] = {}
        self.changed: set[Any] = set()  # keys written since the last snapshot; their entries may be gone
        self.mark: Callable[[Any], None] = self.changed.add if tracked else ignore_change
        self.leave_out: Callable[[dict[Any, Any]], dict[Any, Any]] | None = None  # filters what a snapshot writes

    def in_memory(self) -> Collection[Any]:
        """Return what the table has on the heap, for those who ask for its size."""
        return self.data

    def take_changed(self) -> Collection[Any]:
        """Return the keys that changed since the last call."""
        changed = self.changed.copy()
        self.changed.clear()
        return changed

    def saved_as(self) -> StateInfo:
        """Return the description of the state for a checkpoint taken now."""
        return self.info if self.declared is None else self.declared.saved_as(self.some_key())

    def some_key(self) -> Any:
        """Return any key that has an entry, or None if there is none."""
        address = next(iter(self.data), None)
        return address[0] if address is not None and self.info.namespaced else address

    def codec(self) -> Codec:
        """Return the codec of the values, for a table that an operator brings along."""
        return PickledCodec(self.info.name)

    def whole(self) -> TableEntries:
        """Return every entry for a snapshot; later changes do not reach the result."""
        data = self.data if self.leave_out is None else self.leave_out(self.data)
        values = list(data.values())
        copy = shape_of(self.info.kind).copy
        return TableEntries(self.info, list(data), [copy(v) for v in values] if copy else values, [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        """Return the entries of some keys, and those of the keys that have no entry."""
        data, copy = self.data, shape_of(self.info.kind).copy
        if self.leave_out is not None:
            data = self.leave_out({k: data[k] for k in keys if k in data})
        # Walking the dictionary is far faster when the keys are many: neighbours in memory are read together.
        in_order = 4 * len(keys) > len(data)
        there = [k for k in data if k in keys] if in_order else [k for k in keys if k in data]
        values = [copy(data[k]) for k in there] if copy else [data[k] for k in there]
        gone = [k for k in keys if k not in data] if len(there) < len(keys) else []
        return TableEntries(self.info, there, values, gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        """Replace the content with restored entries."""
        self.data.clear()
        self.data.update(entries)

    def drop(self) -> None:
        """Remove every entry."""
        self.data.clear()
        self.changed.clear()


class EntryStore(Protocol):
    """The store behind a `FrontTable`: it keeps the entries for which memory has no room."""

    def read(self, keys: list[Any]) -> list[Any]:
        """Return the values of keys, or None, both in the form of tables."""

    def scan(self) -> Iterator[tuple[Any, Any]]:
        """Write the changed entries, and yield the keys and values of all entries."""

    def spill(self) -> None:
        """Write the changed entries, and let the table in front forget all entries."""

    def room_bytes(self) -> int:
        """Return the memory that the table in front may take."""

    def value_bytes(self) -> int:
        """Return the mean size of the values that were written."""


class FrontTable(Table, ABC):
    """A table of an operator that can be in front of a store, and then has the entries in use alone.

    A backend without such a store uses it as any other table.
    """

    __slots__ = ()

    @abstractmethod
    def put_in_front(self, store: EntryStore) -> None:
        """Read entries from a store when they are asked for. The table is empty."""

    @abstractmethod
    def take_writes(self) -> Iterator[tuple[list[Any], list[Any]]]:
        """Yield the keys and values that changed since the last call, in runs, and note that they are written.

        The value None says that the key has no value any more.
        """

    @abstractmethod
    def forget(self) -> None:
        """Remove every entry. What has changed is written, or is to be lost."""

    @abstractmethod
    def known(self, key: Any) -> Any:
        """Return the value of a key, or None if the table does not have it."""


def ignore_change(key: Any) -> None:
    """Stand in for `changed.add` if there are no checkpoints. Only checkpoints need the changes."""
