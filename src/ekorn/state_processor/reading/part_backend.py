"""Opens the keyed state of one part of a savepoint in a backend of its own, to be read through state handles."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict

from ekorn.clock import Clock
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import KeyedStateBackend, Translate
from ekorn.state.rocksdb.rocksdb_backend import RocksDBKeyedBackend
from ekorn.state.snapshots import ROCKSDB, KeyedFiles
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.storage.scratch_folders import LocalFolder

__all__ = ["TimersByEntry", "Times", "open_part", "timers_of"]

Times = set[int]
TimersByEntry = dict[object, Times]
"""The times of timers, by key, or by key and window in a window operator."""


def open_part(
    stored: StoredOperator,
    part: KeyedFiles,
    clock: Clock,
    *,
    on_rocksdb: bool | None = None,
    translate: Translate | None = None,
) -> KeyedStateBackend:
    """Restore one part of an operator's keyed state. The caller closes the backend.

    Args:
        stored: The operator.
        part: The part.
        clock: Decides which entries with a time to live have expired.
        on_rocksdb: Whether the state is put on local disk or into memory; None: on disk if RocksDB wrote it.
        translate: Changes the restored tables, as for `KeyedStateBackend.restore`.
    """
    backend: KeyedStateBackend
    if on_rocksdb is None:
        on_rocksdb = part.format == ROCKSDB
    if on_rocksdb:
        folder = LocalFolder(tempfile.gettempdir(), "ekorn-read-")
        backend = RocksDBKeyedBackend(
            os.path.join(folder.path, "state"),
            max_parallelism=stored.metadata.max_parallelism,
            key_groups=part.key_groups,
            settings=RocksDBSettings(),
            tracked=False,
            clock=clock,
            on_close=folder.close,
        )
    else:
        backend = HeapStateBackend(tracked=False, clock=clock)
    try:
        backend.restore(stored.restore(part), stored.files(), part.key_groups, translate)
    except BaseException:
        backend.close()
        raise
    return backend


def timers_of(backend: KeyedStateBackend, table: str, *, windowed: bool = False) -> TimersByEntry:
    """Return the restored timers of one time domain; `table` is the name of their table in the checkpoint."""
    found: TimersByEntry = defaultdict(set)
    for (key, namespace), _ in backend.entries(table):
        if windowed:
            time_ms, window = namespace
            found[key, window].add(time_ms)
        else:
            found[key].add(namespace)
    return found
