"""The tables of the RocksDB backend: what is in use stands in a dictionary, the rest in RocksDB.

A table looks like one of the heap: `data` is a dictionary by key, `mark` notes a key that was written. What is not in
the dictionary is fetched when it is asked for; what was written goes to RocksDB when a snapshot is taken or when the
dictionary has grown too large, and is then forgotten. So most records cost what they cost on the heap, memory is
bounded, and RocksDB sees one write per key and flush rather than one per record.

    kind                                      in the dictionary     in RocksDB
    value, reducing, aggregating, folding     the value             one entry
    list: rocksdb_lists.py                    `KnownList`           a piece per flush, in order
    map: rocksdb_maps.py                      `KnownMap`            an entry per key of the map
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet

from tamias.keygroups import KeyGroupRange, state_key
from tamias.state.declared import Declaration
from tamias.state.rocksdb.key_bytes import PREFIX, address_of, read_part, window_bytes
from tamias.state.rocksdb.known_addresses import KnownAddresses
from tamias.state.rocksdb.store import RocksStore, WriteBatch
from tamias.state.rocksdb.value_bytes import (
    decode,
    decode_stamped,
    encode,
    encode_all,
    encode_all_stamped,
    encode_stamped,
    split_original,
    with_original,
    without_original,
)
from tamias.state.snapshots import WINDOWED, StateInfo

MISSING: Any = object()
_NONE = type(None)
_ENTRY_BYTES = 250  # what an entry in use takes beside its value
_FIRST_ENTRIES = 100
_REMEMBERED = 100_000
LARGE_BYTES = 1000  # values that are worth a thought when they are read


class Shared:
    """What the tables of one instance share: RocksDB, memory for what is in use, and numbers for pieces of lists."""

    in_slot: ClassVar[WeakSet[Shared]] = WeakSet()  # all instances in this process, which share the memory

    def __init__(self, store: RocksStore, groups: int, cache_bytes: int = 0) -> None:
        self.store = store
        self.groups = groups  # the number of key groups
        self.next_piece = 1  # 0 is every list's first
        self._cache_bytes = cache_bytes
        self._tables = 0

    def enter(self) -> None:
        """A table has come that takes its part of the memory; `leave` is for all of them together."""
        self._tables += 1
        Shared.in_slot.add(self)

    def leave(self) -> None:
        """The instance is no longer used."""
        Shared.in_slot.discard(self)

    def room(self, value_bytes: int) -> int:
        """How many entries with values of this size one table may hold in its dictionary: an equal part for each."""
        tables = sum(instance._tables for instance in Shared.in_slot) or 1
        return max(self._cache_bytes // tables // (_ENTRY_BYTES + 3 * value_bytes), 1)

    def take_piece(self) -> int:
        """A number that is larger than those before it."""
        self.next_piece += 1
        return self.next_piece - 1


class Flushed(NamedTuple):
    """How many values a flush wrote, and their size."""

    values: int
    value_bytes: int


class RocksTable(ABC):
    """One named state of an operator."""

    def __init__(self, info: StateInfo, number: int, shared: Shared) -> None:
        self.info = info
        self.declared: Declaration | None = None  # None while nobody has asked for a restored state
        self.number = number
        self._shared = shared
        self._store = shared.store
        self._groups = shared.groups
        # Of entries in the dictionary; in a cell, for handles that look often. Low until their size is known.
        self.limit = [min(shared.room(0), _FIRST_ENTRIES)]
        self._seen = [0, 0]  # values, and their bytes
        self._windowed = info.kind.startswith(WINDOWED)
        self._some_key: Any = None
        self.changed: set[Any] = set()
        self.mark: Callable[[Any], None] = self.changed.add
        self.data: dict[Any, Any] = {}

    def saved_as(self) -> StateInfo:
        """What a checkpoint taken now says of it."""
        if self.declared is None:
            return self.info
        key = self._some_key
        return self.declared.saved_as(key[0] if key is not None and self._windowed else key)

    # ----------------------------------------------------------------------------------------------------- addresses

    def address(self, key: Any) -> tuple[bytes, bool]:
        """Where a key's entries begin, and whether that says all of the key."""
        if not self._windowed:
            return address_of(key, self._groups, self.number)
        key, window = key
        address, exact = address_of(key, self._groups, self.number)
        return address + window_bytes(window), exact

    def key_at(self, address: bytes, original: Any) -> tuple[Any, int]:
        """The key of an address, as tables hold it, and where the key ends in it."""
        key, end = read_part(address, PREFIX.size)
        if self._windowed:
            window, end = read_part(address, end)
            found: Any = (state_key(key), window)
        else:
            found = state_key(key)
        return (found if original is None else original), end

    def ranges(self, key_groups: KeyGroupRange) -> Iterator[tuple[bytes, bytes]]:
        """Yield, for each key group, the first address of this state's entries and the address behind the last."""
        for group in range(key_groups.first, key_groups.last + 1):
            yield PREFIX.pack(group, self.number), PREFIX.pack(group, self.number + 1)

    # ------------------------------------------------------------------------------------------------- the dictionary

    def flush(self, batch: WriteBatch) -> None:
        """Write what changed."""
        if self.changed:
            self._some_key = next(iter(self.changed))
            self.saw(*self._flush(batch))
            self.changed.clear()

    @abstractmethod
    def _flush(self, batch: WriteBatch) -> Flushed:
        """Write what changed."""

    def saw(self, values: int, value_bytes: int) -> None:
        """Learn from some values how many fit into the dictionary."""
        seen = self._seen
        if seen[0] > _REMEMBERED:  # later values count for more
            seen[0], seen[1] = seen[0] // 2, seen[1] // 2
        seen[0] += values
        seen[1] += value_bytes
        self.limit[0] = self._shared.room(seen[1] // max(seen[0], 1))

    def forget(self) -> None:
        """Forget what is in the dictionary; what changed has been written, or does not matter."""
        self.data.clear()
        self.changed.clear()

    @abstractmethod
    def forget_one(self, address: bytes, value: bytes) -> None:
        """Forget what RocksDB had at an address, and no longer has, unless it has changed since."""

    def make_room(self) -> None:
        """Write what changed and forget the rest."""
        batch = self._store.batch()
        self.flush(batch)
        batch.done()
        self.forget()

    # -------------------------------------------------------------------------------------------------- whole entries

    @abstractmethod
    def put_whole(self, batch: WriteBatch, key: Any, value: Any) -> None:
        """Write a key's value, given as a heap table holds it, where there was none before."""

    @abstractmethod
    def replace_whole(self, key: Any, value: Any) -> None:
        """Set a key's value, given as a heap table holds it, or None to remove it."""

    @abstractmethod
    def whole(self, pieces: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        """Keys and values, as a heap table holds them, from addresses and values of RocksDB in order."""

    def entries(self, key_groups: KeyGroupRange) -> Iterator[tuple[Any, Any]]:
        """Keys and values of some key groups, as RocksDB has them."""
        for start, end in self.ranges(key_groups):
            yield from self.whole(self._store.scan(start, end))

    def keys(self, key_groups: KeyGroupRange) -> Iterator[Any]:
        """The keys that have an entry, as RocksDB has them."""
        for start, end in self.ranges(key_groups):
            before = b""
            for address, value in self._store.scan(start, end):
                if before and address.startswith(before):
                    continue  # another piece, or another entry, of the same key
                key, key_end = self._whose(address, value)
                before = address[:key_end]
                yield key

    def _whose(self, address: bytes, value: bytes) -> tuple[Any, int]:
        return self.key_at(address, split_original(value)[0])


# --------------------------------------------------------------------------------------------------- one value per key


class ReadThrough(dict[Any, Any]):
    """A dictionary in front of RocksDB: it seems to hold every key. None stands for a key that has no value.

    Fetching a key may make room. So what removes a key notes it at once: the next fetch may write it.
    """

    __slots__ = ("_load", "_mark")

    def __init__(self, load: Callable[[Any], Any], mark: Callable[[Any], None]) -> None:
        super().__init__()
        self._load = load
        self._mark = mark

    def __missing__(self, key: Any) -> Any:
        return self._load(key)

    def get(self, key: Any, default: Any = None) -> Any:
        value = self[key]
        return default if value is None else value

    def __contains__(self, key: Any) -> bool:
        return self[key] is not None

    def pop(self, key: Any, default: Any = None) -> Any:
        value = self[key]
        self[key] = None
        self._mark(key)
        return default if value is None else value

    def __delitem__(self, key: Any) -> None:
        self[key] = None
        self._mark(key)


class ValueTable(RocksTable):
    """One value per key."""

    def __init__(self, info: StateInfo, number: int, shared: Shared) -> None:
        super().__init__(info, number, shared)
        self.data = ReadThrough(self._load, self.mark)
        self._encode = encode_stamped if info.ttl else encode
        self._decode = decode_stamped if info.ttl else decode
        self._encode_all = encode_all_stamped if info.ttl else encode_all
        self._fresh: set[Any] = set()  # keys that RocksDB is known not to hold
        self._addresses = KnownAddresses()  # of keys in the dictionary

    def _load(self, key: Any) -> Any:
        if len(self.data) >= self.limit[0]:
            self.make_room()
        raw = self._store.get(self.address(key)[0])
        if raw is None:
            self._fresh.add(key)
            value = None
        else:
            value = self._decode(without_original(raw))
            if len(raw) > LARGE_BYTES:
                self.saw(1, len(raw))
        self.data[key] = value
        return value

    def _flush(self, batch: WriteBatch) -> Flushed:  # hot
        self._addresses.limit(len(self.data), self.limit[0])
        size = 0
        keys, addresses = self._addresses.of(self.changed)
        values = list(map(self.data.__getitem__, keys))
        if _NONE in set(map(type, values)):
            for key, address, value in zip(keys, addresses, values, strict=True):
                if value is None:
                    self._remove(batch, key, address)
                else:
                    size += batch.put_all([(address, self._encode(value))])
        else:
            size = batch.put_all(zip(addresses, self._encode_all(values), strict=True))
        size += self._flush_others(batch)
        self._fresh -= self.changed
        return Flushed(len(self.changed), size)

    def _flush_others(self, batch: WriteBatch) -> int:
        """Write what changed of keys whose address is not at hand."""
        writes: list[tuple[bytes, bytes]] = []
        data, encode, kept = self.data, self._encode, dict.get
        for key in self._addresses.unknown(self.changed):
            value = kept(data, key, MISSING)
            if value is MISSING:
                continue  # noted again after it was written
            address, exact = self.address(key)
            if value is None:
                self._remove(batch, key, address)
            elif exact:
                writes.append((address, encode(value)))
                self._addresses.learn(key, address)
            else:
                writes.append((address, with_original(key, encode(value))))
        return batch.put_all(writes)

    def _remove(self, batch: WriteBatch, key: Any, address: bytes) -> None:
        if key not in self._fresh:
            batch.delete(address)
        dict.__delitem__(self.data, key)
        self._addresses.drop(key)

    def forget(self) -> None:
        super().forget()
        self._fresh.clear()
        self._addresses.forget()

    def forget_one(self, address: bytes, value: bytes) -> None:
        key = self._whose(address, value)[0]
        if dict.__contains__(self.data, key) and key not in self.changed:
            dict.__delitem__(self.data, key)
            self._addresses.drop(key)

    def put_whole(self, batch: WriteBatch, key: Any, value: Any) -> None:
        address, exact = self.address(key)
        raw = self._encode(value)
        batch.put(address, raw if exact else with_original(key, raw))

    def replace_whole(self, key: Any, value: Any) -> None:
        if len(self.data) >= self.limit[0]:
            self.make_room()
        self.data[key] = value
        self.mark(key)

    def whole(self, pieces: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        for address, value in pieces:
            original, raw = split_original(value)
            yield self.key_at(address, original)[0], self._decode(raw)
