"""Read the keyed state of a checkpoint as heap tables, whichever backend wrote it and at whichever parallelism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from operator import itemgetter
from typing import Any

from tamias.keygroups import KeyGroupRange, key_groups_of
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
            there: Iterable[tuple[Any, Any]] = zip(keys, values, strict=True)
            if not covered:
                there = _of_key_groups(keys, values, info, key_groups, restored.max_parallelism)
            entries.update(there)
            for key in gone:
                entries.pop(key, None)


def _of_key_groups(
    addresses: list[Any], values: list[Any], info: StateInfo, key_groups: KeyGroupRange, max_parallelism: int
) -> Iterable[tuple[Any, Any]]:
    """Return the entries of a range of key groups, of a chunk that also holds others. hot: a rescale waits for it."""
    first, last = key_groups
    keys = list(map(itemgetter(0), addresses)) if info.namespaced else addresses
    chosen = [first <= group <= last for group in key_groups_of(keys, max_parallelism)]
    return zip(compress(addresses, chosen), compress(values, chosen), strict=True)
