"""Read the keyed state of a checkpoint as heap tables, whichever backend wrote it and at whichever parallelism.

State can also be read in advance, from a checkpoint that the one to be restored builds on: `PreloadedTables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import compress
from operator import itemgetter
from typing import Any

from ekorn.keygroups import KeyGroupRange, key_groups_of
from ekorn.state.canonical_format import decode_file
from ekorn.state.keyed_backend import RestoredTable, RestoredTables
from ekorn.state.rocksdb.instance_files import beside_of
from ekorn.state.rocksdb.instance_reader import read_instance
from ekorn.state.snapshots import CANONICAL, KeyedFiles, OperatorRestore, StateInfo
from ekorn.storage.file_store import FileStore

__all__ = ["PreloadedTables", "ReadTables", "read_tables"]

ReadTables = Callable[[OperatorRestore, FileStore, KeyGroupRange], Iterable[RestoredTable]]
"""Return the states of one operator in a range of key groups."""


def read_tables(restored: OperatorRestore, store: FileStore, key_groups: KeyGroupRange) -> Iterator[RestoredTable]:
    """Yield the states of a range of key groups, from the snapshots of all subtasks that held a part of it."""
    restored.check_formats()
    # The parts hold different key groups, so one dictionary takes the entries of all of them as they are read.
    tables: RestoredTables = {}
    for part in restored.keyed:
        _read_part(part, restored, store, key_groups, tables)
    yield from tables.values()


class PreloadedTables:
    """The states of one operator in a range of key groups, as of a checkpoint that later ones build on.

    Files of state never change, and a later file of a chain wins over an earlier one. So the state of a checkpoint
    whose files begin with those that were read is this state, followed by the rest of the files.

    Args:
        restored: The checkpoint.
        store: Where its files are.
        key_groups: The range.
        pause: Called between any two pieces of a file. What it raises ends the reading.
    """

    def __init__(
        self, restored: OperatorRestore, store: FileStore, key_groups: KeyGroupRange, pause: Callable[[], None]
    ) -> None:
        restored.check_formats()
        self._restored = restored
        self._key_groups = key_groups
        self._tables: RestoredTables = {}
        for part in restored.keyed:
            if part.format == CANONICAL:
                _read_part(part, restored, store, key_groups, self._tables, pause=pause)

    def read_on(self, restored: OperatorRestore, store: FileStore) -> Iterable[RestoredTable] | None:
        """Return the states as of another checkpoint, or None if that one does not build on the files that were read.

        This object cannot be used afterwards.
        """
        left = self._left_of(restored)
        if left is None:
            return None
        listed, tables = restored.keyed_infos(), self._tables
        for name, table in tables.items():
            tables[name] = RestoredTable(listed.get(name, table.info), table.entries)
        for part in left:
            _read_part(part, restored, store, self._key_groups, tables)
        return tables.values()

    def _left_of(self, restored: OperatorRestore) -> list[KeyedFiles] | None:
        """Return the parts of a checkpoint with only the files not read yet; None if it lacks a file that was read."""
        if restored.max_parallelism != self._restored.max_parallelism:
            return None
        read = {part.key_groups: part for part in self._restored.keyed}
        left = []
        for part in restored.keyed:
            of_part = read.pop(part.key_groups, None)
            files = () if of_part is None else of_part.files
            in_format = part.format == CANONICAL and (of_part is None or of_part.format == CANONICAL)
            if not in_format or part.files[: len(files)] != files:
                return None
            left.append(replace(part, files=part.files[len(files) :]))
        return None if read else left


def _read_part(
    part: KeyedFiles,
    restored: OperatorRestore,
    store: FileStore,
    key_groups: KeyGroupRange,
    tables: RestoredTables,
    *,
    pause: Callable[[], None] = lambda: None,
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
            pause()


def _of_key_groups(
    addresses: list[Any], values: list[Any], info: StateInfo, key_groups: KeyGroupRange, max_parallelism: int
) -> Iterable[tuple[Any, Any]]:
    """Return the entries of a chunk that belong to a range of key groups. hot: a rescale waits for it."""
    first, last = key_groups
    keys = list(map(itemgetter(0), addresses)) if info.namespaced else addresses
    chosen = [first <= group <= last for group in key_groups_of(keys, max_parallelism)]
    return zip(compress(addresses, chosen), compress(values, chosen), strict=True)
