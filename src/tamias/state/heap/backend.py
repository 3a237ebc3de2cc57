"""Keyed state in dictionaries: one table per state, keyed by the current key.

A table holds the entries of all the subtask's key groups together; a key's group is worked out only when state
is restored into another range. Per entry that leaves one dictionary slot, the key and the value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Protocol, TypeVar

from tamias.clock import Clock, SystemClock
from tamias.errors import StateError
from tamias.functions.record_functions import FoldFunction, ReduceFunction
from tamias.functions.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from tamias.functions.state_handles import (
    AggregatingState,
    FoldingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from tamias.functions.state_ttl import StateTtlConfig
from tamias.keygroups import user_key
from tamias.state.backend import CapturedState, KeyedStateBackend, KeyedStates, Translate
from tamias.state.codecs import Codec, PickledCodec
from tamias.state.declared import Declaration, declare, says_the_same
from tamias.state.evolution.restore_checks import migrate
from tamias.state.expiry import Expiry, expire
from tamias.state.heap.handles import (
    HeapAggregatingState,
    HeapFoldingState,
    HeapListState,
    HeapMapState,
    HeapReducingState,
    HeapValueState,
)
from tamias.state.heap.snapshots import ChangeLog, Entries, FullTables, read_entries
from tamias.state.snapshots import WINDOWED, OperatorRestore, StateInfo
from tamias.state.ttl import (
    TtlAggregatingState,
    TtlFoldingState,
    TtlListState,
    TtlMapState,
    TtlReducingState,
    TtlValueState,
)
from tamias.storage.file_store import FileStore


class Table:
    """The entries of one named state."""

    __slots__ = ("changed", "data", "declared", "info", "leave_out", "mark")

    def __init__(self, info: StateInfo, *, tracked: bool) -> None:
        self.info = info
        self.declared: Declaration | None = None  # None while nobody has asked for a restored state
        self.data: dict[Any, Any] = {}
        self.changed: set[Any] = set()  # keys written since the last snapshot; their entry may be gone
        self.mark: Callable[[Any], None] = self.changed.add if tracked else _untracked
        self.leave_out: Callable[[dict[Any, Any]], dict[Any, Any]] | None = None  # gives what a snapshot writes

    def take_changed(self) -> Collection[Any]:
        """The keys that changed since this was last called."""
        changed = self.changed.copy()
        self.changed.clear()
        return changed

    def saved_as(self) -> StateInfo:
        """What a checkpoint taken now says of it."""
        return self.info if self.declared is None else self.declared.saved_as(self.some_key())

    def some_key(self) -> Any:
        """Any key that has an entry; None if there is none."""
        address = next(iter(self.data), None)
        return address[0] if address is not None and self.info.namespaced else address

    def codec(self) -> Codec:
        """How values are kept in a table of an operator's own making."""
        return PickledCodec(self.info.name)

    def whole(self) -> Entries:
        """Every entry, as a snapshot writes it: later changes do not reach it."""
        data = self.data.copy() if self.leave_out is None else self.leave_out(self.data)
        values = list(data.values())
        copy = _COPIES.get(self.info.kind)
        return Entries(self.info, list(data), [copy(v) for v in values] if copy else values, [], full=True)

    def some(self, keys: Collection[Any]) -> Entries:
        """The entries of some keys, and which of those keys have none."""
        data, copy = self.data, _COPIES.get(self.info.kind)
        if self.leave_out is not None:
            data = self.leave_out({k: data[k] for k in keys if k in data})
        in_order = 4 * len(keys) > len(data)  # far faster when they are many, as neighbours are read together
        there = [k for k in data if k in keys] if in_order else [k for k in keys if k in data]
        values = [copy(data[k]) for k in there] if copy else [data[k] for k in there]
        gone = [k for k in keys if k not in data] if len(there) < len(keys) else []
        return Entries(self.info, there, values, gone, full=False)

    def load(self, entries: dict[Any, Any]) -> None:
        """Take over restored entries."""
        self.data.clear()
        self.data.update(entries)

    def drop(self) -> None:
        """Forget every entry."""
        self.data.clear()
        self.changed.clear()


# The kinds whose entries are changed in place.
_COPIES: dict[str, Callable[[Any], Any]] = {"list": list, "map": dict, "window-list": list, "window-map": dict}


def _untracked(key: Any) -> None:
    """Without checkpoints nobody asks what changed."""


H = TypeVar("H")


class TableStates(KeyedStates):
    """Hands out handles on tables: per key, or per key and window."""

    def __init__(self, tables: Tables, cell: list[Any], name_prefix: str = "", kind_prefix: str = "") -> None:
        self._tables = tables
        self._cell = cell
        self._name_prefix = name_prefix
        self._kind_prefix = kind_prefix
        self._handles: dict[str, Any] = {}
        self._asked_with: dict[str, StateDescriptor] = {}

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._handle(
            descriptor,
            "value",
            lambda t: HeapValueState(self._cell, t, descriptor.default_value),
            lambda t, expiry: TtlValueState(self._cell, t, expiry),
        )

    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._handle(
            descriptor,
            "list",
            lambda t: HeapListState(self._cell, t),
            lambda t, expiry: TtlListState(self._cell, t, expiry),
        )

    def map_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._handle(
            descriptor,
            "map",
            lambda t: HeapMapState(self._cell, t),
            lambda t, expiry: TtlMapState(self._cell, t, expiry),
        )

    def reducing_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        reduce = descriptor.get_reduce_function()
        call = reduce.reduce if isinstance(reduce, ReduceFunction) else reduce
        return self._handle(
            descriptor,
            "reducing",
            lambda t: HeapReducingState(self._cell, t, call),
            lambda t, expiry: TtlReducingState(self._cell, t, expiry, call),
        )

    def aggregating_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        function = descriptor.get_agg_function()
        return self._handle(
            descriptor,
            "aggregating",
            lambda t: HeapAggregatingState(self._cell, t, function),
            lambda t, expiry: TtlAggregatingState(self._cell, t, expiry, function),
        )

    def folding_state(self, descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]:
        fold = descriptor.get_fold_function()
        call = fold.fold if isinstance(fold, FoldFunction) else fold
        initial = descriptor.initial_value
        return self._handle(
            descriptor,
            "folding",
            lambda t: HeapFoldingState(self._cell, t, call, initial),
            lambda t, expiry: TtlFoldingState(self._cell, t, expiry, call, initial),
        )

    def _handle(
        self,
        descriptor: StateDescriptor,
        kind: str,
        make: Callable[[Any], H],
        make_expiring: Callable[[Any, Expiry], H],
    ) -> H:
        handle: H | None = self._handles.get(descriptor.name)
        if handle is not None and says_the_same(self._asked_with.get(descriptor.name), descriptor):
            return handle  # some functions ask with every record
        tables = self._tables
        name = self._name_prefix + descriptor.name
        table = tables.table(declare(descriptor, self._kind_prefix + kind, tables.backend.key_type, name))
        self._asked_with[descriptor.name] = descriptor
        if handle is None:
            config = descriptor.ttl_config
            if config is None:
                handle = make(table)
            else:
                handle = make_expiring(table, tables.expire(table, kind, config))
            self._handles[descriptor.name] = handle
        return handle


class Tables(Protocol):
    """The tables of one operator, by name."""

    backend: KeyedStateBackend

    def table(self, declared: Declaration) -> Any:
        """The table of a state, made on first use; a state of another kind under the same name is an error."""

    def expire(self, table: Any, kind: str, config: StateTtlConfig) -> Expiry:
        """Put a time to live into force."""


class HeapTables:
    """The tables of one operator on the heap."""

    def __init__(self, backend: KeyedStateBackend, *, tracked: bool, clock: Clock) -> None:
        self.tracked = tracked
        self.clock = clock
        self.backend = backend
        self.by_name: dict[str, Table] = {}
        self.restored: dict[str, StateInfo] = {}
        self.operator = ""

    def table(self, declared: Declaration) -> Table:
        """The table of a state, made on first use; a state of another kind under the same name is an error."""
        info = declared.info
        table = self.by_name.get(info.name)
        if table is None:
            table = self.by_name[info.name] = Table(info, tracked=self.tracked)
        if table.declared is None:
            self.take_over(table, declared)
        elif table.declared.info != info:
            raise StateError(
                f"state {info.name!r} is declared twice: as {table.info.summary} and as {info.summary}; "
                f"give the second one another name"
            )
        return table

    def take_over(self, table: Table, declared: Declaration) -> None:
        """Make restored entries what the job declares them to be."""
        migration = migrate(self.restored.get(declared.info.name), declared, self.operator)
        if migration is not None:
            table.load({address: migration.entry(entry) for address, entry in table.data.items()})
            if table.mark is not _untracked:
                table.changed.update(table.data)
        table.info, table.declared = declared.info, declared

    def expire(self, table: Table, kind: str, config: StateTtlConfig) -> Expiry:
        """Put a time to live into force."""
        return expire(table, kind, config, self.clock, self.backend.every_record)


class HeapStateBackend(TableStates, KeyedStateBackend):
    """Keyed state of one operator in one subtask, in memory."""

    def __init__(self, *, tracked: bool, incremental: bool = True, clock: Clock | None = None) -> None:
        KeyedStateBackend.__init__(self)
        tables = HeapTables(self, tracked=tracked, clock=clock or SystemClock())
        TableStates.__init__(self, tables, self.cell)
        self._heap = tables
        self._log = ChangeLog(incremental=incremental)

    @property
    def tracked(self) -> bool:
        return self._heap.tracked

    def in_windows(self, prefix: str) -> KeyedStates:
        return TableStates(self._heap, self.window_cell, prefix, WINDOWED)

    def adopt(self, table: Table) -> None:
        info = table.info
        restored = self._heap.by_name.get(info.name) or Table(info, tracked=False)
        declared = Declaration(info, table.codec(), None, self.key_type)
        self._heap.take_over(restored, declared)
        self._heap.by_name[info.name] = table
        table.info, table.declared = declared.info, declared
        table.load(restored.data)

    def has_entries(self, state_name: str) -> bool:
        table = self._heap.by_name.get(state_name)
        return table is not None and bool(table.data)

    def keys(self, state_name: str) -> Iterator[Any]:
        table = self._heap.by_name.get(state_name)
        return iter(()) if table is None else iter([user_key(k) for k in table.data])

    def entries(self, state_name: str) -> Iterator[tuple[Any, Any]]:
        table = self._heap.by_name.get(state_name)
        if table is None:
            return iter(())
        leave_out, table.leave_out = table.leave_out, None
        whole = table.whole()
        table.leave_out = leave_out
        return zip(whole.keys, whole.values, strict=True)

    def drop_all(self) -> None:
        for table in self._heap.by_name.values():
            table.drop()

    def snapshot(self, checkpoint_id: int) -> CapturedState:
        return self._log.capture(checkpoint_id, self._heap.by_name)

    def full_snapshot(self, checkpoint_id: int) -> CapturedState:
        return FullTables({name: table.whole() for name, table in self._heap.by_name.items()})

    def snapshot_completed(self, checkpoint_id: int) -> None:
        self._log.completed(checkpoint_id)

    def restore(
        self,
        restored: OperatorRestore,
        store: FileStore,
        key_groups: tuple[int, int],
        translate: Translate | None = None,
    ) -> None:
        self.expect(restored)
        tables = {info.name: (info, entries) for info, entries in read_entries(restored, store, key_groups)}
        if translate is not None:
            translate(tables)
        for info, entries in tables.values():
            self.load(info, entries)

    def expect(self, restored: OperatorRestore) -> None:
        """What a checkpoint says of its states is held against what the job declares."""
        self._heap.restored = restored.keyed_infos()
        self._heap.operator = restored.label

    def load(self, info: StateInfo, entries: dict[Any, Any]) -> None:
        """Take over restored entries of a state that nobody has asked for yet."""
        self._heap.restored.setdefault(info.name, info)
        table = self._heap.by_name.get(info.name)
        if table is None:
            table = self._heap.by_name[info.name] = Table(info, tracked=self._heap.tracked)
        table.load(entries)

    def infos(self) -> tuple[StateInfo, ...]:
        return tuple(t.saved_as() for t in self._heap.by_name.values())

    def close(self) -> None:
        self._heap.by_name.clear()
        self._handles.clear()
