"""The tables of one operator in one RocksDB instance: their creation and numbers, their record, and their sweeps."""

from __future__ import annotations

import json
from functools import partial
from typing import NamedTuple

from ekorn.clock import Clock
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.errors import CorruptFileError, StateError
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.keygroups import KeyGroupRange
from ekorn.state.codecs import PickledCodec
from ekorn.state.declared import Declaration
from ekorn.state.evolution.restore_checks import migrate
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.kinds import KINDS, Handles, StateKind, bare_kind
from ekorn.state.rocksdb.compaction import Merging
from ekorn.state.rocksdb.fronted_tables import FrontedTable
from ekorn.state.rocksdb.handles import rocks_kind
from ekorn.state.rocksdb.limits import RocksLimits
from ekorn.state.rocksdb.rocks_timers import RocksTimers
from ekorn.state.rocksdb.store import META, RocksStore
from ekorn.state.rocksdb.stored_timers import StoredTimers
from ekorn.state.rocksdb.sweep import Sweep
from ekorn.state.rocksdb.tables import RocksTable, Shared
from ekorn.state.rocksdb.value_tables import ValueTable
from ekorn.state.rocksdb.value_weights import weigh_values
from ekorn.state.snapshots import StateInfo
from ekorn.state.table import FrontTable
from ekorn.state.timers import TIMERS
from ekorn.state.ttl_handles import Expiry

_META_KEY = META + b"tables"
_META_VERSION = 2  # version 1 has no timers


class ExpiredAt(NamedTuple):
    """The time of a snapshot that leaves expired entries out, and the time to live that decides which have expired."""

    now_ms: int
    config: StateTtlConfig

    @property
    def dead_ms(self) -> int:
        """The latest stamp of an entry that has expired."""
        return self.now_ms - self.config.get_ttl().to_milliseconds()


class InstanceMeta(NamedTuple):
    """The record of an instance about its tables."""

    next_piece: int  # the next number for a piece of a list
    states: dict[int, StateInfo]  # by number


class RocksTables:
    """The tables of one operator in one instance of RocksDB, which is opened with the first table."""

    def __init__(
        self,
        backend: KeyedStateBackend,
        settings: RocksDBSettings,
        folder: str,
        *,
        max_parallelism: int,
        key_groups: KeyGroupRange,
        clock: Clock,
        limits: RocksLimits,
    ) -> None:
        self.backend = backend
        self.settings = settings
        self.limits = limits
        self.folder = folder
        self.max_parallelism = max_parallelism
        self.key_groups = key_groups  # of the subtask
        self.by_name: dict[str, RocksTable] = {}
        self.queues: dict[str, RocksTimers] = {}
        self.restored: dict[str, StateInfo] = {}
        self.operator = ""
        self.sweeps: list[Sweep] = []
        self.left_out_of_full: dict[str, StateTtlConfig] = {}
        self._clock = clock
        self._written_meta = b""
        self._shared: Shared | None = None
        self._merging: Merging | None = None

    def keeps(self, info: StateInfo) -> bool:
        """Return whether a state is kept in RocksDB, and not on the heap beside it."""
        if info.name in self.backend.kept_on_heap:
            return False
        return bare_kind(info.kind) in KINDS or (info.kind == TIMERS and not self.has_timers_on_heap)

    @property
    def has_timers_on_heap(self) -> bool:
        """Whether the job is configured to keep its timers in memory."""
        return self.settings.timer_factory == "HEAP"

    @property
    def is_open(self) -> bool:
        """Whether there is an instance; there is one as soon as there is a state."""
        return self._shared is not None

    @property
    def shared(self) -> Shared:
        """The parts that the tables share; the first access opens the instance."""
        if self._shared is None:
            store = RocksStore(self.folder, self.settings)
            self._shared = Shared(store, self.max_parallelism, self.settings.cache_bytes)
        return self._shared

    @property
    def store(self) -> RocksStore:
        """The open instance."""
        return self.shared.store

    def number(self, name: str) -> int:
        """Return a property of the instance that is a number; 0 while there is no instance."""
        return self.store.number(name) if self.is_open else 0

    def counters(self) -> dict[str, int]:
        """Return what the instance has counted; nothing while there is no instance."""
        return self.store.counters() if self.is_open else {}

    @property
    def merging(self) -> Merging:
        """The merging of the instance's files."""
        if self._merging is None:
            self._merging = Merging(self.store, self.limits, self.settings.compaction_style != "NONE")
        return self._merging

    def table(self, declared: Declaration) -> RocksTable:
        """Return the table of a state; create it on first use.

        Raises:
            StateError: A state of this name is declared differently.
        """
        info = declared.info
        table = self.by_name.get(info.name)
        if table is None:
            table = self.add(info)
        if table.declared is None:
            self._take_over(table, declared)
        elif table.declared.info != info:
            raise StateError(
                f"state {info.name!r} is declared twice: as {table.info.summary} and as {info.summary}; "
                f"give the second one another name"
            )
        return table

    def handles(self, kind: StateKind) -> Handles:
        """Return the handles on the tables of a kind of state."""
        return rocks_kind(kind).handles

    def _take_over(self, table: RocksTable, declared: Declaration) -> None:
        """Convert the restored entries of a table to what the job declares."""
        migration = migrate(self.restored.get(declared.info.name), declared, self.operator)
        if migration is not None:
            for key, entry in table.entries(self.key_groups):
                table.replace_whole(key, migration.entry(entry))
            table.make_room()
        table.sized = weigh_values(declared.value, table.weigh_new)
        table.info, table.declared = declared.info, declared

    def timers(self, name: str, *, windowed: bool) -> RocksTimers:
        """Return the timers of the operator in one time domain, with those that were restored."""
        declared = Declaration(StateInfo(name, TIMERS), PickledCodec(name), None, self.backend.key_type)
        queue = self.queues[name] = RocksTimers(self, declared, windowed=windowed)
        return queue

    def add_timers(self) -> None:
        """Create the tables of the timers there are; this opens the instance if there is no other state."""
        for queue in self.queues.values():
            queue.attach()

    def put_in_front(self, front: FrontTable, declared: Declaration) -> None:
        """Let a table of the operator hold the entries in use of a state."""
        table = self.table(declared)
        table.make_room()
        assert isinstance(table, ValueTable), "a table in front has one value per key"
        fronted = self.by_name[declared.info.name] = FrontedTable(table, front, self.key_groups)
        front.put_in_front(fronted)

    def drop(self, name: str) -> None:
        """Give up a table and its entries."""
        table = self.by_name.pop(name)
        self.shared.exit()
        for start, end in table.ranges(self.key_groups):
            self.store.delete_range(start, end)

    def add(self, info: StateInfo, number: int | None = None) -> RocksTable:
        """Create the table of a state that the job has not declared yet."""
        if number is None:
            number = 1 + max((table.number for table in self.by_name.values()), default=0)
        self.shared.enter()
        table = self.by_name[info.name] = make_table(info, number, self.shared)
        return table

    def expire(self, table: RocksTable, config: StateTtlConfig) -> Expiry:
        """Apply a time to live to a table: start its sweep and return what its handle needs to know."""
        strategies = config.get_cleanup_strategies()
        if strategies.in_full_snapshot():
            self.left_out_of_full[table.info.name] = config
        if strategies.get_rocksdb_compact_filter_cleanup_strategy() is not None:
            self.sweeps.append(
                Sweep(
                    table,
                    self.store,
                    self.key_groups,
                    now_ms=self._clock.now_ms,
                    config=config,
                    limits=self.limits,
                )
            )
        # Flink: incremental cleanup exists on the heap only.
        return Expiry(config, self._clock.now_ms)

    def flush(self) -> None:
        """Write the changed entries and the record of the tables to RocksDB."""
        self.add_timers()
        batch = self.store.batch()
        for table in self.by_name.values():
            table.flush(batch)
        meta = self._meta()
        if meta != self._written_meta:  # otherwise a checkpoint without changes would cost a file
            batch.put(_META_KEY, meta)
            self._written_meta = meta
        batch.done()
        for queue in self.queues.values():
            queue.evict()

    def _meta(self) -> bytes:
        states = [[t.number, t.info.name, t.info.kind, t.info.ttl] for t in self.by_name.values()]
        document = {"version": _META_VERSION, "next_piece": self.shared.next_piece, "states": states}
        return json.dumps(document).encode()

    def read_meta(self) -> None:
        """Create the tables that the record of an opened instance lists."""
        meta = read_meta(self.store)
        self.shared.next_piece = meta.next_piece
        for number, info in meta.states.items():
            self.add(self.restored.get(info.name, info), number)
        self._written_meta = self.store.get(_META_KEY) or b""

    def close(self) -> None:
        """Close the instance and remove its folder."""
        self.by_name.clear()
        self.queues.clear()
        self.sweeps.clear()
        if self._merging is not None:
            self._merging.stop()
            self._merging = None
        if self._shared is not None:
            self._shared.leave()
            self._shared.store.destroy()
            self._shared = None


def make_table(info: StateInfo, number: int, shared: Shared) -> RocksTable:
    """Create the table for a kind of state."""
    if info.kind == TIMERS:
        return StoredTimers(info, number, shared)
    kind = KINDS.get(bare_kind(info.kind))
    make = ValueTable if kind is None else rocks_kind(kind).table
    return make(info, number, shared)


def read_meta(store: RocksStore) -> InstanceMeta:
    """Read what an instance records about its tables.

    Raises:
        CorruptFileError: The record is missing or damaged, or of a newer format.
    """
    raw = store.get(_META_KEY)
    if raw is None:
        raise CorruptFileError(store.folder, "an instance of RocksDB without a list of its states", "keyed state")
    try:
        document = json.loads(raw)
        if document["version"] not in range(1, _META_VERSION + 1):
            found = f"keyed state of format version {document['version']}"
            raise CorruptFileError(store.folder, found, f"version {_META_VERSION}, the newest this release reads")
        states = {number: StateInfo(name, kind, ttl=ttl) for number, name, kind, ttl in document["states"]}
        return InstanceMeta(int(document["next_piece"]), states)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        found = f"a damaged list of states ({type(error).__name__}: {error})"
        raise CorruptFileError(store.folder, found, "keyed state") from error


def remove_expired(folder: str, rocks: RocksTables, expired: dict[str, ExpiredAt]) -> None:
    """Remove expired entries from a checkpoint of the instance; the instance itself does not change."""
    store = RocksStore(folder, rocks.settings, create=False)
    try:
        for number, info in read_meta(store).states.items():
            if info.name in expired:
                now_ms, config = expired[info.name]
                table = make_table(info, number, Shared(store, rocks.max_parallelism))
                Sweep(
                    table,
                    store,
                    rocks.key_groups,
                    now_ms=partial(int, now_ms),
                    config=config,
                    limits=rocks.limits,
                ).finish()
        store.flush()
    finally:
        store.close()
