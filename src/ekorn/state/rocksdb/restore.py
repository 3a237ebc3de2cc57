"""Restore a checkpoint of either backend into RocksDB, at the same parallelism or another.

The files of an instance are fetched and opened, which costs no more than copying them. If the key groups have moved,
the largest of the instances that hold some of them is opened and clipped to the range, and the entries of the others
are added to it. Entries in the canonical format are written one by one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

from ekorn.keygroups import KeyGroupRange, key_group, user_key
from ekorn.state.canonical_format import decode_file
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import RestoredTable, RestoredTables, Translate
from ekorn.state.rocksdb.instance import RocksTables, read_meta
from ekorn.state.rocksdb.instance_files import Files, beside_of, fetch
from ekorn.state.rocksdb.key_bytes import PREFIX
from ekorn.state.rocksdb.store import RocksStore
from ekorn.state.rocksdb.tables import RocksTable
from ekorn.state.snapshots import CANONICAL, ROCKSDB, KeyedFiles, OperatorRestore, StateInfo
from ekorn.state.timers import TIMERS
from ekorn.storage.file_store import FileStore


def restore_into(
    rocks: RocksTables,
    beside: HeapStateBackend,
    restored: OperatorRestore,
    store: FileStore,
    translate: Translate | None,
) -> Files:
    """Restore the key groups of `rocks`, and the tables beside it.

    Returns:
        The sorted files that were opened unchanged.
    """
    rocks.restored = restored.keyed_infos()
    rocks.operator = restored.label
    beside.expect(restored)
    restored.check_formats()
    native = [part for part in restored.keyed if part.format == ROCKSDB]
    opened = _open_instances(rocks, native, store)
    beside_tables = _moved_to_heap(rocks)
    for part in [*map(beside_of, native), *(p for p in restored.keyed if p.format == CANONICAL)]:
        _read_canonical(rocks, part, store, beside_tables)
    if translate is not None:
        translate(beside_tables)
    for info, entries in beside_tables.values():
        if rocks.keeps(info):
            rocks.restored.setdefault(info.name, info)  # a table that `translate` has made has no description yet
            _write_all(rocks, info, entries)
        else:
            beside.load(info, entries)
    for table in rocks.by_name.values():
        table.make_room()
    return opened


# ------------------------------------------------------------------------------------------------- instances of RocksDB


def _open_instances(rocks: RocksTables, parts: list[KeyedFiles], store: FileStore) -> Files:
    if not parts:
        return {}
    largest = max(parts, key=lambda part: sum(file.size for file in part.files))
    files = fetch(largest, store, rocks.folder, rocks.settings.transfer_threads)
    rocks.read_meta()
    if not rocks.key_groups.covers(largest.key_groups):
        rocks.store.keep_groups(rocks.key_groups)
    for part in parts:
        if part is not largest:
            _add_instance(rocks, part, store)
    return files


def _moved_to_heap(rocks: RocksTables) -> RestoredTables:
    """Take restored states out of the instance that the job keeps on the heap."""
    found = [table for table in rocks.by_name.values() if not rocks.keeps(table.info)]
    tables = {t.info.name: RestoredTable(t.info, dict(t.entries(rocks.key_groups))) for t in found}
    for name in tables:
        rocks.drop(name)
    return tables


def _add_instance(rocks: RocksTables, part: KeyedFiles, store: FileStore) -> None:
    folder = f"{rocks.folder}-of-{part.key_group_first}"
    try:
        fetch(part, store, folder, rocks.settings.transfer_threads)
        other = RocksStore(folder, rocks.settings, create=False, read_only=True)
        try:
            meta = read_meta(other)
            rocks.shared.next_piece = max(rocks.shared.next_piece, meta.next_piece)
            renumbered = {_table(rocks, info).number: number for number, info in meta.states.items()}
            rocks.store.ingest(_entries(other, rocks.key_groups.overlap(part.key_groups), renumbered))
        finally:
            other.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _entries(store: RocksStore, key_groups: KeyGroupRange, renumbered: dict[int, int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of a range of key groups in order of their addresses, with the new numbers of their states."""
    for group in range(key_groups.first, key_groups.last + 1):
        for number in sorted(renumbered):
            before = renumbered[number]
            prefix = PREFIX.pack(group, number)
            for address, value in store.scan(PREFIX.pack(group, before), PREFIX.pack(group, before + 1)):
                yield prefix + address[PREFIX.size :], value


def _table(rocks: RocksTables, info: StateInfo) -> RocksTable:
    table = rocks.by_name.get(info.name)
    return table if table is not None else rocks.add(rocks.restored.get(info.name, info))


# ------------------------------------------------------------------------------------------------- the canonical format


def _read_canonical(rocks: RocksTables, part: KeyedFiles, store: FileStore, beside_tables: RestoredTables) -> None:
    """Write the states that RocksDB keeps as they are read, and collect the tables beside it."""
    first, last = rocks.key_groups
    inside = rocks.key_groups.covers(part.key_groups)

    def is_mine(info: StateInfo, key: Any) -> bool:
        return inside or first <= key_group(user_key(key[0] if info.namespaced else key), rocks.max_parallelism) <= last

    for number, file in enumerate(part.files):
        for name, kind, keys, values, gone in decode_file(store, file, rocks.operator):
            info = rocks.restored.get(name) or StateInfo(name, kind)
            there = {key: value for key, value in zip(keys, values, strict=True) if is_mine(info, key)}
            removed = [key for key in gone if is_mine(info, key)]
            if not rocks.keeps(info):
                entries = beside_tables.setdefault(name, RestoredTable(info, {})).entries
                entries.update(there)
                for key in removed:
                    entries.pop(key, None)
                continue
            table = _table(rocks, info)
            if number == 0 or kind == TIMERS:  # there is no earlier entry to replace, or no value in it
                _write_all(rocks, info, there)
            else:
                for key, value in there.items():
                    table.replace_whole(key, value)
            for key in removed:
                table.replace_whole(key, None)
    for table in rocks.by_name.values():
        table.make_room()


def _write_all(rocks: RocksTables, info: StateInfo, entries: dict[Any, Any]) -> None:
    table, batch = _table(rocks, info), rocks.store.batch()
    for key, value in entries.items():
        table.put_whole(batch, key, value)
    batch.done()
