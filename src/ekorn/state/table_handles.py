"""State handles on tables: each handle reads and writes the entry of the key that its cell holds.

A handle holds the dictionary of its table itself. The tables of both backends look alike to a handle (`TableOfValues`),
so kinds of state that keep one value per key use these handles with RocksDB as well. The handles of states that expire
are in `ttl_handles.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from ekorn.errors import StateError
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.functions.state.state_handles import (
    AggregatingState,
    FoldingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from ekorn.state.declared import Declaration
from ekorn.state.snapshots import WINDOWED
from ekorn.types.by_value import own


class TableOfValues(Protocol):
    """A table as a handle needs it: the entries by key, their declaration, and `mark` to note a write."""

    data: dict[Any, Any]
    mark: Callable[[Any], None]
    declared: Declaration | None


class TableHandle:
    """The base of all handles: the cell of the current key, the entries, the codec, and `mark` to note a change."""

    # The slots of map state are here too: only one base of a class may have slots, and `ttl_handles.py` has two bases.
    __slots__ = ("_as_is", "_cell", "_data", "_find", "_info", "_kept_key", "_key_of", "_loaded", "_mark", "_stored")

    def __init__(self, cell: list[Any], table: TableOfValues, descriptor: StateDescriptor) -> None:
        assert table.declared is not None, "a handle is created for a declared state"
        self._cell = cell
        self._data: dict[Any, Any] = table.data
        self._mark = table.mark
        self._info = table.declared.info
        self._as_is = table.declared.value.as_is
        self._stored = table.declared.value.stored
        self._loaded = table.declared.value.loaded

    def clear(self) -> None:
        """Remove the current key's entry."""
        key = self._cell[0]
        self._remove(key)
        self._mark(key)

    def _remove(self, key: Any) -> None:
        # Not `pop`: on an empty dictionary it does not hash the key, and so would not fail without a current key.
        if key in self._data:
            del self._data[key]

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Merge the entries of other windows into the target's, for kinds of state that can be merged."""
        kind, name = self._info.kind.removeprefix(WINDOWED), self._info.name.partition("/")[2]
        raise StateError(
            f"{kind} state {name!r} of two windows cannot be merged: use list, reducing or aggregating state"
        )

    def _keep(self, key: Any, accumulator: Any) -> None:
        """Set an accumulator; None removes it, and the next value starts with a new one."""
        if accumulator is None:
            self._remove(key)
        else:
            self._data[key] = self._stored(accumulator)
        self._mark(key)

    def _mark_all(self, target: Any, sources: list[Any]) -> None:
        self._mark(target)
        for address in sources:
            self._mark(address)

    def _merge_values(self, target: Any, sources: list[Any], merge: Callable[[Any, Any], Any]) -> None:
        kept = [self._data.pop(address) for address in (target, *sources) if address in self._data]
        if kept:
            merged = kept[0]
            for other in kept[1:]:
                merged = self._stored(merge(self._loaded(merged), self._loaded(other)))
            self._data[target] = merged
        self._mark_all(target, sources)


class TableValueState(TableHandle, ValueState[Any]):
    __slots__ = ("_default",)

    def __init__(self, cell: list[Any], table: TableOfValues, descriptor: ValueStateDescriptor) -> None:
        super().__init__(cell, table, descriptor)
        self._default = descriptor.default_value

    def value(self) -> Any:  # hot
        kept = self._data.get(self._cell[0])
        if kept is None:
            return None if self._default is None else own(self._default)
        return self._loaded(kept) if type(kept) is bytearray else kept

    def update(self, value: Any) -> None:  # hot
        key = self._cell[0]
        if value is None:
            self._remove(key)
        else:
            self._data[key] = value if type(value) in self._as_is else self._stored(value)
        self._mark(key)


class TableListState(TableHandle, ListState[Any]):
    __slots__ = ()

    def get(self) -> Iterator[Any]:
        return iter([self._loaded(e) for e in self._data.get(self._cell[0], ())])

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        if value is None:
            raise none_in_list()
        element = self._stored(value)  # converted before the entry is touched: a refused value leaves nothing behind
        key = self._cell[0]
        kept = self._data.get(key)
        if kept is None:
            kept = self._data[key] = []
        kept.append(element)
        self._mark(key)

    def add_all(self, values: Iterable[Any]) -> None:
        elements = list_elements(values, self._stored)
        if elements:
            key = self._cell[0]
            self._data.setdefault(key, []).extend(elements)
            self._mark(key)

    def update(self, values: Iterable[Any]) -> None:
        elements = list_elements(values, self._stored)
        key = self._cell[0]
        if elements:
            self._data[key] = elements
        else:
            self._remove(key)
        self._mark(key)

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Append the elements of other windows to those of the target."""
        merged = [e for address in (target, *sources) for e in self._data.pop(address, ())]
        if merged:
            self._data[target] = merged
        self._mark_all(target, sources)


def list_elements(values: Iterable[Any], stored: Callable[[Any], Any]) -> list[Any]:
    """Return the elements given to a list state in the form of tables."""
    if values is None:
        raise StateError("a list state takes a list of values, not None; use clear() to empty it")
    elements = [stored(v) for v in values]
    if None in elements:
        raise none_in_list()
    return elements


def none_in_list() -> StateError:
    """Return the error for None in a list state."""
    return StateError("a list state cannot hold None; leave out the element, or add a value that represents it")


class TableMapState(TableHandle, MapState[Any, Any]):
    __slots__ = ()

    def __init__(self, cell: list[Any], table: TableOfValues, descriptor: MapStateDescriptor) -> None:
        super().__init__(cell, table, descriptor)
        assert table.declared is not None and table.declared.map_key is not None
        self._find = table.declared.map_key.lookup
        self._kept_key = table.declared.map_key.stored
        self._key_of = table.declared.map_key.loaded

    def get(self, key: Any) -> Any:
        entries = self._data.get(self._cell[0])
        if entries is None:
            return None
        return self._loaded(entries.get(self._find(key)))

    def put(self, key: Any, value: Any) -> None:
        # Converted before the entry is touched: a refused entry leaves nothing behind.
        kept_key, kept = self._kept_key(key), self._stored(value)
        current = self._cell[0]
        entries = self._data.get(current)
        if entries is None:
            entries = self._data[current] = {}
        entries[kept_key] = kept
        self._mark(current)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        entries = dict(dict_value or ())  # Flink: an iterable of pairs is accepted too
        if entries:
            kept = {self._kept_key(k): self._stored(v) for k, v in entries.items()}
            current = self._cell[0]
            self._data.setdefault(current, {}).update(kept)
            self._mark(current)

    def remove(self, key: Any) -> None:
        current = self._cell[0]
        entries = self._data.get(current)
        kept_key = self._find(key)
        if entries is None or kept_key not in entries:
            return
        del entries[kept_key]
        if not entries:
            del self._data[current]
        self._mark(current)

    def contains(self, key: Any) -> bool:
        return self._find(key) in self._data.get(self._cell[0], ())

    def items(self) -> Iterable[tuple[Any, Any]]:
        return iter([(self._key_of(k), self._loaded(v)) for k, v in self._entries().items()])

    def keys(self) -> Iterable[Any]:
        return iter([self._key_of(k) for k in self._entries()])

    def values(self) -> Iterable[Any]:
        return iter([self._loaded(v) for v in self._entries().values()])

    def is_empty(self) -> bool:
        return not self._entries()

    def _entries(self) -> dict[Any, Any]:
        return self._data.get(self._cell[0]) or {}


class TableReducingState(TableHandle, ReducingState[Any]):
    __slots__ = ("_reduce",)

    def __init__(self, cell: list[Any], table: TableOfValues, descriptor: ReducingStateDescriptor) -> None:
        super().__init__(cell, table, descriptor)
        self._reduce = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        return self._loaded(self._data.get(self._cell[0]))

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        key = self._cell[0]
        kept = self._data.get(key)
        result = value if kept is None else self._reduce(self._loaded(kept), value)
        if result is None:
            raise none_from_reduce()
        self._data[key] = self._stored(result)
        self._mark(key)

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Reduce the values of other windows into the target's."""
        self._merge_values(target, sources, self._reduce)


def none_from_reduce() -> StateError:
    """Return the error for a reduce function that returned None."""
    return StateError("a reducing state cannot hold None, which its function returned; return a value, or clear()")


class TableAggregatingState(TableHandle, AggregatingState[Any, Any]):
    __slots__ = ("_function",)

    def __init__(self, cell: list[Any], table: TableOfValues, descriptor: AggregatingStateDescriptor) -> None:
        super().__init__(cell, table, descriptor)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        kept = self._data.get(self._cell[0])
        return None if kept is None else self._function.get_result(self._loaded(kept))

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        key = self._cell[0]
        kept = self._data.get(key)
        accumulator = self._function.create_accumulator() if kept is None else self._loaded(kept)
        self._keep(key, self._function.add(value, accumulator))

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Merge the accumulators of other windows into the target's."""
        self._merge_values(target, sources, self._function.merge)


class TableFoldingState(TableHandle, FoldingState[Any, Any]):
    __slots__ = ("_fold", "_initial")

    def __init__(self, cell: list[Any], table: TableOfValues, descriptor: FoldingStateDescriptor) -> None:
        super().__init__(cell, table, descriptor)
        self._fold = descriptor.get_fold_function().fold
        self._initial = descriptor.initial_value

    def get(self) -> Any:
        return self._loaded(self._data.get(self._cell[0]))

    def add(self, value: Any) -> None:
        key = self._cell[0]
        kept = self._data.get(key)
        self._keep(key, self._fold(own(self._initial) if kept is None else self._loaded(kept), value))
