"""The RocksDB backend: keyed state on local disk, larger than memory, whose checkpoints link files instead of copying.

One instance holds all states of an operator in one subtask, and its timers. Tables that an operator brings along
(`adopt`), and timers if the job is configured so, are kept in a heap backend beside it and are part of its checkpoints.

    handles.py                             the handles on list, map and value state; the tables of kinds of state
    instance.py                            all tables of an operator
    tables.py, value_tables.py, list_tables.py, map_tables.py
                                           the states: dictionaries of the entries in use, in front of RocksDB
    fronted_tables.py                      states whose entries in use are in a table of the operator
    rocks_timers.py, stored_timers.py      the timers: the next ones in memory, and all of them in RocksDB
    known_addresses.py                     the addresses of keys in use
    value_weights.py                       the memory of large values in use
    key_bytes.py, value_bytes.py           keys and values as bytes
    store.py, store_options.py             one RocksDB instance and its options
    instance_files.py                      checkpoints: which files are written, which are referred to
    canonical_snapshot.py                  savepoints that every backend reads
    restore.py, instance_reader.py         restore a checkpoint of either backend into RocksDB; read an instance
    sweep.py                               remove expired entries
    compaction.py                          when all files are merged
    local_folder.py                        the folder of an instance
    limits.py                              the sizes and counts that bound each piece of work
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

from ekorn.clock import Clock, SystemClock
from ekorn.config.options.rocksdb import LEVELS
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.keygroups import KeyGroupRange, user_key
from ekorn.state.declared import Declaration
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import CapturedState, KeyedStateBackend, KeyedStates, Translate
from ekorn.state.rocksdb.canonical_snapshot import CapturedEntries
from ekorn.state.rocksdb.counter_metrics import counter_metrics
from ekorn.state.rocksdb.instance import ExpiredAt, RocksTables, remove_expired
from ekorn.state.rocksdb.instance_files import CapturedFolder, Files, Uploads
from ekorn.state.rocksdb.limits import RocksLimits
from ekorn.state.rocksdb.restore import restore_into
from ekorn.state.rocksdb.store import META
from ekorn.state.snapshots import WINDOWED, OperatorRestore, StateInfo
from ekorn.state.table import FrontTable, Table
from ekorn.state.table_states import TableStates
from ekorn.state.timers import TimerQueue
from ekorn.storage.file_store import FileStore

_COLUMN_FAMILY = "default"  # RocksDB's own name: all states of an operator share it


class RocksDBKeyedBackend(TableStates, KeyedStateBackend):
    """Keyed state of one operator in one subtask, in RocksDB."""

    def __init__(
        self,
        folder: str,
        *,
        max_parallelism: int,
        key_groups: KeyGroupRange,
        settings: RocksDBSettings | None = None,
        tracked: bool = True,
        incremental: bool = True,
        clock: Clock | None = None,
        reuses_restored: bool = False,
        on_close: Callable[[], None] | None = None,
        limits: RocksLimits | None = None,
    ) -> None:
        """Create a backend without state.

        Args:
            folder: The folder for the files of RocksDB; `close` removes it.
            max_parallelism: The number of key groups.
            key_groups: The key groups of the subtask.
            settings: The settings of RocksDB.
            tracked: Whether there are checkpoints.
            incremental: Whether a checkpoint refers to files of the checkpoint before.
            clock: The source of processing time.
            reuses_restored: Whether checkpoints are written to the directory of the restored one and may refer to its
                files.
            on_close: Called when the folder has been removed.
            limits: The limits of the instance.
        """
        KeyedStateBackend.__init__(self)
        self._beside = HeapStateBackend(tracked=tracked, incremental=incremental, clock=clock)
        self._clock = clock or SystemClock()
        self.folder = folder
        self.rocks = RocksTables(
            self,
            settings or RocksDBSettings(),
            os.path.join(folder, "db"),
            max_parallelism=max_parallelism,
            key_groups=key_groups,
            clock=self._clock,
            limits=limits or RocksLimits(),
        )
        TableStates.__init__(self, self.rocks, self.cell)
        self._incremental = incremental
        self._reuses_restored = reuses_restored
        self._on_close = on_close
        self._uploads = Uploads()
        self._settled = False

    @property
    def tracked(self) -> bool:
        return self._beside.tracked

    def in_windows(self, prefix: str) -> KeyedStates:
        return TableStates(self.rocks, self.window_cell, prefix, WINDOWED)

    def native_metrics(self) -> dict[str, Callable[[], int]]:
        properties = [
            f"{name}{level}"
            for name in self.rocks.settings.native_metrics
            for level in (range(LEVELS) if name == "num-files-at-level" else ("",))
        ]
        # Flink: properties are in a group with the name of the column family, and counters are not.
        found = {f"{_COLUMN_FAMILY}.rocksdb.{name}": partial(self.rocks.number, name) for name in properties}
        return found | counter_metrics(self.rocks.settings.counters, self.rocks.counters)

    def adopt(self, table: Table) -> None:
        if isinstance(table, FrontTable):
            self.rocks.put_in_front(table, Declaration(table.info, table.codec(), None, self.key_type))
            return
        self._beside.key_type = self.key_type
        self._beside.adopt(table)

    def timers(self, name: str, *, windowed: bool) -> TimerQueue:
        if self.rocks.has_timers_on_heap:
            self._beside.key_type = self.key_type
            return self._beside.timers(name, windowed=windowed)
        return self.rocks.timers(name, windowed=windowed)

    def on_heap(self) -> dict[str, Collection[Any]]:
        in_use = {name: table.data for name, table in list(self.rocks.by_name.items())}
        return self._beside.on_heap() | in_use

    def has_entries(self, state_name: str) -> bool:
        return next(self.entries(state_name), None) is not None or self._beside.has_entries(state_name)

    def keys(self, state_name: str) -> Iterator[Any]:
        table = self.rocks.by_name.get(state_name)
        if table is None:
            return self._beside.keys(state_name)
        self.rocks.flush()
        return map(user_key, table.keys(self.rocks.key_groups))

    def keys_of(self, state_names: Collection[str]) -> Iterator[Any]:
        tables = [self.rocks.by_name[name] for name in state_names if name in self.rocks.by_name]
        self.rocks.flush()
        first, last = self.rocks.key_groups
        for group in range(first, last + 1):  # the keys of one group at a time are in memory
            here = KeyGroupRange(group, group)
            yield from dict.fromkeys(key for table in tables for key in table.keys(here))

    def entries(self, state_name: str) -> Iterator[tuple[Any, Any]]:
        self.rocks.add_timers()
        table = self.rocks.by_name.get(state_name)
        if table is None:
            return self._beside.entries(state_name)
        self.rocks.flush()
        return table.entries(self.rocks.key_groups)

    def entry(self, state_name: str, key: Any) -> Any:
        return self.rocks.by_name[state_name].peek(key)

    def declaration(self, state_name: str) -> Declaration:
        declared = self.rocks.by_name[state_name].declared
        assert declared is not None, "the program has asked for the state"
        return declared

    def drop_all(self) -> None:
        self._beside.drop_all()
        for queue in self.rocks.queues.values():
            queue.drop()
        for table in self.rocks.by_name.values():
            table.forget()
        if self.rocks.is_open:
            self.rocks.store.delete_range(b"\x00", META)

    def end_epoch(self) -> None:
        for sweep in self.rocks.sweeps:
            sweep.step()
        if not self.tracked and self.rocks.is_open:
            self.rocks.merging.tidy()

    # ---------------------------------------------------------------------------------------------------- checkpoints

    def snapshot(self, checkpoint_id: int) -> CapturedState:
        beside = self._beside.snapshot(checkpoint_id)
        self.rocks.add_timers()
        if not self.rocks.is_open:
            return beside
        uploads = self._uploads
        if not self._incremental:
            return self._linked(beside, None, _ignore_files)
        base = uploads.base
        if not base and not self._settled:
            self.rocks.flush()
            self.rocks.merging.settle()
        self._settled = True
        return self._linked(beside, base, lambda files: uploads.written(checkpoint_id, files))

    def native_snapshot(self, checkpoint_id: int) -> CapturedState:
        beside = self._beside.full_snapshot(checkpoint_id)
        self.rocks.add_timers()
        return self._linked(beside, None, _ignore_files) if self.rocks.is_open else beside

    def full_snapshot(self, checkpoint_id: int) -> CapturedState:
        beside = self._beside.full_snapshot(checkpoint_id)
        self.rocks.add_timers()
        if not self.rocks.is_open:
            return beside
        return CapturedEntries(self._link(), beside, self.rocks, self._expired())

    def _linked(self, beside: CapturedState, base: Files | None, done: Callable[[Files], None]) -> CapturedFolder:
        folder, expired = self._link(), self._expired()
        rocks = self.rocks
        # Flink: incremental checkpoints keep expired entries, which the sweep removes.
        prepare = None if base is not None or not expired else lambda path: remove_expired(path, rocks, expired)
        return CapturedFolder(
            folder,
            beside,
            done,
            threads=rocks.settings.transfer_threads,
            piece_bytes=rocks.limits.piece_bytes,
            base=base,
            prepare=prepare,
        )

    def _link(self) -> str:
        self.rocks.flush()
        folder = os.path.join(tempfile.mkdtemp(prefix="checkpoint-", dir=self.folder), "db")
        self.rocks.store.checkpoint(folder)
        self.rocks.merging.tidy()
        return folder

    def _expired(self) -> dict[str, ExpiredAt]:
        """Return, by state, which expired entries a full snapshot taken now leaves out."""
        return {name: ExpiredAt(self._clock.now_ms(), config) for name, config in self.rocks.left_out_of_full.items()}

    def snapshot_completed(self, checkpoint_id: int) -> None:
        self._beside.snapshot_completed(checkpoint_id)
        self._uploads.completed(checkpoint_id)

    def restore(
        self,
        restored: OperatorRestore,
        store: FileStore,
        key_groups: KeyGroupRange,
        translate: Translate | None = None,
    ) -> None:
        files = restore_into(self.rocks, self._beside, restored, store, translate)
        if self._reuses_restored:
            self._uploads.start_from(files)

    def undeclared(self) -> tuple[str, ...]:
        on_disk = (name for name, table in self.rocks.by_name.items() if table.declared is None)
        return (*self._beside.undeclared(), *on_disk)

    def infos(self) -> tuple[StateInfo, ...]:
        tables = self.rocks.by_name
        no_timers = (queue.declared.info for name, queue in self.rocks.queues.items() if name not in tables)
        return (*self._beside.infos(), *(table.saved_as() for table in tables.values()), *no_timers)

    def close(self) -> None:
        self._beside.close()
        self._handles.clear()
        self.rocks.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._on_close is not None:
            self._on_close()


def _ignore_files(files: Files) -> None:
    """Ignore the files of a snapshot that refers to no other: the next snapshot does not build on it."""
