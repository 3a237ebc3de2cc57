"""Snapshots of heap tables: the changes since the last completed checkpoint, on top of earlier files.

A snapshot is a chain of files: the first file holds every entry, each later file only the changed entries. An entry
in a later file wins, and a key listed as gone is removed. When the changes have grown as large as the whole, or nearly
everything changes each time, the next snapshot writes every entry again and starts a new chain. So reading a chain
costs at most twice the state.

Changes are counted from the last *completed* checkpoint, because an aborted checkpoint may lose its files at any time.
`state/canonical_format.py` encodes a file.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from itertools import chain
from typing import Any

from tamias.keygroups import KeyGroupRange
from tamias.state.canonical_format import TableEntries, encode_entries
from tamias.state.keyed_backend import SnapshotTarget
from tamias.state.snapshots import KeyedFiles, StateFile
from tamias.state.table import Table

_LONGEST_CHAIN = 100  # files; a restore opens each of them
_MOST_INLINE = 256 << 10  # bytes of a chain that are not in files and so are written again with every checkpoint

_NO_KEY_GROUPS = KeyGroupRange(0, 0)  # until the subtask sets its own


class ChangeLog:
    """The keys that changed since each snapshot, and the files of the last completed one."""

    def __init__(self, *, incremental: bool) -> None:
        self._incremental = incremental
        self._pending: dict[int, dict[str, Collection[Any]]] = {}  # keys changed before each pending snapshot
        self._chains: dict[int, tuple[StateFile, ...]] = {}  # files of written, pending snapshots
        self._base: tuple[StateFile, ...] | None = None  # files of the last completed checkpoint
        self._bytes_per_change: float | None = None  # measured in the last file of changes
        self._lock = threading.Lock()  # `written` is called on the writing thread

    def capture(self, checkpoint_id: int, tables: dict[str, Table]) -> CapturedTables:
        """Capture what changed since the last completed checkpoint, or everything to start a new chain."""
        self._pending[checkpoint_id] = {name: t.take_changed() for name, t in tables.items()}
        changed = {name: keys for name in tables if (keys := self._changed(name))}
        if self._base is None or not self._incremental or self._begins_anew(self._base, changed):
            return CapturedTables(self, checkpoint_id, (), {n: t.whole() for n, t in tables.items()})
        return CapturedTables(self, checkpoint_id, self._base, {n: tables[n].some(k) for n, k in changed.items()})

    def _changed(self, name: str) -> Collection[Any]:
        """Return the keys of a table that changed since the last completed checkpoint."""
        pending = [keys for changed in self._pending.values() if (keys := changed.get(name))]
        return pending[0] if len(pending) == 1 else dict.fromkeys(chain.from_iterable(pending))

    def written(self, checkpoint_id: int, files: tuple[StateFile, ...], changes: int) -> None:
        """Note that all files of a snapshot are written. Called on the writing thread.

        `changes` counts the changes in the last file; it is 0 if that file holds every entry.
        """
        with self._lock:
            self._chains[checkpoint_id] = files
            if changes:
                self._bytes_per_change = files[-1].size / changes

    def completed(self, checkpoint_id: int) -> None:
        """Build later snapshots on this checkpoint."""
        with self._lock:
            self._base = self._chains.get(checkpoint_id, self._base)
            self._chains = {i: c for i, c in self._chains.items() if i > checkpoint_id}
        self._pending = {i: p for i, p in self._pending.items() if i > checkpoint_id}

    def _begins_anew(self, base: tuple[StateFile, ...], changed: dict[str, Collection[Any]]) -> bool:
        """Return whether to write everything: the chain is long, or these changes come to half of it anyway."""
        if not base:
            return False
        whole, changes = base[0].size, base[1:]
        if len(base) > _LONGEST_CHAIN or sum(f.size for f in changes) > whole:
            return True
        if sum(f.size for f in changes if f.path is None) > _MOST_INLINE:
            return True
        per_change = self._bytes_per_change
        return per_change is not None and 2 * per_change * sum(map(len, changed.values())) > whole


class CapturedTables:
    """The captured entries of one checkpoint. `write` may run on another thread."""

    def __init__(
        self, log: ChangeLog, checkpoint_id: int, base: tuple[StateFile, ...], tables: dict[str, TableEntries]
    ) -> None:
        self._log = log
        self._checkpoint_id = checkpoint_id
        self._base = base
        self._tables = tables
        self.key_groups = _NO_KEY_GROUPS

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write one file with the captured entries and return the whole chain."""
        files = self._base
        entries = sum(len(t.keys) + len(t.gone) for t in self._tables.values())
        if entries or not files:
            payload = b"".join(encode_entries(self._tables))
            if payload:
                files = (*files, target.write(target.shared("keyed"), payload))
        self._log.written(self._checkpoint_id, files, changes=entries if self._base else 0)
        return KeyedFiles(*self.key_groups, files)


class FullTables:
    """Every entry, captured for a savepoint: one file that refers to no other. `write` may run on another thread."""

    def __init__(self, tables: dict[str, TableEntries]) -> None:
        self._tables = tables
        self.key_groups = _NO_KEY_GROUPS

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        payload = b"".join(encode_entries(self._tables))
        files = (target.write(target.exclusive("keyed"), payload),) if payload else ()
        return KeyedFiles(*self.key_groups, files)
