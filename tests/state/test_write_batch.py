"""Writes to RocksDB are collected, and applied whenever they reach a number of bytes."""

from __future__ import annotations

from typing import Any

from ekorn.state.rocksdb.store import WriteBatch


class Writes:
    """The batch of rocksdict."""

    def __init__(self, raw_mode: bool) -> None:
        assert raw_mode
        self.done: list[tuple[bytes, ...]] = []

    def put(self, address: bytes, value: bytes) -> None:
        self.done.append((address, value))

    def delete(self, address: bytes) -> None:
        self.done.append((address,))

    def is_empty(self) -> bool:
        return not self.done


class Store:
    """The instance of RocksDB."""

    def __init__(self) -> None:
        self.deletions = 0
        self.written: list[list[tuple[bytes, ...]]] = []

    def write(self, batch: Writes) -> None:
        self.written.append(batch.done)

    def batch(self, limit_bytes: int) -> WriteBatch:
        store: Any = self
        return WriteBatch(store, Writes, limit_bytes)


A, B, C, D = ((letter, b"12") for letter in (b"a", b"b", b"c", b"d"))  # three bytes each


def test_values_are_applied_once_they_are_larger_than_the_limit_together():
    store = Store()
    batch = store.batch(6)
    batch.put(*A)
    batch.put(*B)
    assert store.written == []
    batch.put(*C)
    assert store.written == [[A, B, C]]
    batch.put(*D)
    assert store.written == [[A, B, C]]
    batch.done()
    assert store.written == [[A, B, C], [D]]


def test_many_values_at_once_are_applied_in_the_same_parts_and_their_size_is_returned():
    store = Store()
    batch = store.batch(6)
    assert batch.put_all([A]) == 2
    assert batch.put_all([B, C, D]) == 6
    assert store.written == [[A, B, C]]
    assert batch.put_all([A, B]) == 4
    assert store.written == [[A, B, C], [D, A, B]]
    assert batch.put_all([]) == 0
    batch.done()
    assert len(store.written) == 2


def test_removals_are_counted_and_applied_with_the_values():
    store = Store()
    batch = store.batch(5)
    batch.put(*A)
    batch.delete(b"b")
    batch.delete(b"c")
    assert store.written == []
    batch.delete(b"d")
    assert store.written == [[A, (b"b",), (b"c",), (b"d",)]]
    assert store.deletions == 3
    batch.delete(b"e")
    batch.put(*A)
    assert len(store.written) == 1
    batch.done()
    assert store.written[1:] == [[(b"e",), A]]


def test_nothing_is_applied_where_nothing_was_written():
    store = Store()
    store.batch(5).done()
    assert store.written == []


def test_a_batch_that_was_applied_counts_from_zero_again():
    store = Store()
    batch = store.batch(6)
    batch.put(*A)
    batch.put(*B)
    batch.done()
    batch.put(*C)
    batch.put(*D)
    assert store.written == [[A, B]]
