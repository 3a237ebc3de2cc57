"""Read the states of a RocksDB instance entry by entry, in the form in which a heap table keeps them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any

from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.keygroups import KeyGroupRange
from ekorn.state.rocksdb.instance import make_table, read_meta
from ekorn.state.rocksdb.instance_files import fetch
from ekorn.state.rocksdb.store import RocksStore
from ekorn.state.rocksdb.tables import Shared
from ekorn.state.snapshots import KeyedFiles, StateInfo
from ekorn.storage.file_store import FileStore
from ekorn.storage.scratch_folders import LocalFolder


def read_instance(
    part: KeyedFiles, store: FileStore, max_parallelism: int, key_groups: KeyGroupRange
) -> Iterator[tuple[StateInfo, Iterator[tuple[Any, Any]]]]:
    """Yield the states of a range of key groups from a part of a checkpoint that the RocksDB backend wrote.

    The entries are read from the instance while they are asked for, before the next state.
    """
    with opened_instance(part, store) as instance:
        yield from read_states(instance, max_parallelism, key_groups.overlap(part.key_groups))


@contextlib.contextmanager
def opened_instance(part: KeyedFiles, store: FileStore) -> Iterator[RocksStore]:
    """Fetch the files of an instance and open it to be read."""
    settings = RocksDBSettings()
    with contextlib.closing(LocalFolder(tempfile.gettempdir(), "ekorn-restore-")) as scratch:
        folder = os.path.join(scratch.path, "db")
        fetch(part, store, folder, settings.transfer_threads)
        instance = RocksStore(folder, settings, create=False, read_only=True)
        try:
            yield instance
        finally:
            instance.close()


def read_states(
    instance: RocksStore, max_parallelism: int, key_groups: KeyGroupRange
) -> Iterator[tuple[StateInfo, Iterator[tuple[Any, Any]]]]:
    """Yield the states of an open instance, each with the keys and values of a range of key groups."""
    for number, info in read_meta(instance).states.items():
        yield info, make_table(info, number, Shared(instance, max_parallelism)).entries(key_groups)
