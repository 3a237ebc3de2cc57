"""State handles on tables with a time to live.

Each handle of `table_handles.py` has one here. The choice is made when a handle is created, so a state that does not
expire pays nothing.

An entry of a state with a time to live is kept with its stamp, the time of its last access: `(stamp_ms, value)`. A list
has a stamp per element, a map has one per entry. An entry has expired when its stamp plus the time to live is now or in
the past. Checkpoints contain only stamps: the time to live, what renews a stamp and the cleanup may change from run to
run, and the new rules apply to old stamps too.

A read removes an expired value that it meets, and returns it one last time if the configuration makes expired values
visible. Every call of a handle is an access: it first lets the background cleanup check a few entries
(`heap/expiry.py`; RocksDB is cleaned up by `rocksdb/sweep.py`).

    ttl 10 ms   t=0 add(a)   t=6 add(b)   t=10 get() -> [b]   t=15 get() -> [b]   t=16 get() -> []
    if reads renew stamps, the read at 15 keeps b until 25
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ReducingStateDescriptor,
)
from ekorn.functions.state.state_handles import AggregatingState, FoldingState, ReducingState, ValueState
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.table_handles import (
    TableHandle,
    TableListState,
    TableMapState,
    TableOfValues,
    list_elements,
    none_from_reduce,
    none_in_list,
)
from ekorn.types.by_value import own


class Expiry:
    """The time to live of a state, as its handle needs it."""

    __slots__ = ("access", "restamps", "shows_expired", "ttl_ms")

    def __init__(self, config: StateTtlConfig, access: Callable[[], int]) -> None:
        self.access = access  # called at every access: lets the background cleanup run and returns the time
        self.ttl_ms = config.get_ttl().to_milliseconds()
        self.restamps = config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite
        visibility = config.get_state_visibility()
        self.shows_expired = visibility is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp


class ExpiringHandle(TableHandle):
    """The base of all handles on states that expire."""

    __slots__ = ("_access", "_restamps", "_shows_expired", "_ttl_ms")

    def __init__(self, cell: list[Any], table: TableOfValues, descriptor: Any, expiry: Expiry) -> None:
        super().__init__(cell, table, descriptor)
        self._access = expiry.access
        self._ttl_ms = expiry.ttl_ms
        self._restamps = expiry.restamps
        self._shows_expired = expiry.shows_expired

    def clear(self) -> None:
        self._access()
        super().clear()


class _OneStamp(ExpiringHandle):
    """The base of handles on entries with one stamp: `(stamp_ms, value)`."""

    __slots__ = ()

    def _read(self) -> Any:  # hot
        """Return the value or None; remove it if it has expired, renew its stamp if reads do."""
        now_ms = self._access()
        key = self._cell[0]
        kept = self._data.get(key)
        if kept is None:
            return None
        if kept[0] + self._ttl_ms <= now_ms:
            del self._data[key]
            self._mark(key)
            return self._loaded(kept[1]) if self._shows_expired else None
        if self._restamps and kept[0] != now_ms:
            self._data[key] = (now_ms, kept[1])
            self._mark(key)
        value = kept[1]
        return self._loaded(value) if type(value) is bytearray else value

    def _so_far(self, key: Any, now_ms: int) -> Any:
        """Return the value that a new one is added to, or None. An expired value counts if it is visible."""
        kept = self._data.get(key)
        if kept is None or (not self._shows_expired and kept[0] + self._ttl_ms <= now_ms):
            return None
        return self._loaded(kept[1])

    def _write(self, key: Any, now_ms: int, value: Any) -> None:
        if value is None:  # the function returned no accumulator
            self._remove(key)
        else:
            self._data[key] = (now_ms, value if type(value) in self._as_is else self._stored(value))
        self._mark(key)

    def _merge_stamped(self, target: Any, sources: list[Any], merge: Callable[[Any, Any], Any]) -> None:
        """Merge the values that have not expired. A single value keeps its stamp; a merged value gets a new one."""
        now_ms = self._access()
        kept = [self._data.pop(address) for address in (target, *sources) if address in self._data]
        if len(kept) == 1:
            self._data[target] = kept[0]
        elif kept:
            counted = [v for stamp_ms, v in kept if self._shows_expired or stamp_ms + self._ttl_ms > now_ms]
            if counted:
                merged = counted[0]
                for other in counted[1:]:
                    merged = self._stored(merge(self._loaded(merged), self._loaded(other)))
                self._data[target] = (now_ms, merged)
        self._mark_all(target, sources)


class TtlValueState(_OneStamp, ValueState[Any]):
    """Value state. Flink: the default value of the descriptor is not used for an expired value."""

    __slots__ = ()

    def value(self) -> Any:
        return self._read()

    def update(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        now_ms = self._access()
        self._write(self._cell[0], now_ms, value)


class TtlReducingState(_OneStamp, ReducingState[Any]):
    __slots__ = ("_reduce",)

    def __init__(
        self, cell: list[Any], table: TableOfValues, descriptor: ReducingStateDescriptor, expiry: Expiry
    ) -> None:
        super().__init__(cell, table, descriptor, expiry)
        self._reduce = descriptor.get_reduce_function().reduce

    def get(self) -> Any:
        return self._read()

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        now_ms = self._access()
        key = self._cell[0]
        so_far = self._so_far(key, now_ms)
        result = value if so_far is None else self._reduce(so_far, value)
        if result is None:
            raise none_from_reduce()
        self._write(key, now_ms, result)

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Reduce the values of other windows into the target's."""
        self._merge_stamped(target, sources, self._reduce)


class TtlAggregatingState(_OneStamp, AggregatingState[Any, Any]):
    __slots__ = ("_function",)

    def __init__(
        self, cell: list[Any], table: TableOfValues, descriptor: AggregatingStateDescriptor, expiry: Expiry
    ) -> None:
        super().__init__(cell, table, descriptor, expiry)
        self._function = descriptor.get_agg_function()

    def get(self) -> Any:
        accumulator = self._read()
        return None if accumulator is None else self._function.get_result(accumulator)

    def add(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        now_ms = self._access()
        key = self._cell[0]
        accumulator = self._so_far(key, now_ms)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        self._write(key, now_ms, self._function.add(value, accumulator))

    def merge(self, target: Any, sources: list[Any]) -> None:
        """Merge the accumulators of other windows into the target's."""
        self._merge_stamped(target, sources, self._function.merge)


class TtlFoldingState(_OneStamp, FoldingState[Any, Any]):
    __slots__ = ("_fold", "_initial")

    def __init__(
        self, cell: list[Any], table: TableOfValues, descriptor: FoldingStateDescriptor, expiry: Expiry
    ) -> None:
        super().__init__(cell, table, descriptor, expiry)
        self._fold = descriptor.get_fold_function().fold
        self._initial = descriptor.initial_value

    def get(self) -> Any:
        return self._read()

    def add(self, value: Any) -> None:
        now_ms = self._access()
        key = self._cell[0]
        so_far = self._so_far(key, now_ms)
        self._write(key, now_ms, self._fold(own(self._initial) if so_far is None else so_far, value))


class TtlListState(ExpiringHandle, TableListState):
    """List state with a stamp per element: `[(stamp_ms, element), ...]`. Merging windows keeps the stamps."""

    __slots__ = ()

    def get(self) -> Iterator[Any]:
        now_ms = self._access()
        key = self._cell[0]
        kept = self._data.get(key)
        if kept is None:
            return iter(())
        dead_ms = now_ms - self._ttl_ms
        alive = [element for element in kept if element[0] > dead_ms]
        # Flink: expired elements are removed if no element is alive or the list is rewritten anyway. Beside live
        # elements they are only skipped, or shown, and wait for the cleanup. Flink does so during the iteration. Here
        # the read ends when `get` returns, so what the iterator yields does not depend on when it is advanced.
        if not alive:
            del self._data[key]
            self._mark(key)
        elif self._restamps:
            self._data[key] = [(now_ms, value) for _, value in alive]
            self._mark(key)
        return iter([self._loaded(value) for _, value in (kept if self._shows_expired else alive)])

    def add(self, value: Any) -> None:
        if value is None:
            raise none_in_list()
        element = self._stored(value)
        now_ms = self._access()
        key = self._cell[0]
        kept = self._data.get(key)
        if kept is None:
            kept = self._data[key] = []
        kept.append((now_ms, element))
        self._mark(key)

    def add_all(self, values: Iterable[Any]) -> None:
        elements = list_elements(values, self._stored)
        now_ms = self._access()
        if elements:
            key = self._cell[0]
            self._data.setdefault(key, []).extend([(now_ms, element) for element in elements])
            self._mark(key)

    def update(self, values: Iterable[Any]) -> None:
        elements = list_elements(values, self._stored)
        if not elements:
            self.clear()
            return
        now_ms = self._access()
        key = self._cell[0]
        self._data[key] = [(now_ms, element) for element in elements]
        self._mark(key)


class TtlMapState(ExpiringHandle, TableMapState):
    """Map state with a stamp per entry: `{key: (stamp_ms, value), ...}`."""

    __slots__ = ()

    def get(self, key: Any) -> Any:
        kept = self._read(key)
        return None if kept is None else self._loaded(kept[1])

    def contains(self, key: Any) -> bool:
        return self._read(key) is not None

    def put(self, key: Any, value: Any) -> None:
        kept_key, kept = self._kept_key(key), self._stored(value)
        now_ms = self._access()
        current = self._cell[0]
        entries = self._data.get(current)
        if entries is None:
            entries = self._data[current] = {}
        entries[kept_key] = (now_ms, kept)
        self._mark(current)

    def put_all(self, dict_value: dict[Any, Any]) -> None:
        entries = dict(dict_value or ())
        now_ms = self._access()
        if entries:
            current = self._cell[0]
            stamped = {self._kept_key(key): (now_ms, self._stored(value)) for key, value in entries.items()}
            self._data.setdefault(current, {}).update(stamped)
            self._mark(current)

    def remove(self, key: Any) -> None:
        self._access()
        super().remove(key)

    def items(self) -> Iterable[tuple[Any, Any]]:
        return iter([(self._key_of(key), self._loaded(kept[1])) for key, kept in self._read_all()])

    def keys(self) -> Iterable[Any]:
        return iter([self._key_of(key) for key, _ in self._read_all()])

    def values(self) -> Iterable[Any]:
        return iter([self._loaded(kept[1]) for _, kept in self._read_all()])

    def is_empty(self) -> bool:
        # Flink: expired entries count as entries.
        self._access()
        return super().is_empty()

    def _read(self, key: Any) -> tuple[int, Any] | None:
        """Return an entry with its stamp, or None; remove it if it has expired, renew its stamp if reads do."""
        now_ms = self._access()
        current = self._cell[0]
        entries: dict[Any, tuple[int, Any]] = self._data.get(current, {})
        kept_key = self._find(key)
        kept = entries.get(kept_key)
        if kept is None:
            return None
        if kept[0] + self._ttl_ms <= now_ms:
            super().remove(key)
            return kept if self._shows_expired else None
        if self._restamps and kept[0] != now_ms:
            entries[kept_key] = (now_ms, kept[1])
            self._mark(current)
        return kept

    def _read_all(self) -> list[tuple[Any, tuple[int, Any]]]:
        """Return the entries to show, in order. As with lists, the read ends before the caller sees the first entry."""
        now_ms = self._access()
        current = self._cell[0]
        entries = self._data.get(current)
        if entries is None:
            return []
        dead_ms = now_ms - self._ttl_ms
        alive = {key: kept for key, kept in entries.items() if kept[0] > dead_ms}
        shown = list((entries if self._shows_expired else alive).items())
        if self._restamps or len(alive) < len(entries):
            if not alive:
                del self._data[current]
            elif self._restamps:
                self._data[current] = {key: (now_ms, kept[1]) for key, kept in alive.items()}
            else:
                self._data[current] = alive
            self._mark(current)
        return shown
