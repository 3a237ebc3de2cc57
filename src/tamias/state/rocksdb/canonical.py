"""Every entry of RocksDB in the format that all backends read: what a canonical savepoint is made of."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterator
from itertools import islice
from typing import Any

from tamias.state.backend import CapturedState, SnapshotTarget
from tamias.state.expiry import left_of
from tamias.state.heap.snapshots import Entries, encode_entries
from tamias.state.rocksdb.instance import Dead, RocksTables, make_table, read_meta
from tamias.state.rocksdb.store import RocksStore
from tamias.state.rocksdb.tables import Shared
from tamias.state.snapshots import WINDOWED, KeyedFiles, StateFile, StateInfo

_CHUNK_ENTRIES = 20_000
_FILE_BYTES = 32 << 20


class CapturedEntries:
    """A folder of links to be read entry by entry; `write` may run on another thread."""

    def __init__(self, folder: str, beside: CapturedState, rocks: RocksTables, dead: Dead) -> None:
        self.key_groups: tuple[int, int] = (0, 0)
        self._folder = folder
        self._beside = beside
        self._rocks = rocks
        self._dead = dead
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
            for info, entries in read_tables(store, self._rocks.groups, self.key_groups):
                alive = self._unexpired(info, entries)
                while some := list(islice(alive, _CHUNK_ENTRIES)):
                    table = Entries(info, [key for key, _ in some], [value for _, value in some], [], full=True)
                    yield from encode_entries({info.name: table})
        finally:
            store.close()

    def _unexpired(self, info: StateInfo, entries: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        if info.name not in self._dead:
            return entries
        now_ms, config = self._dead[info.name]
        left, dead_ms = left_of(info.kind.removeprefix(WINDOWED)), now_ms - config.get_ttl().to_milliseconds()
        rests = ((key, left(value, dead_ms)) for key, value in entries)
        return ((key, rest) for key, rest in rests if rest is not None)


def read_tables(
    store: RocksStore, groups: int, mine: tuple[int, int]
) -> Iterator[tuple[StateInfo, Iterator[tuple[Any, Any]]]]:
    """The states of an instance, each with its keys and values as a heap table holds them."""
    _, states = read_meta(store)
    for number, info in states.items():
        yield info, make_table(info, number, Shared(store, groups)).entries(*mine)
