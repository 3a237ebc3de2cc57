"""Keyed state in dictionaries: one table per state, keyed by the current key.

A table holds the entries of all the subtask's key groups together; a key's group is worked out only when state
is restored into another range. Per entry that leaves one dictionary slot, the key and the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tamias.contracts.functions import FoldFunction, ReduceFunction
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
from tamias.state.files import FileStore
from tamias.state.heap_snapshots import ChangeLog, Entries, read_entries
from tamias.state.keyed import CapturedState, KeyedStateBackend, KeyedStates, info_of
from tamias.state.restore_checks import check_restorable
from tamias.state.snapshots import WINDOWED, OperatorRestore, StateInfo
from tamias.wire.values import IMMUTABLE, loaded, own, stored


class Table:
    """The entries of one named state."""

    __slots__ = ("changed", "data", "info", "mark")

    def __init__(self, info: StateInfo, *, tracked: bool) -> None:
        self.info = info
        self.data: dict[Any, Any] = {}
        self.changed: set[Any] = set()  # keys written since the last snapshot; their entry may be gone
        self.mark: Callable[[Any], None] = self.changed.add if tracked else _untracked

    def take_changed(self) -> set[Any]:
        """The keys that changed since this was last called."""
        changed = self.changed.copy()
        self.changed.clear()
        return changed

    def whole(self) -> Entries:
        """Every entry, as a snapshot writes it: later changes do not reach it."""
        data = self.data.copy()
        values = list(data.values())
        copy = _COPIES.get(self.info.kind)
        return Entries(self.info, list(data), [copy(v) for v in values] if copy else values, [], full=True)

    def some(self, keys: set[Any]) -> Entries:
        """The entries of some keys, and which of those keys have none."""
        data, copy = self.data, _COPIES.get(self.info.kind)
        there = [k for k in keys if k in data]
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


class _HeapStates(KeyedStates):
    """Hands out handles on tables: per key, or per key and window."""

    def __init__(self, tables: HeapTables, cell: list[Any], name_prefix: str = "", kind_prefix: str = "") -> None:
        self._heap = tables
        self._cell = cell
        self._name_prefix = name_prefix
        self._kind_prefix = kind_prefix
        self._handles: dict[str, Any] = {}

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._handle(descriptor, "value", lambda t: HeapValueState(self._cell, t, descriptor.default_value))

    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._handle(descriptor, "list", lambda t: HeapListState(self._cell, t))

    def map_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._handle(descriptor, "map", lambda t: HeapMapState(self._cell, t))

    def reducing_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        reduce = descriptor.get_reduce_function()
        call = reduce.reduce if isinstance(reduce, ReduceFunction) else reduce
        return self._handle(descriptor, "reducing", lambda t: HeapReducingState(self._cell, t, call))

    def aggregating_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        function = descriptor.get_agg_function()
        return self._handle(descriptor, "aggregating", lambda t: HeapAggregatingState(self._cell, t, function))

    def folding_state(self, descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]:
        fold = descriptor.get_fold_function()
        call = fold.fold if isinstance(fold, FoldFunction) else fold
        initial = descriptor.initial_value
        return self._handle(descriptor, "folding", lambda t: HeapFoldingState(self._cell, t, call, initial))

    def _handle(self, descriptor: StateDescriptor, kind: str, make: Callable[[Table], H]) -> H:
        info = info_of(descriptor, self._kind_prefix + kind)
        table = self._heap.table(replace(info, name=self._name_prefix + info.name))
        handle: H | None = self._handles.get(descriptor.name)
        if handle is None:
            handle = self._handles[descriptor.name] = make(table)
        return handle


class HeapTables:
    """The tables of one operator, by name."""

    def __init__(self, *, tracked: bool) -> None:
        self.tracked = tracked
        self.by_name: dict[str, Table] = {}
        self.restored: dict[str, StateInfo] = {}
        self._declared: dict[str, StateInfo] = {}

    def table(self, info: StateInfo) -> Table:
        """The table of a state, made on first use; a state of another kind under the same name is an error."""
        table = self.by_name.get(info.name)
        if table is None:
            table = self.by_name[info.name] = Table(info, tracked=self.tracked)
        before = self._declared.setdefault(info.name, info)
        if before != info:
            raise StateError(
                f"state {info.name!r} is declared twice: as {before.summary} and as {info.summary}; "
                f"give the second one another name"
            )
        check_restorable(self.restored.get(info.name), info)
        table.info = info
        return table


class HeapStateBackend(_HeapStates, KeyedStateBackend):
    """Keyed state of one operator in one subtask, in memory."""

    def __init__(self, *, tracked: bool, incremental: bool = True) -> None:
        KeyedStateBackend.__init__(self)
        _HeapStates.__init__(self, HeapTables(tracked=tracked), self.cell)
        self._log = ChangeLog(incremental=incremental)

    @property
    def tracked(self) -> bool:
        """Whether somebody will ask what changed: whether there are checkpoints."""
        return self._heap.tracked

    def in_windows(self, prefix: str) -> KeyedStates:
        return _HeapStates(self._heap, self.window_cell, prefix, WINDOWED)

    def adopt(self, table: Table) -> None:
        """Keep a table of the operator's own making with the others; it takes over what was restored for it."""
        restored = self._heap.by_name.get(table.info.name)
        check_restorable(self._heap.restored.get(table.info.name), table.info)
        self._heap.by_name[table.info.name] = table
        if restored is not None:
            table.load(restored.data)

    def keys(self, state_name: str) -> Iterator[Any]:
        table = self._heap.by_name.get(state_name)
        return iter(()) if table is None else iter([user_key(k) for k in table.data])

    def drop_all(self) -> None:
        for table in self._heap.by_name.values():
            table.drop()

    def snapshot(self, checkpoint_id: int) -> CapturedState:
        return self._log.capture(checkpoint_id, self._heap.by_name)

    def snapshot_completed(self, checkpoint_id: int) -> None:
        self._log.completed(checkpoint_id)

    def restore(self, restored: OperatorRestore, store: FileStore, key_groups: tuple[int, int]) -> None:
        self._heap.restored = {info.name: info for info in restored.states}
        for info, entries in read_entries(restored, store, key_groups):
            table = self._heap.by_name.get(info.name)
            if table is None:
                table = self._heap.by_name[info.name] = Table(info, tracked=self._heap.tracked)
            table.load(entries)

    def infos(self) -> tuple[StateInfo, ...]:
        return tuple(t.info for t in self._heap.by_name.values())

    def close(self) -> None:
        self._heap.by_name.clear()
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

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Make the entries of other windows part of the target's; for states that can be merged."""
        raise StateError(f"{type(self).__name__} cannot be merged: use list, reducing or aggregating state")

    def _mark_all(self, target: Any, sources: list[Any]) -> None:
        self._mark(target)
        for address in sources:
            self._mark(address)

    def _merge_values(self, target: Any, sources: list[Any], merge: Callable[[Any, Any], Any]) -> None:
        kept = [self._data.pop(address) for address in (target, *sources) if address in self._data]
        if kept:
            merged = kept[0]
            for other in kept[1:]:
                merged = stored(merge(loaded(merged), loaded(other)))
            self._data[target] = merged
        self._mark_all(target, sources)


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

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Append what other windows hold to what the target holds."""
        merged = [e for address in (target, *sources) for e in self._data.pop(address, ())]
        if merged:
            self._data[target] = merged
        self._mark_all(target, sources)


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
        entries = dict(dict_value or ())  # Flink: an iterable of pairs will do as well
        if entries:
            current = self._cell[0]
            self._data.setdefault(current, {}).update({own(k): stored(v) for k, v in entries.items()})
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
        result = value if kept is None else self._reduce(loaded(kept), value)
        if result is None:
            raise StateError("a reducing state cannot hold None, which its function returned; return a value, or clear()")
        self._data[key] = stored(result)
        self._mark(key)

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Reduce what other windows hold into what the target holds."""
        self._merge_values(target, sources, self._reduce)


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

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Merge the accumulators of other windows into the target's."""
        self._merge_values(target, sources, self._function.merge)


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
