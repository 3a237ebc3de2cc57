"""Snapshots of heap tables: what changed since the last completed checkpoint, on top of the files before.

A snapshot is a chain of files: one that holds every entry, then files that hold only changed ones. An entry in
a later file wins; a key listed as gone is removed. When the changes have grown as large as the whole, or when nearly
everything changes each time, the next snapshot writes every entry again and the chain starts anew. So a chain costs at
most twice the state to read.

Changes are counted from the last *completed* checkpoint: one that was aborted may lose its files at any time.
The layout of a file is in docs/formats/heap-state.md.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Collection, Iterator
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tamias.errors import CorruptFileError, preview
from tamias.keygroups import key_group, user_key
from tamias.state.backend import SnapshotTarget
from tamias.state.evolution.pickled_classes import loads
from tamias.state.snapshots import NEUTRAL, KeyedFiles, OperatorRestore, StateFile, StateInfo
from tamias.state.state_files import read_state
from tamias.storage.file_store import FileStore
from tamias.types.by_value import dumps

if TYPE_CHECKING:
    from tamias.state.heap.backend import Table

_LENGTH = struct.Struct("<I")
_CHUNK_ENTRIES = 50_000
_LONGEST_CHAIN = 100  # files, each opened to restore it
_MOST_INLINE = 256 << 10  # bytes of a chain that are not in files and so are written with every checkpoint again


class ChangeLog:
    """Which keys changed since which snapshot, and which files the last completed one consists of."""

    def __init__(self, *, incremental: bool) -> None:
        self._incremental = incremental
        self._pending: dict[int, dict[str, Collection[Any]]] = {}  # keys changed before each snapshot not yet completed
        self._chains: dict[int, tuple[StateFile, ...]] = {}  # written, not yet completed
        self._base: tuple[StateFile, ...] | None = None  # files of the last completed checkpoint
        self._bytes_per_change: float | None = None  # in the last file of changes
        self._lock = threading.Lock()  # `written` comes from the writing thread

    def capture(self, checkpoint_id: int, tables: dict[str, Table]) -> CapturedTables:
        """Copy what changed since the last completed checkpoint; the entries themselves cannot change."""
        self._pending[checkpoint_id] = {name: t.take_changed() for name, t in tables.items()}
        changed = {name: keys for name in tables if (keys := self._changed(name))}
        if self._base is None or not self._incremental or self._begins_anew(self._base, changed):
            return CapturedTables(self, checkpoint_id, (), {n: t.whole() for n, t in tables.items()})
        return CapturedTables(self, checkpoint_id, self._base, {n: tables[n].some(k) for n, k in changed.items()})

    def _changed(self, name: str) -> Collection[Any]:
        """The keys of a table that changed since the last completed checkpoint."""
        pending = [keys for changed in self._pending.values() if (keys := changed.get(name))]
        return pending[0] if len(pending) == 1 else dict.fromkeys(chain.from_iterable(pending))

    def written(self, checkpoint_id: int, files: tuple[StateFile, ...], changes: int) -> None:
        """A snapshot's files are all written, the last one with so many changes (called on the writing thread)."""
        with self._lock:
            self._chains[checkpoint_id] = files
            if changes:
                self._bytes_per_change = files[-1].size / changes

    def completed(self, checkpoint_id: int) -> None:
        """Build on this checkpoint from now on."""
        with self._lock:
            self._base = self._chains.get(checkpoint_id, self._base)
            self._chains = {i: c for i, c in self._chains.items() if i > checkpoint_id}
        self._pending = {i: p for i, p in self._pending.items() if i > checkpoint_id}

    def _begins_anew(self, base: tuple[StateFile, ...], changed: dict[str, Collection[Any]]) -> bool:
        """Whether to write everything: the chain is long, or these changes come to half of it anyway."""
        if not base:
            return False
        whole, changes = base[0].size, base[1:]
        if len(base) > _LONGEST_CHAIN or sum(f.size for f in changes) > whole:
            return True
        if sum(f.size for f in changes if f.path is None) > _MOST_INLINE:
            return True
        per_change = self._bytes_per_change
        return per_change is not None and 2 * per_change * sum(map(len, changed.values())) > whole


class Entries:
    """Keys with their values, and keys that are gone; `full` says that nothing else is there."""

    __slots__ = ("full", "gone", "info", "keys", "values")

    def __init__(self, info: StateInfo, keys: list[Any], values: list[Any], gone: list[Any], *, full: bool) -> None:
        self.info, self.keys, self.values, self.gone, self.full = info, keys, values, gone, full


class CapturedTables:
    """The captured entries of one checkpoint; `write` may run on another thread."""

    def __init__(
        self, log: ChangeLog, checkpoint_id: int, base: tuple[StateFile, ...], tables: dict[str, Entries]
    ) -> None:
        self._log = log
        self._checkpoint_id = checkpoint_id
        self._base = base
        self._tables = tables
        self.key_groups: tuple[int, int] = (0, 0)

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write one file with what was captured and answer the whole chain."""
        files = self._base
        entries = sum(len(t.keys) + len(t.gone) for t in self._tables.values())
        if entries or not files:
            payload = b"".join(encode_entries(self._tables))
            if payload:
                files = (*files, target.write(target.shared("keyed"), payload))
        self._log.written(self._checkpoint_id, files, changes=entries if self._base else 0)
        return KeyedFiles(*self.key_groups, files)


class FullTables:
    """Every entry, captured for a savepoint: one file that stands by itself; `write` may run on another thread."""

    def __init__(self, tables: dict[str, Entries]) -> None:
        self._tables = tables
        self.key_groups: tuple[int, int] = (0, 0)

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write the one file."""
        payload = b"".join(encode_entries(self._tables))
        files = (target.write(target.exclusive("keyed"), payload),) if payload else ()
        return KeyedFiles(*self.key_groups, files)


def encode_entries(tables: dict[str, Entries]) -> Iterator[bytes]:
    """The bytes of a file with these entries, chunk by chunk: the neutral format of every backend."""
    for name, entries in tables.items():
        for start in range(0, len(entries.keys), _CHUNK_ENTRIES):
            end = start + _CHUNK_ENTRIES
            yield _chunk(name, entries.info.kind, entries.keys[start:end], entries.values[start:end], [])
        if entries.gone:
            yield _chunk(name, entries.info.kind, [], [], entries.gone)


def _chunk(name: str, kind: str, keys: list[Any], values: list[Any], gone: list[Any]) -> bytes:
    data = dumps((name, kind, keys, values, gone))
    return _LENGTH.pack(len(data)) + data


def read_entries(
    restored: OperatorRestore, store: FileStore, key_groups: tuple[int, int]
) -> Iterator[tuple[StateInfo, dict[Any, Any]]]:
    """Read the states of a range of key groups from the snapshots of all the subtasks that held a part of it."""
    first, last = key_groups
    infos = restored.keyed_infos()
    tables: dict[str, dict[Any, Any]] = {}
    for part in restored.keyed:
        of_part: dict[str, dict[Any, Any]] = {}
        files = part.files
        if part.format != NEUTRAL:
            states, files = _read_native(restored, part, store, key_groups)
            for info, entries in states:
                infos.setdefault(info.name, info)
                of_part[info.name] = entries
        for file in files:
            for name, kind, keys, values, gone in neutral_chunks(store, file):
                infos.setdefault(name, StateInfo(name, kind))
                entries = of_part.setdefault(name, {})
                entries.update(zip(keys, values, strict=True))
                for key in gone:
                    entries.pop(key, None)
        inside = first <= part.key_group_first and part.key_group_last <= last
        for name, entries in of_part.items():
            table = tables.setdefault(name, {})
            if inside:
                table.update(entries)
            else:
                max_parallelism = restored.max_parallelism
                key_of = itemgetter(0) if infos[name].namespaced else _itself
                table.update(
                    (k, v)
                    for k, v in entries.items()
                    if first <= key_group(user_key(key_of(k)), max_parallelism) <= last
                )
    for name, table in tables.items():
        yield infos[name], table


def _read_native(
    restored: OperatorRestore, part: KeyedFiles, store: FileStore, key_groups: tuple[int, int]
) -> tuple[list[tuple[StateInfo, dict[Any, Any]]], tuple[StateFile, ...]]:
    """The states that RocksDB wrote, and the files beside them, which are in the neutral format."""
    from tamias.state.rocksdb.instance_files import beside_of
    from tamias.state.rocksdb.restore import check_formats, read_instance

    check_formats(restored)
    return list(read_instance(part, store, restored.max_parallelism, key_groups)), beside_of(part).files


def neutral_chunks(store: FileStore, file: StateFile) -> Iterator[tuple[str, str, list[Any], list[Any], list[Any]]]:
    """The chunks of a file in the neutral format: name, kind, keys, values, and keys that are gone."""
    return _read_chunks(read_state(store, file), file.path or "inline state")


def _itself(key: Any) -> Any:
    return key


def _read_chunks(payload: bytes, path: str) -> Iterator[tuple[str, str, list[Any], list[Any], list[Any]]]:
    position = 0
    while position < len(payload):
        if position + _LENGTH.size > len(payload):
            raise CorruptFileError(path, f"{len(payload) - position} bytes after the last chunk", "whole chunks")
        (length,) = _LENGTH.unpack_from(payload, position)
        position += _LENGTH.size
        if position + length > len(payload):
            raise CorruptFileError(path, f"a chunk of {length} bytes at {position} runs past the end", "whole chunks")
        chunk = loads(payload[position : position + length], path)
        if not _is_chunk(chunk):
            raise CorruptFileError(path, f"{preview(chunk)} at {position}", "name, kind, keys, values and keys gone")
        yield chunk
        position += length


def _is_chunk(found: Any) -> bool:
    """The checksum was right, so this was written so; but perhaps not by us."""
    if type(found) is not tuple or list(map(type, found)) != [str, str, list, list, list]:
        return False
    return len(found[2]) == len(found[3])
