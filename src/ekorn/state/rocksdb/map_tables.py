"""Map state in RocksDB: an entry of RocksDB for each entry of a map."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from ekorn.state.rocksdb.key_bytes import entry_bytes, read_part
from ekorn.state.rocksdb.store import WriteBatch
from ekorn.state.rocksdb.tables import MISSING, Flushed, RocksTable, Shared
from ekorn.state.rocksdb.value_bytes import (
    decode,
    decode_stamped,
    encode,
    encode_stamped,
    split_original,
    with_original,
    without_original,
)
from ekorn.state.rocksdb.value_weights import LARGE_BYTES, weight
from ekorn.state.snapshots import StateInfo

GONE: Any = type("Gone", (), {"__repr__": lambda self: "GONE"})()
"""The value of an entry that a map is known not to have."""

_EAGER = 256  # a map with fewer entries is kept in the dictionary once all were read


class KnownMap:
    """The part of one key's map that is in memory."""

    __slots__ = ("changed", "complete", "entries", "wiped")

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}  # GONE for an entry that the map does not have
        self.changed: set[Any] = set()  # the entries to be written to RocksDB
        self.complete = False  # the map has no other entries
        self.wiped = False  # the entries in RocksDB are to be removed


_Placed = tuple[bytes, Any, Any]  # of a map's entry: its address after the part of the key, its key, its value


def _in_order(known: KnownMap) -> list[_Placed]:
    """Return the entries in memory in the order in which RocksDB keeps them."""
    return sorted(((entry_bytes(entry)[0], entry, kept) for entry, kept in known.entries.items()), key=itemgetter(0))


def _merged(newer: list[_Placed], stored: Iterator[_Placed]) -> Iterator[tuple[Any, Any]]:
    """Yield the entries of a map; an entry in memory replaces the one in RocksDB."""
    last = None
    for place, entry, kept in merge(newer, stored, key=itemgetter(0)):  # of two with one address, the newer comes first
        if place != last and kept is not GONE:
            yield entry, kept
        last = place


def _weight_of(known: KnownMap) -> int:
    return sum(map(weight, known.entries.values()))


class _Maps(dict[Any, KnownMap]):
    __slots__ = ()

    def __missing__(self, key: Any) -> KnownMap:
        known = self[key] = KnownMap()
        return known


class MapTable(RocksTable):
    """A table with a map per key."""

    def __init__(self, info: StateInfo, number: int, shared: Shared) -> None:
        super().__init__(info, number, shared)
        self.data = _Maps()
        self._encode = encode_stamped if info.ttl else encode
        self._decode = decode_stamped if info.ttl else decode
        self._held = 0

    def of(self, key: Any, more: int = 1) -> KnownMap:
        """Return the part of a key's map that is in memory, after making room for `more` entries."""
        self._held += more
        if self._held > self.limit[0]:
            self._make_room_beside(key)
            self._held = more
        known: KnownMap = self.data[key]
        return known

    def _make_room_beside(self, key: Any) -> None:
        """Make room, but keep a small map in use: its order must not change from one call to the next."""
        known = self.data.get(key)
        self.make_room()
        if known is not None and len(known.entries) <= _EAGER:
            self.data[key] = known
            self.weigh(_weight_of(known))

    def find(self, key: Any, known: KnownMap, entry: Any) -> Any:
        """Return the value of an entry in the form of a heap table, or GONE."""
        kept = known.entries.get(entry, MISSING)
        if kept is not MISSING:
            return kept
        raw = None if known.complete else self._store.get(self.address(key)[0] + entry_bytes(entry)[0])
        kept = GONE if raw is None else self._decode(without_original(raw))
        if raw is not None and len(raw) > LARGE_BYTES:
            self.weigh(len(raw))
        if not known.complete:
            known.entries[entry] = kept
        return kept

    def wipe(self, known: KnownMap) -> None:
        """Remove all entries."""
        known.entries.clear()
        known.changed.clear()
        known.complete = known.wiped = True

    def items(self, key: Any, known: KnownMap) -> Iterator[tuple[Any, Any]]:
        """Return all entries as they are now; later changes of the map do not reach the iterator.

        The entries of a large map come in RocksDB's order, whether they are in memory or on disk.
        """
        if not known.complete:
            stored = self._stored(key)
            begun = list(islice(stored, _EAGER))
            if len(begun) == _EAGER:
                return _merged(_in_order(known), chain(begun, stored))
            self._complete(known, begun)
        if len(known.entries) > _EAGER:
            return _merged(_in_order(known), iter(()))
        return iter([(entry, kept) for entry, kept in known.entries.items() if kept is not GONE])

    def _stored(self, key: Any) -> Iterator[_Placed]:
        begin = self.address(key)[0]
        for address, value in self._store.scan(begin, begin + b"\xff"):
            original, raw = split_original(value)
            entry = read_part(address, len(begin))[0] if original is None else original[1]
            yield address[len(begin) :], entry, self._decode(raw)

    def _complete(self, known: KnownMap, stored: list[_Placed]) -> None:
        together = {entry: kept for _, entry, kept in stored}
        together.update(known.entries)
        known.entries, known.complete = together, True
        self._held += len(stored)
        self.weigh(sum(weight(kept) for _, _, kept in stored))

    def _peek_known(self, key: Any) -> Any:
        return dict(self.items(key, self.data[key])) or None

    def is_empty(self, key: Any, known: KnownMap) -> bool:
        """Return whether the map has no entry."""
        if any(kept is not GONE for kept in known.entries.values()):
            return False
        return known.complete or next(self.items(key, known), None) is None

    def _flush(self, batch: WriteBatch) -> Flushed:
        count = size = 0
        for key in self.changed:
            known: KnownMap = self.data[key]
            begin, key_exact = self.address(key)
            if known.wiped:
                for address, _ in self._store.scan(begin, begin + b"\xff"):
                    batch.delete(address)
                known.wiped = False
            for entry in known.changed:
                kept = known.entries[entry]
                raw_entry, entry_exact = entry_bytes(entry)
                if kept is GONE:
                    batch.delete(begin + raw_entry)
                else:
                    raw = self._encode(kept)
                    exact = key_exact and entry_exact
                    batch.put(begin + raw_entry, raw if exact else with_original((key, entry), raw))
                    size += len(raw)
            count += len(known.changed)
            known.changed.clear()
            if known.complete and not any(kept is not GONE for kept in known.entries.values()):
                del self.data[key]
        return Flushed(count, size)

    def forget(self) -> None:
        super().forget()
        self._held = 0

    def forget_one(self, address: bytes, value: bytes) -> None:
        original = split_original(value)[0]
        key, end = self.key_at(address, None if original is None else original[0])
        known: KnownMap | None = self.data.get(key)
        if known is not None:
            entry = read_part(address, end)[0] if original is None else original[1]
            if entry not in known.changed:
                known.entries.pop(entry, None)

    def put_whole(self, batch: WriteBatch, key: Any, value: Any) -> None:
        begin, key_exact = self.address(key)
        for entry, kept in value.items():
            raw_entry, entry_exact = entry_bytes(entry)
            raw = self._encode(kept)
            exact = key_exact and entry_exact
            batch.put(begin + raw_entry, raw if exact else with_original((key, entry), raw))

    def replace_whole(self, key: Any, value: Any) -> None:
        entries = dict(value or ())
        known = self.of(key, len(entries))
        self.wipe(known)
        known.entries.update(entries)
        known.changed.update(entries)
        self.mark(key)
        self.weigh(_weight_of(known))

    def whole(self, pieces: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        begin, key = b"", None
        found: dict[Any, Any] = {}
        for address, value in pieces:
            original, raw = split_original(value)
            if not begin or not address.startswith(begin):
                if found:
                    yield key, found
                key, end = self.key_at(address, None if original is None else original[0])
                begin, found = address[:end], {}
            entry = read_part(address, len(begin))[0] if original is None else original[1]
            found[entry] = self._decode(raw)
        if found:
            yield key, found

    def _whose(self, address: bytes, value: bytes) -> tuple[Any, int]:
        original = split_original(value)[0]
        return self.key_at(address, None if original is None else original[0])
