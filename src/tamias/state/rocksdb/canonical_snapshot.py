"""Canonical savepoints of the RocksDB backend: every entry, in the format that all backends read."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tamias.keygroups import KeyGroupRange
from tamias.state.canonical_format import TableEntries, encode_entries
from tamias.state.expiry import left_of
from tamias.state.keyed_backend import CapturedState, SnapshotTarget
from tamias.state.rocksdb.instance import ExpiredAt, RocksTables
from tamias.state.rocksdb.instance_reader import read_states
from tamias.state.rocksdb.store import RocksStore
from tamias.state.snapshots import WINDOWED, KeyedFiles, StateFile, StateInfo

_CHUNK_ENTRIES = 20_000
_FILE_BYTES = 32 << 20


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
        files: list[StateFile] = []
        waiting, size = [], 0
        try:
            for chunk in self._chunks():
                waiting.append(chunk)
                size += len(chunk)
                if size >= _FILE_BYTES:
                    files.append(target.write(target.exclusive("keyed"), b"".join(waiting)))
                    waiting, size = [], 0
        finally:
            self._remove()
        if waiting:
            files.append(target.write(target.exclusive("keyed"), b"".join(waiting)))
        self._beside.key_groups = self.key_groups
        return KeyedFiles(*self.key_groups, (*files, *self._beside.write(target).files))

    def _chunks(self) -> Iterator[bytes]:
        store = RocksStore(self._folder, self._rocks.settings, create=False, read_only=True)
        try:
            for info, entries in read_states(store, self._rocks.max_parallelism, self.key_groups):
                alive = self._unexpired(info, entries)
                while some := list(islice(alive, _CHUNK_ENTRIES)):
                    table = TableEntries(info, [key for key, _ in some], [value for _, value in some], [], full=True)
                    yield from encode_entries({info.name: table})
        finally:
            store.close()

    def _unexpired(self, info: StateInfo, entries: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Leave out what had expired at the barrier, if the state's configuration asks for that."""
        expired = self._expired.get(info.name)
        if expired is None:
            return entries
        left, dead_ms = left_of(info.kind.removeprefix(WINDOWED)), expired.dead_ms
        rests = ((key, left(value, dead_ms)) for key, value in entries)
        return ((key, rest) for key, rest in rests if rest is not None)
