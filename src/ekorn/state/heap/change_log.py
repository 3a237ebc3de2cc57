"""Snapshots of heap tables: the changes since the last completed checkpoint, on top of earlier files.

A snapshot is a chain of files: the first files hold every entry, later files only the changed entries. An entry in a
later file wins, and a key listed as gone is removed. When the changes have grown as large as the whole, or nearly
everything changes each time, the next snapshot writes every entry again and starts a new chain. So reading a chain
costs at most twice the state.

Changes are counted from the last *completed* checkpoint, because an aborted checkpoint may lose its files at any time.
A capture copies references to keys and values, not the values themselves: a table replaces a kept value and never
changes it in place. `state/canonical_format.py` encodes files of bounded size, one after another.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from itertools import chain as chained
from typing import Any, NamedTuple

from ekorn.keygroups import KeyGroupRange
from ekorn.state.canonical_format import TableEntries
from ekorn.state.keyed_backend import SnapshotTarget, write_tables
from ekorn.state.snapshots import KeyedFiles, StateFile
from ekorn.state.table import Table

_LONGEST_CHAIN = 100  # the most snapshots with changes in a chain; a restore opens the files of each of them
# The most bytes of a chain that are kept inline, and are therefore written again with every checkpoint.
_MOST_INLINE_BYTES = 256 << 10

_NO_KEY_GROUPS = KeyGroupRange(0, 0)  # until the subtask sets its own


class Chain(NamedTuple):
    """The files of a snapshot."""

    whole: tuple[StateFile, ...] = ()  # files that hold every entry
    changes: tuple[tuple[StateFile, ...], ...] = ()  # the files of each snapshot with changes since then

    @property
    def files(self) -> tuple[StateFile, ...]:
        """All files, oldest first."""
        return (*self.whole, *chained.from_iterable(self.changes))


class ChangeLog:
    """The keys that changed since each snapshot, and the files of the last completed one."""

    def __init__(self, *, incremental: bool) -> None:
        self._incremental = incremental
        self._pending: dict[int, dict[str, Collection[Any]]] = {}  # keys changed before each pending snapshot
        self._chains: dict[int, Chain] = {}  # the chains of pending snapshots that have been written
        self._base: Chain | None = None  # the chain of the last completed checkpoint
        self._bytes_per_change: float | None = None  # measured in the last snapshot with changes
        self._lock = threading.Lock()  # `written` is called on the writing thread

    def capture(self, checkpoint_id: int, tables: dict[str, Table]) -> CapturedTables:
        """Capture what changed since the last completed checkpoint, or everything to start a new chain."""
        self._pending[checkpoint_id] = {name: t.take_changed() for name, t in tables.items()}
        changed = {name: keys for name in tables if (keys := self._changed(name))}
        if self._base is None or not self._incremental or self._begins_anew(self._base, changed):
            return CapturedTables(self, checkpoint_id, Chain(), [table.whole() for table in tables.values()])
        return CapturedTables(self, checkpoint_id, self._base, [tables[n].some(k) for n, k in changed.items()])

    def _changed(self, name: str) -> Collection[Any]:
        """Return the keys of a table that changed since the last completed checkpoint."""
        pending = [keys for changed in self._pending.values() if (keys := changed.get(name))]
        return pending[0] if len(pending) == 1 else dict.fromkeys(chained.from_iterable(pending))

    def written(self, checkpoint_id: int, chain: Chain, changes: int) -> None:
        """Note that all files of a snapshot are written. Called on the writing thread.

        `changes` counts the changes in the last files of the chain; it is 0 if the snapshot holds every entry.
        """
        with self._lock:
            self._chains[checkpoint_id] = chain
            if changes:
                self._bytes_per_change = _size(chain.changes[-1]) / changes

    def completed(self, checkpoint_id: int) -> None:
        """Build later snapshots on this checkpoint."""
        with self._lock:
            self._base = self._chains.get(checkpoint_id, self._base)
            self._chains = {i: c for i, c in self._chains.items() if i > checkpoint_id}
        self._pending = {i: p for i, p in self._pending.items() if i > checkpoint_id}

    def _begins_anew(self, base: Chain, changed: dict[str, Collection[Any]]) -> bool:
        """Return whether to write everything: the chain is long, or these changes are half of it anyway."""
        if not base.files:
            return False
        whole_bytes, changes = _size(base.whole), base.files[len(base.whole) :]
        if len(base.changes) >= _LONGEST_CHAIN or _size(changes) > whole_bytes:
            return True
        if sum(f.size for f in changes if f.path is None) > _MOST_INLINE_BYTES:
            return True
        per_change = self._bytes_per_change
        return per_change is not None and 2 * per_change * sum(map(len, changed.values())) > whole_bytes


def _size(files: Iterable[StateFile]) -> int:
    return sum(file.size for file in files)


class CapturedTables:
    """The captured entries of one checkpoint. `write` may run on another thread."""

    def __init__(self, log: ChangeLog, checkpoint_id: int, base: Chain, tables: list[TableEntries]) -> None:
        self._log = log
        self._checkpoint_id = checkpoint_id
        self._base = base
        self._tables = tables
        self.key_groups = _NO_KEY_GROUPS

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write the captured entries and return the whole chain."""
        files = write_tables(self._tables, target, target.shared)
        chain, changes = self._base, 0
        if files and not chain.files:
            chain = Chain(files)
        elif files:
            chain = Chain(chain.whole, (*chain.changes, files))
            changes = sum(len(table.keys) + len(table.gone) for table in self._tables)
        self._log.written(self._checkpoint_id, chain, changes)
        return KeyedFiles(*self.key_groups, chain.files)


class FullTables:
    """Every entry, captured for a savepoint, in files that refer to no other. `write` may run on another thread."""

    def __init__(self, tables: list[TableEntries]) -> None:
        self._tables = tables
        self.key_groups = _NO_KEY_GROUPS

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        return KeyedFiles(*self.key_groups, write_tables(self._tables, target, target.exclusive))
