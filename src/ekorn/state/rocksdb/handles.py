"""The handles on list and map state in RocksDB, with and without a time to live, and a faster one on value state.

The other kinds of state keep one value per key and use the handles of `state/table_handles.py`, over a dictionary that
reads through to RocksDB (`value_tables.py`). Entries expire as in `state/ttl_handles.py`. `rocks_kind` is RocksDB's
column of the table of kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ekorn.functions.state.state_descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.functions.state.state_handles import ListState, MapState
from ekorn.state.entry_shapes import ONE_VALUE
from ekorn.state.kinds import Handles, StateKind
from ekorn.state.rocksdb.list_tables import ListTable
from ekorn.state.rocksdb.map_tables import GONE, KnownMap, MapTable
from ekorn.state.rocksdb.tables import RocksTable
from ekorn.state.rocksdb.value_tables import ValueTable
from ekorn.state.rocksdb.value_weights import LARGE_BYTES
from ekorn.state.table_handles import TableHandle, TableValueState, list_elements, none_in_list
from ekorn.state.ttl_handles import Expiry, TtlValueState
from ekorn.types.by_value import own


class RocksValueState(TableValueState):
    """Value state. It reads the dictionary by index, which calls RocksDB only for a missing key."""

    __slots__ = ("_limit", "_make_room", "_sized")

    def __init__(self, cell: list[Any], table: ValueTable, descriptor: ValueStateDescriptor) -> None:
        super().__init__(cell, table, descriptor)
        self._sized = table.sized
        self._limit = table.limit
        self._make_room = table.make_room

    def value(self) -> Any:  # hot
        kept = self._data[self._cell[0]]
        if kept is None:
            return None if self._default is None else own(self._default)
        return self._loaded(kept) if type(kept) is bytearray else kept

    def update(self, value: Any) -> None:  # hot
        key = self._cell[0]
        if value is None:
            self._data.pop(key)
            return
        data = self._data
        if len(data) >= self._limit[0]:
            self._make_room()
        cls = type(value)
        if cls in self._as_is or (cls in self._sized and len(value) <= LARGE_BYTES):
            data[key] = value
        else:
            data[key] = self._stored(value)
        self._mark(key)


class RocksTtlValueState(TtlValueState):
    __slots__ = ("_limit", "_make_room")

    def __init__(self, cell: list[Any], table: ValueTable, descriptor: ValueStateDescriptor, expiry: Expiry) -> None:
        super().__init__(cell, table, descriptor, expiry)
        self._limit = table.limit
        self._make_room = table.make_room

    def _write(self, key: Any, now_ms: int, value: Any) -> None:
        if len(self._data) >= self._limit[0]:
            self._make_room()
        super()._write(key, now_ms, value)


class RocksListState(TableHandle, ListState[Any]):
    __slots__ = ("_table",)

    def __init__(self, cell: list[Any], table: ListTable, descriptor: ListStateDescriptor) -> None:
        super().__init__(cell, table, descriptor)
        self._table = table

    def get(self) -> Iterator[Any]:
        key = self._cell[0]
        return iter([self._loaded(e) for e in self._table.elements(key, self._table.of(key))])

    def __iter__(self) -> Iterator[Any]:
        return self.get()

    def add(self, value: Any) -> None:
        if value is None:
            raise none_in_list()
        self._append([self._stored(value)])

    def add_all(self, values: Iterable[Any]) -> None:
        self._append(list_elements(values, self._stored))

    def update(self, values: Iterable[Any]) -> None:
        self._replace(list_elements(values, self._stored))

    def clear(self) -> None:
        self._replace([])

    def _append(self, elements: list[Any]) -> None:
        if elements:
            key = self._cell[0]
            self._table.of(key, len(elements)).tail += elements
            self._table.mark(key)

    def _replace(self, elements: list[Any]) -> None:
        key = self._cell[0]
        self._table.replace(key, self._table.of(key, len(elements)), elements)
        self._table.mark(key)

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Append the elements of other windows to those of the target."""
        table = self._table
        for source in sources:
            known = table.of(source)
            elements = table.elements(source, known)
            table.replace(source, known, [])
            table.mark(source)
            if elements:
                table.of(target, len(elements)).tail += elements
                table.mark(target)


class RocksTtlListState(RocksListState):
    """List state with a stamp per element."""

    __slots__ = ("_expiry",)

    def __init__(self, cell: list[Any], table: ListTable, descriptor: ListStateDescriptor, expiry: Expiry) -> None:
        super().__init__(cell, table, descriptor)
        self._expiry = expiry

    def get(self) -> Iterator[Any]:
        expiry, key, table = self._expiry, self._cell[0], self._table
        now_ms = expiry.access()
        known = table.of(key)
        kept = table.elements(key, known)
        dead_ms = now_ms - expiry.ttl_ms
        alive = [element for element in kept if element[0] > dead_ms]
        if kept and not alive:  # Flink: beside live elements, expired elements wait for the cleanup
            self._replace([])
        elif alive and expiry.restamps:
            self._replace([(now_ms, value) for _, value in alive])
        return iter([self._loaded(value) for _, value in (kept if expiry.shows_expired else alive)])

    def add(self, value: Any) -> None:
        if value is None:
            raise none_in_list()
        self._append([(self._expiry.access(), self._stored(value))])

    def add_all(self, values: Iterable[Any]) -> None:
        elements = list_elements(values, self._stored)
        now_ms = self._expiry.access()
        self._append([(now_ms, element) for element in elements])

    def update(self, values: Iterable[Any]) -> None:
        elements = list_elements(values, self._stored)
        now_ms = self._expiry.access()
        self._replace([(now_ms, element) for element in elements])


class RocksMapState(TableHandle, MapState[Any, Any]):
    __slots__ = ("_table",)

    def __init__(self, cell: list[Any], table: MapTable, descriptor: MapStateDescriptor) -> None:
        super().__init__(cell, table, descriptor)
        assert table.declared is not None and table.declared.map_key is not None
        self._table = table
        self._find = table.declared.map_key.lookup
        self._kept_key = table.declared.map_key.stored
        self._key_of = table.declared.map_key.loaded

    def get(self, key: Any) -> Any:
        kept = self._look(self._find(key))
        return None if kept is GONE else self._loaded(kept)

    def contains(self, key: Any) -> bool:
        return self._look(self._find(key)) is not GONE

    def put(self, key: Any, value: Any) -> None:
        self._put({self._kept_key(key): self._stored(value)})

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        self._put({self._kept_key(k): self._stored(v) for k, v in dict(dict_value or ()).items()})

    def remove(self, key: Any) -> None:
        self._remove([self._find(key)])

    def clear(self) -> None:
        current = self._cell[0]
        self._table.wipe(self._table.of(current))
        self._mark(current)

    def items(self) -> Iterable[tuple[Any, Any]]:
        return ((self._key_of(key), self._loaded(kept)) for key, kept in self._all())

    def keys(self) -> Iterable[Any]:
        return (self._key_of(key) for key, _ in self._all())

    def values(self) -> Iterable[Any]:
        return (self._loaded(kept) for _, kept in self._all())

    def is_empty(self) -> bool:
        current = self._cell[0]
        return self._table.is_empty(current, self._table.of(current))

    def _look(self, kept_key: Any) -> Any:
        current = self._cell[0]
        return self._table.find(current, self._table.of(current), kept_key)

    def _put(self, entries: dict[Any, Any]) -> None:
        if entries:
            current = self._cell[0]
            known: KnownMap = self._table.of(current, len(entries))
            known.entries.update(entries)
            known.changed.update(entries)
            self._mark(current)

    def _remove(self, kept_keys: list[Any]) -> None:
        current = self._cell[0]
        known: KnownMap = self._table.of(current, len(kept_keys))
        for kept_key in kept_keys:
            if known.complete and kept_key not in known.entries:
                continue
            known.entries[kept_key] = GONE
            known.changed.add(kept_key)
            self._mark(current)

    def _all(self) -> Iterator[tuple[Any, Any]]:
        current = self._cell[0]
        return self._table.items(current, self._table.of(current))


class RocksTtlMapState(RocksMapState):
    """Map state with a stamp per entry."""

    __slots__ = ("_expiry",)

    def __init__(self, cell: list[Any], table: MapTable, descriptor: MapStateDescriptor, expiry: Expiry) -> None:
        super().__init__(cell, table, descriptor)
        self._expiry = expiry

    def get(self, key: Any) -> Any:
        kept = self._read(self._find(key))
        return None if kept is GONE else self._loaded(kept[1])

    def contains(self, key: Any) -> bool:
        return self._read(self._find(key)) is not GONE

    def put(self, key: Any, value: Any) -> None:
        self._put({self._kept_key(key): (self._expiry.access(), self._stored(value))})

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        entries = dict(dict_value or ())
        now_ms = self._expiry.access()
        self._put({self._kept_key(k): (now_ms, self._stored(v)) for k, v in entries.items()})

    def items(self) -> Iterable[tuple[Any, Any]]:
        return iter([(self._key_of(key), self._loaded(kept[1])) for key, kept in self._read_all()])

    def keys(self) -> Iterable[Any]:
        return iter([self._key_of(key) for key, _ in self._read_all()])

    def values(self) -> Iterable[Any]:
        return iter([self._loaded(kept[1]) for _, kept in self._read_all()])

    def _read(self, kept_key: Any) -> Any:
        """Return an entry with its stamp, or GONE; remove it if it has expired, renew it if reads do."""
        expiry = self._expiry
        now_ms = expiry.access()
        kept = self._look(kept_key)
        if kept is GONE:
            return GONE
        if kept[0] + expiry.ttl_ms <= now_ms:
            self._remove([kept_key])
            return kept if expiry.shows_expired else GONE
        if expiry.restamps and kept[0] != now_ms:
            self._put({own(kept_key): (now_ms, kept[1])})
        return kept

    def _read_all(self) -> list[tuple[Any, tuple[int, Any]]]:
        """Return the entries to show. The read ends before the caller sees the first entry."""
        expiry = self._expiry
        now_ms = expiry.access()
        found = list(self._all())
        dead_ms = now_ms - expiry.ttl_ms
        alive = [(key, kept) for key, kept in found if kept[0] > dead_ms]
        if expiry.restamps:
            self._put({key: (now_ms, kept[1]) for key, kept in alive})
        if len(alive) < len(found):
            self._remove([key for key, kept in found if kept[0] <= dead_ms])
        return found if expiry.shows_expired else alive


class RocksKind(NamedTuple):
    """How RocksDB keeps a kind of state."""

    table: type[RocksTable]
    handles: Handles


_OWN = {
    "value": RocksKind(ValueTable, Handles(RocksValueState, RocksTtlValueState)),
    "list": RocksKind(ListTable, Handles(RocksListState, RocksTtlListState)),
    "map": RocksKind(MapTable, Handles(RocksMapState, RocksTtlMapState)),
}


def rocks_kind(kind: StateKind) -> RocksKind:
    """Return how RocksDB keeps a kind of state. A kind that keeps one value needs nothing of its own."""
    assert kind.name in _OWN or kind.shape is ONE_VALUE, f"RocksDB has no table for {kind.name} state"
    return _OWN.get(kind.name) or RocksKind(ValueTable, kind.handles)
