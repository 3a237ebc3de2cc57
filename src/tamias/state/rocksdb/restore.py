"""From checkpoints back into RocksDB: of this backend or of the heap's, at this parallelism or another.

An instance's own files are brought back and opened, which costs no more than copying them. Where key groups have moved,
the largest of the instances that hold a part of them is opened and clipped, and the others' entries are added to it.
Entries in the neutral format are written one by one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from tamias.config.rocksdb_settings import RocksDBSettings
from tamias.errors import CorruptFileError
from tamias.keygroups import key_group, user_key
from tamias.state.backend import Restored, Translate
from tamias.state.heap.backend import HeapStateBackend
from tamias.state.heap.snapshots import neutral_chunks
from tamias.state.rocksdb.canonical import read_tables
from tamias.state.rocksdb.instance import RocksTables, in_rocksdb, read_meta
from tamias.state.rocksdb.instance_files import Files, beside_of, fetch
from tamias.state.rocksdb.key_bytes import PREFIX
from tamias.state.rocksdb.store import RocksStore
from tamias.state.rocksdb.tables import RocksTable
from tamias.state.snapshots import NEUTRAL, ROCKSDB, KeyedFiles, OperatorRestore, StateInfo
from tamias.storage.file_store import FileStore


def restore_into(
    rocks: RocksTables,
    beside: HeapStateBackend,
    restored: OperatorRestore,
    store: FileStore,
    translate: Translate | None,
) -> Files:
    """Bring a range of key groups back.

    Returns:
        The sorted files that were opened as they are.
    """
    rocks.restored = restored.keyed_infos()
    rocks.operator = restored.label
    beside.expect(restored)
    check_formats(restored)
    native = [part for part in restored.keyed if part.format == ROCKSDB]
    opened = _open_instances(rocks, native, store)
    kept: Restored = {}
    for part in [*map(beside_of, native), *(p for p in restored.keyed if p.format == NEUTRAL)]:
        _read_neutral(rocks, part, store, kept)
    if translate is not None:
        translate(kept)
    for info, entries in kept.values():
        if in_rocksdb(info.kind):
            rocks.restored.setdefault(info.name, info)  # what `translate` made of another state is as that one was
            _write_all(rocks, info, entries)
        else:
            beside.load(info, entries)
    for table in rocks.by_name.values():
        table.make_room()
    return opened


def check_formats(restored: OperatorRestore) -> None:
    """Refuse what no backend here can read.

    Raises:
        CorruptFileError: There is such a part.
    """
    for part in restored.keyed:
        if part.format not in (NEUTRAL, ROCKSDB):
            where = f"keyed state of operator {restored.label or restored.operator_id}"
            raise CorruptFileError(where, f"format {part.format!r}", f"{NEUTRAL!r} or {ROCKSDB!r}")


# ------------------------------------------------------------------------------------------------- instances of RocksDB


def _open_instances(rocks: RocksTables, parts: list[KeyedFiles], store: FileStore) -> Files:
    if not parts:
        return {}
    first, last = rocks.mine
    largest = max(parts, key=lambda part: sum(file.size for file in part.files))
    files = fetch(largest, store, rocks.folder, rocks.settings.transfer_threads)
    rocks.read_meta()
    if largest.key_group_first < first or last < largest.key_group_last:
        rocks.store.keep_groups(first, last)
    for part in parts:
        if part is not largest:
            _add_instance(rocks, part, store)
    return files


def _add_instance(rocks: RocksTables, part: KeyedFiles, store: FileStore) -> None:
    folder = f"{rocks.folder}-of-{part.key_group_first}"
    try:
        fetch(part, store, folder, rocks.settings.transfer_threads)
        other = RocksStore(folder, rocks.settings, create=False, read_only=True)
        try:
            next_piece, states = read_meta(other)
            rocks.shared.next_piece = max(rocks.shared.next_piece, next_piece)
            renumbered = {_table(rocks, info).number: number for number, info in states.items()}
            groups = max(rocks.mine[0], part.key_group_first), min(rocks.mine[1], part.key_group_last)
            rocks.store.ingest(_entries(other, groups, renumbered))
        finally:
            other.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _entries(store: RocksStore, groups: tuple[int, int], renumbered: dict[int, int]) -> Iterator[tuple[bytes, bytes]]:
    """The entries of some key groups, in order, as if states had other numbers."""
    for group in range(groups[0], groups[1] + 1):
        for number in sorted(renumbered):
            before = renumbered[number]
            prefix = PREFIX.pack(group, number)
            for address, value in store.scan(PREFIX.pack(group, before), PREFIX.pack(group, before + 1)):
                yield prefix + address[PREFIX.size :], value


def _table(rocks: RocksTables, info: StateInfo) -> RocksTable:
    table = rocks.by_name.get(info.name)
    return table if table is not None else rocks.add(rocks.restored.get(info.name, info))


# --------------------------------------------------------------------------------------------------- the neutral format


def _read_neutral(rocks: RocksTables, part: KeyedFiles, store: FileStore, kept: Restored) -> None:
    """Write what belongs into RocksDB as it comes, and collect what belongs beside it."""
    first, last = rocks.mine
    inside = first <= part.key_group_first and part.key_group_last <= last

    def is_mine(info: StateInfo, key: Any) -> bool:
        return inside or first <= key_group(user_key(key[0] if info.namespaced else key), rocks.groups) <= last

    for number, file in enumerate(part.files):
        for name, kind, keys, values, gone in neutral_chunks(store, file):
            info = rocks.restored.get(name) or StateInfo(name, kind)
            there = {key: value for key, value in zip(keys, values, strict=True) if is_mine(info, key)}
            removed = [key for key in gone if is_mine(info, key)]
            if not in_rocksdb(kind):
                entries = kept.setdefault(name, (info, {}))[1]
                entries.update(there)
                for key in removed:
                    entries.pop(key, None)
            elif number == 0:  # nothing is there that it could replace
                _write_all(rocks, info, there)
            else:
                table = _table(rocks, info)
                for key, value in (*there.items(), *((key, None) for key in removed)):
                    table.replace_whole(key, value)
    for table in rocks.by_name.values():
        table.make_room()


def _write_all(rocks: RocksTables, info: StateInfo, entries: dict[Any, Any]) -> None:
    table, batch = _table(rocks, info), rocks.store.batch()
    for key, value in entries.items():
        table.put_whole(batch, key, value)
    batch.done()


# ---------------------------------------------------------------------------------------------------- into the heap


def read_instance(
    part: KeyedFiles, store: FileStore, groups: int, mine: tuple[int, int]
) -> Iterator[tuple[StateInfo, dict[Any, Any]]]:
    """The states of a part written by RocksDB, of a range of key groups, as heap tables hold them."""
    settings = RocksDBSettings()
    with tempfile.TemporaryDirectory(prefix="tamias-restore-") as scratch:
        folder = os.path.join(scratch, "db")
        fetch(part, store, folder, settings.transfer_threads)
        instance = RocksStore(folder, settings, create=False, read_only=True)
        try:
            both = max(mine[0], part.key_group_first), min(mine[1], part.key_group_last)
            for info, entries in read_tables(instance, groups, both):
                yield info, dict(entries)
        finally:
            instance.close()
