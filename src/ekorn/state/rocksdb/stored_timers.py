"""The timers of one operator in one time domain, as they are in RocksDB: ordered by time in each key group.

    address = key group (2 bytes) | state (2 bytes) | time (8 bytes, plus 2^63) | key | window, if any
    value   = a number that grows with the order of registration

`rocks_timers.py` decides which timers are in memory as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ekorn.keygroups import KeyGroupRange, key_groups_of, state_key
from ekorn.state.rocksdb.key_bytes import PREFIX, address_of, read_part, window_bytes
from ekorn.state.rocksdb.store import WriteBatch
from ekorn.state.rocksdb.tables import Flushed, RocksTable
from ekorn.state.rocksdb.value_bytes import decode, encode_all, split_original, with_original
from ekorn.state.timers import timer_address, timer_at
from ekorn.types.time_bounds import MAX_TIMESTAMP

Timer = tuple[Any, int]
"""The entry of a timer (a key, or a pair of key and window) and its time."""

_SIGN = 1 << 63
_HEAD = struct.Struct(">HHQ")  # key group, state, time
_TEXT_ADDRESS = struct.Struct(">HHQcH")  # the head and the beginning of a key that is text
_INT_ADDRESS = struct.Struct(">HHQcQ")
_SHORT_TEXT = 1 << 16


class Flushes(Protocol):
    """What is in memory of the timers of a table."""

    def flush(self, batch: WriteBatch) -> None:
        """Write the changes to RocksDB."""


class StoredTimers(RocksTable):
    """The timers that are in RocksDB. There is nothing in the dictionary of this table."""

    memory: Flushes | None = None  # None for timers that the job has not asked for

    # ------------------------------------------------------------------------------------------------------ addresses

    def start_of(self, group: int, time_ms: int) -> bytes:
        """Return the address before all timers of a key group at a time or later."""
        if time_ms > MAX_TIMESTAMP:
            return PREFIX.pack(group, self.number + 1)
        return _HEAD.pack(group, self.number, time_ms + _SIGN)

    def end_of(self, group: int) -> bytes:
        """Return the address behind all timers of a key group."""
        return PREFIX.pack(group, self.number + 1)

    def addresses(self, timers: list[Timer], *, windowed: bool) -> list[tuple[bytes, bool]]:  # hot
        """Return the address of each timer, and whether its key can be read back from the address."""
        keys = [entry[0] for entry, _ in timers] if windowed else [entry for entry, _ in timers]
        groups, number, found = key_groups_of(keys, self._max_parallelism), self.number, []
        for key, group, (_, time_ms) in zip(keys, groups, timers, strict=True):
            cls = key.__class__
            if cls is str:
                raw = key.encode("utf-8", "surrogatepass")
                if len(raw) < _SHORT_TEXT:
                    found.append((_TEXT_ADDRESS.pack(group, number, time_ms + _SIGN, b"s", len(raw)) + raw, True))
                    continue
            elif cls is int and -_SIGN <= key < _SIGN:
                found.append((_INT_ADDRESS.pack(group, number, time_ms + _SIGN, b"i", key + _SIGN), True))
                continue
            address, exact = address_of(key, self._max_parallelism, number)
            found.append((_HEAD.pack(group, number, time_ms + _SIGN) + address[PREFIX.size :], exact))
        if windowed:
            return [
                (address + window_bytes(entry[1]), exact)
                for (address, exact), (entry, _) in zip(found, timers, strict=True)
            ]
        return found

    def timer(self, address: bytes, original: Any = None) -> tuple[Timer, bool]:  # hot
        """Return the timer at an address, and whether its entry is a pair of key and window."""
        time_ms = int.from_bytes(address[4:12], "big") - _SIGN
        if address[12:13] == b"s" and _TEXT_ADDRESS.size + int.from_bytes(address[13:15], "big") == len(address):
            try:  # as `read_part` does, without its calls
                return (address[_TEXT_ADDRESS.size :].decode("utf-8", "surrogatepass"), time_ms), False
            except UnicodeDecodeError:
                pass  # `read_part` says what is wrong
        key, end = read_part(address, _HEAD.size)
        key = state_key(key) if original is None else original
        if end == len(address):
            return (key, time_ms), False
        return ((key, read_part(address, end)[0]), time_ms), True

    # ---------------------------------------------------------------------------------------------- reading and writing

    def write(self, batch: WriteBatch, timers: Iterable[Timer], *, windowed: bool) -> None:
        """Write timers that were registered in this order."""
        listed = list(timers)
        if not listed:
            return
        key = listed[0][0]
        self._some_key = key[0] if windowed else key
        first = self._shared.take_pieces(len(listed))
        addresses, values = self.addresses(listed, windowed=windowed), encode_all([*range(first, first + len(listed))])
        batch.put_all(
            (address, value if exact else with_original(entry[0] if windowed else entry, value))
            for (address, exact), value, (entry, _) in zip(addresses, values, listed, strict=True)
        )

    def read(self, first: bytes, end: bytes) -> Iterator[tuple[Timer, int, bytes]]:  # hot
        """Yield the timers from one address to before another, with the numbers of their registration and addresses."""
        timer = self.timer
        for address, value in self._store.scan(first, end):
            if value[:1] == b"i":
                yield timer(address)[0], int.from_bytes(value[1:], "little", signed=True), address
            else:
                original, raw = split_original(value)
                yield timer(address, original)[0], decode(raw), address

    # ------------------------------------------------------------------------------------------------- whole entries

    def flush(self, batch: WriteBatch) -> None:
        if self.memory is not None:
            self.memory.flush(batch)

    def _flush(self, batch: WriteBatch) -> Flushed:
        raise AssertionError("timers are flushed by what is in memory of them")

    def forget(self) -> None:
        """Do nothing: `RocksTimers` evicts what it has in memory."""

    def forget_one(self, address: bytes, value: bytes) -> None:
        raise AssertionError("timers do not expire")

    def _peek_known(self, key: Any) -> Any:
        raise AssertionError("there is nothing in the dictionary")

    def key_at(self, address: bytes, original: Any) -> tuple[Any, int]:
        (entry, time_ms), windowed = self.timer(address, original)
        return timer_address(entry, time_ms, windowed=windowed), len(address)

    def put_whole(self, batch: WriteBatch, key: Any, value: Any) -> None:
        timer = _timer_at(key)
        if timer[1] <= MAX_TIMESTAMP:  # earlier versions accepted later ones, which never fire
            self.write(batch, [timer], windowed=_is_windowed(key))

    def replace_whole(self, key: Any, value: Any) -> None:
        """Remove a timer: it has no value that could be replaced."""
        assert value is None
        ((address, _),) = self.addresses([_timer_at(key)], windowed=_is_windowed(key))
        batch = self._store.batch()
        batch.delete(address)
        batch.done()

    def whole(self, pieces: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        for address, value in pieces:
            yield self.key_at(address, split_original(value)[0])[0], None

    def delete_all(self, key_groups: KeyGroupRange) -> None:
        """Remove all timers of a range of key groups."""
        for start, end in self.ranges(key_groups):
            self._store.delete_range(start, end)

    def timers(self, key_groups: KeyGroupRange) -> Iterator[Timer]:
        """Yield all timers of a range of key groups."""
        for start, end in self.ranges(key_groups):
            for timer, _, _ in self.read(start, end):
                yield timer


def _is_windowed(address: tuple[Any, Any]) -> bool:
    return address[1].__class__ is tuple


def _timer_at(address: tuple[Any, Any]) -> Timer:
    return timer_at(address, windowed=_is_windowed(address))
