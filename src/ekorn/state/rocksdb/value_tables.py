"""Tables with one value per key in RocksDB: value, reducing, aggregating and folding state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ekorn.state.rocksdb.known_addresses import KnownAddresses
from ekorn.state.rocksdb.store import WriteBatch
from ekorn.state.rocksdb.tables import MISSING, Flushed, RocksTable, Shared
from ekorn.state.rocksdb.value_bytes import (
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
from ekorn.state.rocksdb.value_weights import LARGE_BYTES, weight
from ekorn.state.snapshots import StateInfo

_NONE = type(None)


class ReadThrough(dict[Any, Any]):
    """A dictionary in front of RocksDB that seems to hold every key. The value None says that a key has no value.

    Fetching a key may flush the dictionary, so a removal marks its key at once: the next fetch may write it.
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
    """A table with one value per key."""

    def __init__(self, info: StateInfo, number: int, shared: Shared) -> None:
        super().__init__(info, number, shared)
        self.data = ReadThrough(self._load, self.mark)
        self._encode = encode_stamped if info.ttl else encode
        self._decode = decode_stamped if info.ttl else decode
        self._encode_all = encode_all_stamped if info.ttl else encode_all
        self._fresh: set[Any] = set()  # keys that RocksDB is known not to have
        self.addresses = KnownAddresses()  # of keys in the dictionary

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
                self.weigh(len(raw))
        self.data[key] = value
        return value

    def peek(self, key: Any) -> Any:
        kept = dict.get(self.data, key, MISSING)
        if kept is not MISSING:
            return kept
        raw = self._store.get(self.address(key)[0])
        return None if raw is None else self._decode(without_original(raw))

    def _peek_known(self, key: Any) -> Any:
        return dict.__getitem__(self.data, key)

    def _flush(self, batch: WriteBatch) -> Flushed:  # hot
        self.addresses.limit(len(self.data), self.limit[0])
        size = 0
        keys, addresses = self.addresses.of(self.changed)
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
        """Write the changed keys whose addresses are not known, and return the size of their values in bytes."""
        writes: list[tuple[bytes, bytes]] = []
        data, encode, kept = self.data, self._encode, dict.get
        for key in self.addresses.unknown(self.changed):
            value = kept(data, key, MISSING)
            if value is MISSING:
                continue  # marked again after it was written and evicted
            address, exact = self.address(key)
            if value is None:
                self._remove(batch, key, address)
            elif exact:
                writes.append((address, encode(value)))
                self.addresses.learn(key, address)
            else:
                writes.append((address, with_original(key, encode(value))))
        return batch.put_all(writes)

    def _remove(self, batch: WriteBatch, key: Any, address: bytes) -> None:
        if key not in self._fresh:
            batch.delete(address)
        dict.__delitem__(self.data, key)
        self.addresses.drop(key)

    def forget(self) -> None:
        super().forget()
        self._fresh.clear()
        self.addresses.forget()

    def forget_one(self, address: bytes, value: bytes) -> None:
        key = self._whose(address, value)[0]
        if dict.__contains__(self.data, key) and key not in self.changed:
            dict.__delitem__(self.data, key)
            self.addresses.drop(key)

    def put_whole(self, batch: WriteBatch, key: Any, value: Any) -> None:
        address, exact = self.address(key)
        raw = self._encode(value)
        batch.put(address, raw if exact else with_original(key, raw))

    def replace_whole(self, key: Any, value: Any) -> None:
        if len(self.data) >= self.limit[0]:
            self.make_room()
        self.data[key] = value
        self.mark(key)
        self.weigh(weight(value))

    def whole(self, pieces: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        for address, value in pieces:
            original, raw = split_original(value)
            yield self.key_at(address, original)[0], self._decode(raw)
