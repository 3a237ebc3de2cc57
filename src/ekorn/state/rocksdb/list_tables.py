"""List state in RocksDB: a piece per flush, so adding to a list neither reads nor rewrites its elements."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

from ekorn.state.rocksdb.key_bytes import sequence_bytes
from ekorn.state.rocksdb.store import WriteBatch
from ekorn.state.rocksdb.tables import BEHIND_KEY, Flushed, RocksTable, Shared
from ekorn.state.rocksdb.value_bytes import split_original, with_original, without_original
from ekorn.state.rocksdb.value_weights import weight
from ekorn.state.snapshots import StateInfo
from ekorn.types.by_value import dumps

_PIECE = 1000  # the most elements in one entry of RocksDB


class KnownList:
    """The part of one key's list that is in memory."""

    __slots__ = ("head", "places", "replaced", "tail")

    def __init__(self) -> None:
        self.head: list[Any] | None = None  # the elements in RocksDB; None until they are fetched
        self.places: list[bytes] = []  # the addresses of the pieces in RocksDB; fetched with the elements
        self.tail: list[Any] = []  # elements added since the last flush
        self.replaced = False  # the pieces in RocksDB are to be removed


class _Lists(dict[Any, KnownList]):
    __slots__ = ("_begin",)

    def __init__(self, begin: Callable[[Any], KnownList]) -> None:
        super().__init__()
        self._begin = begin

    def __missing__(self, key: Any) -> KnownList:
        return self._begin(key)


class ListTable(RocksTable):
    """A table with a list per key.

    The first piece of a list has the number 0, so one lookup tells whether there is a list. Later pieces have ascending
    numbers. The first piece stays as long as there are others, even if it is empty.
    """

    def __init__(self, info: StateInfo, number: int, shared: Shared) -> None:
        super().__init__(info, number, shared)
        self.data = _Lists(self._begin)
        self._take_piece = shared.take_piece
        self._held = 0  # an upper bound of the elements in the dictionary

    def of(self, key: Any, more: int = 1) -> KnownList:
        """Return the part of a key's list that is in memory, after making room for `more` elements."""
        self._held += more
        if self._held > self.limit[0]:
            self.make_room()
            self._held = more
        known: KnownList = self.data[key]
        return known

    def _begin(self, key: Any) -> KnownList:
        known = self.data[key] = KnownList()
        if self._store.get(self.address(key)[0] + sequence_bytes(0)) is None:
            known.head = []
        return known

    def elements(self, key: Any, known: KnownList) -> list[Any]:
        """Return all elements in the form of a heap table. The caller must not change the list."""
        if known.head is None:
            self._fetch(key, known)
        assert known.head is not None
        return known.head + known.tail if known.tail else known.head

    def _fetch(self, key: Any, known: KnownList) -> None:
        begin = self.address(key)[0]
        known.head = []
        size = 0
        for address, value in self._store.scan(begin, begin + BEHIND_KEY):
            known.places.append(address)
            known.head += pickle.loads(without_original(value))
            size += len(value)
        self._held += len(known.head)
        self.saw(len(known.head), size)
        self.weigh(size)

    def _peek_known(self, key: Any) -> Any:
        return list(self.elements(key, self.data[key])) or None

    def replace(self, key: Any, known: KnownList, elements: list[Any]) -> None:
        """Replace the elements of a key."""
        if known.head is None:
            self._fetch(key, known)
        known.head, known.tail, known.replaced = [], elements, True

    def _flush(self, batch: WriteBatch) -> Flushed:
        count = size = 0
        for key in self.changed:
            known: KnownList = self.data[key]
            begin, exact = self.address(key)
            if known.replaced:
                for place in known.places:
                    batch.delete(place)
                known.places, known.replaced = [], False
            is_first = known.head is not None and not known.places
            for start in range(0, len(known.tail), _PIECE):
                place = begin + sequence_bytes(0 if is_first else self._take_piece())
                raw = dumps(known.tail[start : start + _PIECE])
                batch.put(place, raw if exact else with_original(key, raw))
                is_first = False
                size += len(raw)
                if known.head is not None:
                    known.places.append(place)
            count += len(known.tail)
            if known.head is not None:
                known.head += known.tail
                if not known.head:
                    del self.data[key]
            known.tail = []
        return Flushed(count, size)

    def forget(self) -> None:
        super().forget()
        self._held = 0

    def forget_one(self, address: bytes, value: bytes) -> None:
        """Do nothing: the sweep does not touch lists in use."""

    def put_whole(self, batch: WriteBatch, key: Any, value: Any) -> None:
        begin, exact = self.address(key)
        for start in range(0, len(value), _PIECE):
            place = begin + sequence_bytes(0 if start == 0 else self._take_piece())
            raw = dumps(value[start : start + _PIECE])
            batch.put(place, raw if exact else with_original(key, raw))

    def replace_whole(self, key: Any, value: Any) -> None:
        elements = list(value or ())
        self.replace(key, self.of(key, len(elements)), elements)
        self.mark(key)
        self.weigh(sum(map(weight, elements)))

    def whole(self, pieces: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[Any, Any]]:
        begin, key = b"", None
        elements: list[Any] = []
        for address, value in pieces:
            original, raw = split_original(value)
            if not begin or not address.startswith(begin):
                if elements:
                    yield key, elements
                key, end = self.key_at(address, original)
                begin, elements = address[:end], []
            elements += pickle.loads(raw)
        if elements:
            yield key, elements

    def is_known(self, address: bytes, value: bytes) -> bool:
        """Return whether the list of a piece in RocksDB is in use."""
        return self._whose(address, value)[0] in self.data
