"""Canonical savepoints of the RocksDB backend: every entry, in the format that all backends read."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ekorn.keygroups import KeyGroupRange
from ekorn.state.canonical_format import CHUNK_BYTES, TableEntries
from ekorn.state.keyed_backend import CapturedState, SnapshotTarget, write_tables
from ekorn.state.kinds import KINDS, bare_kind
from ekorn.state.rocksdb.instance import ExpiredAt, RocksTables
from ekorn.state.rocksdb.instance_reader import read_states
from ekorn.state.rocksdb.store import RocksStore
from ekorn.state.snapshots import KeyedFiles, StateInfo

_RUN_ENTRIES = 20_000


class CapturedEntries:
    """A RocksDB checkpoint whose entries are read one by one. `write` may run on another thread."""

    def __init__(self, folder: str, beside: CapturedState, rocks: RocksTables, expired: dict[str, ExpiredAt]) -> None:
        self.key_groups = KeyGroupRange(0, 0)  # until the subtask sets its own
        self._folder = folder
        self._beside = beside
        self._rocks = rocks
        self._expired = expired
        self._remove = weakref.finalize(self, shutil.rmtree, os.path.dirname(folder), ignore_errors=True)

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write files of bounded size, one after another."""
        try:
            files = write_tables(self._runs(), target, target.exclusive)
        finally:
            self._remove()
        self._beside.key_groups = self.key_groups
        return KeyedFiles(*self.key_groups, (*files, *self._beside.write(target).files))

    def _runs(self) -> Iterator[TableEntries]:
        """Yield the entries in runs: at most as many as are held in memory at once."""
        store = _CountingStore(self._folder, self._rocks.settings, create=False, read_only=True)
        try:
            for info, entries in read_states(store, self._rocks.max_parallelism, self.key_groups):
                alive = self._unexpired(info, entries)
                while some := list(_run_of(alive, store)):
                    yield TableEntries(info, [key for key, _ in some], [value for _, value in some], [], full=False)
        finally:
            store.close()

    def _unexpired(self, info: StateInfo, entries: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Leave out what had expired at the barrier, if the state's configuration asks for that."""
        expired = self._expired.get(info.name)
        if expired is None:
            return entries
        left, dead_ms = KINDS[bare_kind(info.kind)].shape.left, expired.dead_ms
        rests = ((key, left(value, dead_ms)) for key, value in entries)
        return ((key, rest) for key, rest in rests if rest is not None)


class _CountingStore(RocksStore):
    """An instance that counts the bytes that are read from it."""

    scanned_bytes = 0

    def scan(self, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        for address, value in super().scan(first, end):
            self.scanned_bytes += len(address) + len(value)
            yield address, value


def _run_of(entries: Iterator[tuple[Any, Any]], store: _CountingStore) -> Iterator[tuple[Any, Any]]:
    """Yield the next entries until they fill a chunk."""
    most_bytes = store.scanned_bytes + CHUNK_BYTES
    for entry in islice(entries, _RUN_ENTRIES):
        yield entry
        if store.scanned_bytes >= most_bytes:
            return
