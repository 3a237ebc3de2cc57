"""Read the keyed state of a checkpoint as heap tables, whichever backend wrote it and at whichever parallelism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from tamias.keygroups import KeyGroupRange, key_group, user_key
from tamias.state.canonical_format import decode_file
from tamias.state.keyed_backend import RestoredTable, RestoredTables
from tamias.state.rocksdb.instance_files import beside_of
from tamias.state.rocksdb.instance_reader import read_instance
from tamias.state.snapshots import CANONICAL, KeyedFiles, OperatorRestore, StateInfo
from tamias.storage.file_store import FileStore


def read_tables(restored: OperatorRestore, store: FileStore, key_groups: KeyGroupRange) -> Iterator[RestoredTable]:
    """Yield the states of a range of key groups, from the snapshots of all subtasks that held a part of it."""
    restored.check_formats()
    # The parts hold different key groups, so one dictionary takes the entries of all of them as they are read.
    tables: RestoredTables = {}
    for part in restored.keyed:
        _read_part(part, restored, store, key_groups, tables)
    yield from tables.values()


def _read_part(
    part: KeyedFiles, restored: OperatorRestore, store: FileStore, key_groups: KeyGroupRange, tables: RestoredTables
) -> None:
    """Add the entries of one part to the tables."""
    listed = restored.keyed_infos()
    if part.format != CANONICAL:
        for info, of_instance in read_instance(part, store, restored.max_parallelism, key_groups):
            table = tables.setdefault(info.name, RestoredTable(listed.get(info.name, info), {}))
            table.entries.update(of_instance)
        part = beside_of(part)
    covered = key_groups.covers(part.key_groups)
    for file in part.files:
        for name, kind, keys, values, gone in decode_file(store, file, restored.label):
            info = listed.get(name) or StateInfo(name, kind)
            entries = tables.setdefault(name, RestoredTable(info, {})).entries
            there = zip(keys, values, strict=True)
            entries.update(there if covered else _of_key_groups(there, info, key_groups, restored.max_parallelism))
            for key in gone:
                entries.pop(key, None)


def _of_key_groups(
    entries: Iterable[tuple[Any, Any]], info: StateInfo, key_groups: KeyGroupRange, max_parallelism: int
) -> Iterator[tuple[Any, Any]]:
    first, last = key_groups
    key_of = itemgetter(0) if info.namespaced else _itself
    return (
        (address, value)
        for address, value in entries
        if first <= key_group(user_key(key_of(address)), max_parallelism) <= last
    )


def _itself(key: Any) -> Any:
    return key
