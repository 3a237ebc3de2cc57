"""The tables of the RocksDB backend: entries in use are in a dictionary, all others in RocksDB.

A table looks like a heap table: `data` is a dictionary by key, and `mark` notes a key that was written. An entry that
is not in the dictionary is fetched when it is asked for. Changed entries are flushed to RocksDB when a snapshot is
taken. When the dictionary has grown too large, it is flushed and evicted. So most records cost what they cost on the
heap, memory is bounded, and RocksDB gets one write per key and flush instead of one per record.

    kind                                      module             in the dictionary   in RocksDB
    value, reducing, aggregating, folding     value_tables.py    the value           one entry
    list                                      list_tables.py     `KnownList`         a piece per flush, in order
    map                                       map_tables.py      `KnownMap`          an entry per key of the map
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet

from ekorn.keygroups import KeyGroupRange, state_key
from ekorn.state.declared import Declaration
from ekorn.state.rocksdb.key_bytes import PREFIX, address_of, read_part, window_bytes
from ekorn.state.rocksdb.store import RocksStore, WriteBatch
from ekorn.state.rocksdb.value_bytes import split_original
from ekorn.state.snapshots import WINDOWED, StateInfo

MISSING: Any = object()
BEHIND_KEY = b"\xff" * 9  # after the address of a key: behind all pieces of its list and all entries of its map
_ENTRY_BYTES = 250  # the memory of an entry in use without its value
_FIRST_ENTRIES = 100
_REMEMBERED_ENTRIES = 100_000


class Shared:
    """Shared by the tables of one instance: RocksDB, memory for entries in use, and numbers for pieces of lists."""

    in_slot: ClassVar[WeakSet[Shared]] = WeakSet()  # all instances of this process, which share the memory

    def __init__(self, store: RocksStore, max_parallelism: int, cache_bytes: int = 0) -> None:
        self.store = store
        self.max_parallelism = max_parallelism
        self.next_piece = 1  # 0 is the first piece of every list
        self._cache_bytes = cache_bytes
        self._tables = 0

    def enter(self) -> None:
        """Count a new table that takes its part of the memory. `leave` is called once for all tables."""
        self._tables += 1
        Shared.in_slot.add(self)

    def exit(self) -> None:
        """Count a table that is given up."""
        self._tables -= 1

    def leave(self) -> None:
        """Give back the memory of all tables."""
        Shared.in_slot.discard(self)

    def room(self, value_bytes: int) -> int:
        """Return how many entries with values of this size a table may keep; all tables get equal parts."""
        return max(self.part_bytes() // (_ENTRY_BYTES + 3 * value_bytes), 1)

    def part_bytes(self) -> int:
        """Return the memory of one table."""
        return self.part_of(self._cache_bytes)

    @classmethod
    def part_of(cls, cache_bytes: int) -> int:
        """Return the memory of one table out of the memory of all tables in the slot."""
        return cache_bytes // (sum(instance._tables for instance in cls.in_slot) or 1)

    def take_piece(self) -> int:
        """Return a number larger than all before."""
        return self.take_pieces(1)

    def take_pieces(self, count: int) -> int:
        """Return the first of several numbers larger than all before, in ascending order without gaps."""
        self.next_piece += count
        return self.next_piece - count


class Flushed(NamedTuple):
    """The number of values that a flush wrote, and their size."""

    values: int
    value_bytes: int


class RocksTable(ABC):
    """One named state of an operator."""

    def __init__(self, info: StateInfo, number: int, shared: Shared) -> None:
        self.info = info
        self.declared: Declaration | None = None  # None for a restored state that the job has not asked for yet
        self.number = number
        self._shared = shared
        self._store = shared.store
        self._max_parallelism = shared.max_parallelism
        # The most entries in the dictionary. It is in a list because handles read it often. Low until sizes are known.
        self.limit = [min(shared.room(0), _FIRST_ENTRIES)]
        self._seen = [0, 0]  # the number of values, and their size in bytes
        self.sized: frozenset[type] = frozenset()  # types of values that are kept as they are and may be large
        self._part_bytes = shared.part_bytes()
        self._large_bytes = 0  # an upper bound of the memory that large values in the dictionary take
        self._windowed = info.kind.startswith(WINDOWED)
        self._some_key: Any = None
        self.changed: set[Any] = set()
        self.mark: Callable[[Any], None] = self.changed.add
        self.data: dict[Any, Any] = {}

    def saved_as(self) -> StateInfo:
        """Return the description of the state for a checkpoint taken now."""
        if self.declared is None:
            return self.info
        key = self._some_key
        return self.declared.saved_as(key[0] if key is not None and self._windowed else key)

    # ----------------------------------------------------------------------------------------------------- addresses

    def address(self, key: Any) -> tuple[bytes, bool]:
        """Return the address at which the entries of a key begin, and whether the key can be read back from it."""
        if not self._windowed:
            return address_of(key, self._max_parallelism, self.number)
        key, window = key
        address, exact = address_of(key, self._max_parallelism, self.number)
        return address + window_bytes(window), exact

    def key_at(self, address: bytes, original: Any) -> tuple[Any, int]:
        """Return the key of an address in the form of tables, and the position at which the key ends."""
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
        """Write the changed entries."""
        if self.changed:
            self._some_key = next(iter(self.changed))
            self.saw(*self._flush(batch))
            self.changed.clear()

    @abstractmethod
    def _flush(self, batch: WriteBatch) -> Flushed:
        """Write the changed entries."""

    def saw(self, values: int, value_bytes: int) -> None:
        """Adjust the limit of the dictionary to the size of some values."""
        seen = self._seen
        if seen[0] > _REMEMBERED_ENTRIES:  # later values count for more
            seen[0], seen[1] = seen[0] // 2, seen[1] // 2
        seen[0] += values
        seen[1] += value_bytes
        self._part_bytes = self._shared.part_bytes()
        self._set_limit()

    def weigh(self, value_bytes: int) -> None:
        """Count large values that were read into the dictionary. Beyond the table's memory the next access makes room.

        Room is not made at once, because the caller may be working on an entry of the dictionary.
        """
        self._large_bytes += value_bytes
        if self._large_bytes > self._part_bytes:
            self.limit[0] = 0

    def weigh_new(self, value_bytes: int) -> None:
        """Count a large value that the program writes, and make room for it. It is not in the dictionary yet."""
        if self._large_bytes + value_bytes > self._part_bytes and self.data:
            self.make_room()
        self.weigh(value_bytes)

    def _set_limit(self) -> None:
        seen = self._seen
        if self._large_bytes > self._part_bytes:
            self.limit[0] = 0
        elif seen[0]:
            self.limit[0] = self._shared.room(seen[1] // seen[0])
        else:
            self.limit[0] = min(self._shared.room(0), _FIRST_ENTRIES)

    def forget(self) -> None:
        """Empty the dictionary. Changes have been written before, or are to be lost."""
        self.data.clear()
        self.changed.clear()
        self._large_bytes = 0
        self._set_limit()

    @abstractmethod
    def forget_one(self, address: bytes, value: bytes) -> None:
        """Evict the entry that was removed from RocksDB at an address, unless it has changed since."""

    def make_room(self) -> None:
        """Write the changed entries and empty the dictionary."""
        batch = self._store.batch()
        self.flush(batch)
        batch.done()
        self.forget()

    # -------------------------------------------------------------------------------------------------- whole entries

    def peek(self, key: Any) -> Any:
        """Return the value of a key in the form of a heap table, or None. Nothing enters the dictionary."""
        if dict.__contains__(self.data, key):
            return self._peek_known(key)
        begin = self.address(key)[0]
        return next((value for _, value in self.whole(self._store.scan(begin, begin + BEHIND_KEY))), None)

    @abstractmethod
    def _peek_known(self, key: Any) -> Any:
        """Return the value of a key in the dictionary."""

    @abstractmethod
    def put_whole(self, batch: WriteBatch, key: Any, value: Any) -> None:
        """Write the value of a key that has none yet, in the form of a heap table."""

    @abstractmethod
    def replace_whole(self, key: Any, value: Any) -> None:
        """Set the value of a key, in the form of a heap table; None removes it."""

    @abstractmethod
    def whole(self, pieces: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        """Yield keys and values in the form of a heap table, from RocksDB's entries in order of address."""

    def entries(self, key_groups: KeyGroupRange) -> Iterator[tuple[Any, Any]]:
        """Yield the keys and values that RocksDB has of a range of key groups, in the form of a heap table."""
        for start, end in self.ranges(key_groups):
            yield from self.whole(self._store.scan(start, end))

    def keys(self, key_groups: KeyGroupRange) -> Iterator[Any]:
        """Yield the keys that have an entry in RocksDB, of a range of key groups."""
        for start, end in self.ranges(key_groups):
            before = b""
            for address, value in self._store.scan(start, end):
                if before and address.startswith(before):
                    continue  # another piece of the same list, or another entry of the same map
                key, key_end = self._whose(address, value)
                before = address[:key_end]
                yield key

    def _whose(self, address: bytes, value: bytes) -> tuple[Any, int]:
        return self.key_at(address, split_original(value)[0])
