"""Keyed state in dictionaries: one table per state, keyed by the current key.

A table holds the entries of all the subtask's key groups together; a key's group is worked out only when state
is restored into another range. Per entry that leaves one dictionary slot, the key and the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tamias.contracts.state import (
    AggregatingState,
    AggregatingStateDescriptor,
    FoldingState,
    FoldingStateDescriptor,
    ListState,
    ListStateDescriptor,
    MapState,
    MapStateDescriptor,
    ReducingState,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueState,
    ValueStateDescriptor,
)
from tamias.errors import StateError
from tamias.keygroups import user_key
from tamias.state.heap_snapshots import ChangeLog, read_entries
from tamias.state.keyed import CapturedState, KeyedStateBackend, info_of
from tamias.state.files import FileStore
from tamias.state.restore_checks import check_restorable
from tamias.state.snapshots import OperatorRestore, StateInfo
from tamias.wire.values import IMMUTABLE, loaded, own, stored


class Table:
    """The entries of one named state."""

    __slots__ = ("changed", "data", "info", "mark")

    def __init__(self, info: StateInfo, *, tracked: bool) -> None:
        self.info = info
        self.data: dict[Any, Any] = {}
        self.changed: set[Any] = set()  # keys written since the last snapshot; their entry may be gone
        self.mark: Callable[[Any], None] = self.changed.add if tracked else _untracked


def _untracked(key: Any) -> None:
    """Without checkpoints nobody asks what changed."""


class HeapStateBackend(KeyedStateBackend):
    """Keyed state of one operator in one subtask, in memory."""

    def __init__(self, *, tracked: bool, incremental: bool = True) -> None:
        super().__init__()
        self._tracked = tracked
        self._tables: dict[str, Table] = {}
        self._handles: dict[str, Any] = {}
        self._log = ChangeLog(incremental=incremental)
        self._restored: dict[str, StateInfo] = {}

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._handle(descriptor, "value", lambda t: HeapValueState(self.cell, t, descriptor.default_value))

    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._handle(descriptor, "list", lambda t: HeapListState(self.cell, t))

    def map_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._handle(descriptor, "map", lambda t: HeapMapState(self.cell, t))

    def reducing_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        reduce = descriptor.get_reduce_function().reduce
        return self._handle(descriptor, "reducing", lambda t: HeapReducingState(self.cell, t, reduce))

    def aggregating_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        function = descriptor.get_agg_function()
        return self._handle(descriptor, "aggregating", lambda t: HeapAggregatingState(self.cell, t, function))

    def folding_state(self, descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]:
        return self._handle(
            descriptor,
            "folding",
            lambda t: HeapFoldingState(self.cell, t, descriptor.get_fold_function().fold, descriptor.initial_value),
        )

    def table(self, info: StateInfo) -> Table:
        """The table of a state, made on first use; a state of another kind under the same name is an error."""
        table = self._tables.get(info.name)
        if table is None:
            table = self._tables[info.name] = Table(info, tracked=self._tracked)
        elif table.info.kind != info.kind or table.info.ttl != info.ttl:
            raise StateError(
                f"state {info.name!r} is declared twice: as {table.info.kind} and as {info.kind}; "
                f"give the second one another name"
            )
        check_restorable(self._restored.get(info.name), info)
        table.info = info
        return table

    def _handle(self, descriptor: StateDescriptor, kind: str, make: Callable[[Table], Any]) -> Any:
        table = self.table(info_of(descriptor, kind))
        handle = self._handles.get(descriptor.name)
        if handle is None:
            handle = self._handles[descriptor.name] = make(table)
        return handle

    def keys(self, state_name: str) -> Iterator[Any]:
        table = self._tables.get(state_name)
        return iter(()) if table is None else iter([user_key(k) for k in table.data])

    def drop_all(self) -> None:
        for table in self._tables.values():
            table.data.clear()
            table.changed.clear()

    def snapshot(self, checkpoint_id: int) -> CapturedState:
        return self._log.capture(checkpoint_id, self._tables)

    def snapshot_completed(self, checkpoint_id: int) -> None:
        self._log.completed(checkpoint_id)

    def restore(self, restored: OperatorRestore, store: FileStore, key_groups: tuple[int, int]) -> None:
        self._restored = {info.name: info for info in restored.states}
        for info, entries in read_entries(restored, store, key_groups):
            table = self._tables.get(info.name)
            if table is None:
                table = self._tables[info.name] = Table(info, tracked=self._tracked)
            table.data = entries

    def infos(self) -> tuple[StateInfo, ...]:
        return tuple(t.info for t in self._tables.values())

    def close(self) -> None:
        self._tables.clear()
        self._handles.clear()


class _Entry:
    """What every handle has: the current key's cell, the table, and how to say that a key changed."""

    __slots__ = ("_cell", "_data", "_mark")

    def __init__(self, cell: list[Any], table: Table) -> None:
        self._cell = cell
        self._data: dict[Any, Any] = table.data
        self._mark = table.mark

    def clear(self) -> None:
        """Remove the current key's entry."""
        key = self._cell[0]
        self._data.pop(key, None)
        self._mark(key)


class HeapValueState(_Entry, ValueState[Any]):
    __slots__ = ("_default",)

    def __init__(self, cell: list[Any], table: Table, default: Any) -> None:
        super().__init__(cell, table)
        self._default = default

    def value(self) -> Any:  # hot
        kept = self._data.get(self._cell[0])
        if kept is None:
            return None if self._default is None else own(self._default)
        return loaded(kept) if type(kept) is bytearray else kept

    def update(self, value: Any) -> None:  # hot
        key = self._cell[0]
        if value is None:
            self._data.pop(key, None)
        else:
            self._data[key] = value if type(value) in IMMUTABLE else stored(value)
        self._mark(key)


class HeapListState(_Entry, ListState[Any]):
    __slots__ = ()

    def get(self) -> Iterator[Any]:
        return iter([loaded(e) for e in self._data.get(self._cell[0], ())])

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        if value is None:
            raise StateError("a list state cannot hold None; leave the element out, or add a value that stands for it")
        key = self._cell[0]
        kept = self._data.get(key)
        if kept is None:
            kept = self._data[key] = []
        kept.append(stored(value))
        self._mark(key)

    def add_all(self, values: Iterable[Any]) -> None:
        elements = self._checked(values)
        if elements:
            key = self._cell[0]
            self._data.setdefault(key, []).extend(elements)
            self._mark(key)

    def update(self, values: Iterable[Any]) -> None:
        elements = self._checked(values)
        key = self._cell[0]
        if elements:
            self._data[key] = elements
        else:
            self._data.pop(key, None)
        self._mark(key)

    @staticmethod
    def _checked(values: Iterable[Any]) -> list[Any]:
        if values is None:
            raise StateError("a list state takes a list of values, not None; use clear() to empty it")
        elements = [stored(v) for v in values]
        if None in elements:
            raise StateError("a list state cannot hold None; leave the element out, or add a value that stands for it")
        return elements


class HeapMapState(_Entry, MapState[Any, Any]):
    __slots__ = ()

    def get(self, key: Any) -> Any:
        entries = self._data.get(self._cell[0])
        return None if entries is None else loaded(entries.get(key))

    def put(self, key: Any, value: Any) -> None:
        current = self._cell[0]
        entries = self._data.get(current)
        if entries is None:
            entries = self._data[current] = {}
        entries[own(key)] = stored(value)
        self._mark(current)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        if dict_value:
            current = self._cell[0]
            self._data.setdefault(current, {}).update({own(k): stored(v) for k, v in dict_value.items()})
            self._mark(current)

    def remove(self, key: Any) -> None:
        current = self._cell[0]
        entries = self._data.get(current)
        if entries is None or key not in entries:
            return
        del entries[key]
        if not entries:
            del self._data[current]
        self._mark(current)

    def contains(self, key: Any) -> bool:
        return key in self._data.get(self._cell[0], ())

    def items(self) -> Iterable[tuple[Any, Any]]:
        return iter([(k, loaded(v)) for k, v in self._entries().items()])

    def keys(self) -> Iterable[Any]:
        return iter(list(self._entries()))

    def values(self) -> Iterable[Any]:
        return iter([loaded(v) for v in self._entries().values()])

    def is_empty(self) -> bool:
        return not self._entries()

    def _entries(self) -> dict[Any, Any]:
        return self._data.get(self._cell[0]) or {}


class HeapReducingState(_Entry, ReducingState[Any]):
    __slots__ = ("_reduce",)

    def __init__(self, cell: list[Any], table: Table, reduce: Callable[[Any, Any], Any]) -> None:
        super().__init__(cell, table)
        self._reduce = reduce

    def get(self) -> Any:
        return loaded(self._data.get(self._cell[0]))

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        key = self._cell[0]
        kept = self._data.get(key)
        self._data[key] = stored(value if kept is None else self._reduce(loaded(kept), value))
        self._mark(key)


class HeapAggregatingState(_Entry, AggregatingState[Any, Any]):
    __slots__ = ("_function",)

    def __init__(self, cell: list[Any], table: Table, function: Any) -> None:
        super().__init__(cell, table)
        self._function = function

    def get(self) -> Any:
        kept = self._data.get(self._cell[0])
        return None if kept is None else self._function.get_result(loaded(kept))

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        key = self._cell[0]
        kept = self._data.get(key)
        accumulator = self._function.create_accumulator() if kept is None else loaded(kept)
        self._data[key] = stored(self._function.add(value, accumulator))
        self._mark(key)


class HeapFoldingState(_Entry, FoldingState[Any, Any]):
    __slots__ = ("_fold", "_initial")

    def __init__(self, cell: list[Any], table: Table, fold: Callable[[Any, Any], Any], initial: Any) -> None:
        super().__init__(cell, table)
        self._fold = fold
        self._initial = initial

    def get(self) -> Any:
        return loaded(self._data.get(self._cell[0]))

    def add(self, value: Any) -> None:
        key = self._cell[0]
        kept = self._data.get(key)
        self._data[key] = stored(self._fold(own(self._initial) if kept is None else loaded(kept), value))
        self._mark(key)
