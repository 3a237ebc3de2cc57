"""Read the keyed state of a checkpoint as heap tables, whichever backend wrote it and at whichever parallelism."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from tamias.keygroups import KeyGroupRange, key_group, user_key
from tamias.state.canonical_format import decode_file
from tamias.state.keyed_backend import RestoredTable
from tamias.state.rocksdb.instance_files import beside_of
from tamias.state.rocksdb.instance_reader import read_instance
from tamias.state.snapshots import CANONICAL, KeyedFiles, OperatorRestore, StateInfo
from tamias.storage.file_store import FileStore


def read_tables(restored: OperatorRestore, store: FileStore, key_groups: KeyGroupRange) -> Iterator[RestoredTable]:
    """Yield the states of a range of key groups, from the snapshots of all subtasks that held a part of it."""
    restored.check_formats()
    infos = restored.keyed_infos()
    tables: dict[str, dict[Any, Any]] = {}
    for part in restored.keyed:
        for name, entries in _read_part(part, restored, store, key_groups, infos).items():
            table = tables.setdefault(name, {})
            if key_groups.covers(part.key_groups):
                table.update(entries)
            else:
                table.update(_of_key_groups(entries, infos[name], key_groups, restored.max_parallelism))
    for name, table in tables.items():
        yield RestoredTable(infos[name], table)


def _read_part(
    part: KeyedFiles,
    restored: OperatorRestore,
    store: FileStore,
    key_groups: KeyGroupRange,
    infos: dict[str, StateInfo],
) -> dict[str, dict[Any, Any]]:
    """Return the tables of one part by name, and add states that the metadata does not list to `infos`."""
    tables: dict[str, dict[Any, Any]] = {}
    if part.format != CANONICAL:
        for info, entries in read_instance(part, store, restored.max_parallelism, key_groups):
            infos.setdefault(info.name, info)
            tables[info.name] = entries
        part = beside_of(part)
    for file in part.files:
        for chunk in decode_file(store, file):
            infos.setdefault(chunk.name, StateInfo(chunk.name, chunk.kind))
            entries = tables.setdefault(chunk.name, {})
            entries.update(zip(chunk.keys, chunk.values, strict=True))
            for key in chunk.gone:
                entries.pop(key, None)
    return tables


def _of_key_groups(
    entries: dict[Any, Any], info: StateInfo, key_groups: KeyGroupRange, max_parallelism: int
) -> Iterator[tuple[Any, Any]]:
    first, last = key_groups
    key_of = itemgetter(0) if info.namespaced else _itself
    return (
        (address, value)
        for address, value in entries.items()
        if first <= key_group(user_key(key_of(address)), max_parallelism) <= last
    )


def _itself(key: Any) -> Any:
    return key
