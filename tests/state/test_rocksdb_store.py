"""Writes to RocksDB are collected up to a number of bytes, and no more."""

from dataclasses import replace

import pytest

from ekorn.state.rocksdb.store import RocksStore
from tests.state.backends import SMALL

LIMIT = 100


@pytest.fixture
def store(tmp_path):
    opened = RocksStore(str(tmp_path / "db"), replace(SMALL, write_batch_bytes=LIMIT), create=True)
    yield opened
    opened.destroy()


def put_one_by_one(batch, entries):
    for address, value in entries:
        batch.put(address, value)


def put_together(batch, entries):
    assert batch.put_all(entries) == sum(len(value) for _, value in entries)


@pytest.mark.parametrize("put", [put_one_by_one, put_together])
@pytest.mark.parametrize(("value_bytes", "applied"), [(40, False), (41, True)])  # an address has ten bytes
def test_writes_are_applied_when_they_are_more_than_the_limit(store, put, value_bytes, applied):
    batch = store.batch()
    put(batch, [(b"a" * 10, b"v" * 40)])
    assert store.get(b"a" * 10) is None
    put(batch, [(b"b" * 10, b"v" * value_bytes)])
    assert (store.get(b"a" * 10) is not None) is applied
    put(batch, [(b"c" * 10, b"v" * 50)])  # counted anew after the last ones were applied
    assert (store.get(b"c" * 10) is not None) is not applied
    batch.done()
    assert [store.get(name * 10) for name in (b"a", b"b", b"c")] == [b"v" * 40, b"v" * value_bytes, b"v" * 50]


@pytest.mark.parametrize("put", [put_one_by_one, put_together])
def test_what_follows_applied_writes_is_counted_from_zero(store, put):
    batch = store.batch()
    put(batch, [(b"a" * 10, b"v" * 91), (b"b" * 10, b"v" * 40), (b"c" * 10, b"v" * 40)])
    assert [store.get(name * 10) is not None for name in (b"a", b"b", b"c")] == [True, False, False]


def test_removals_count_by_their_addresses(store):
    batch = store.batch()
    batch.put(b"a", b"v")
    batch.done()
    batch.delete(b"a")
    batch.delete(b"b" * 99)
    assert store.get(b"a") == b"v"
    batch.delete(b"c")
    assert store.get(b"a") is None
    assert store.deletions == 3


def test_a_batch_that_is_done_begins_anew(store):
    batch = store.batch()
    batch.put(b"a" * 10, b"v" * 60)
    batch.done()
    batch.put(b"b" * 10, b"v" * 60)
    assert (store.get(b"a" * 10), store.get(b"b" * 10)) == (b"v" * 60, None)
    batch.done()
    assert store.get(b"b" * 10) == b"v" * 60


def test_a_closed_instance_can_be_opened_again_although_it_is_referred_to(tmp_path):
    folder = str(tmp_path / "again")
    first = RocksStore(folder, SMALL, create=True)
    batch = first.batch()
    batch.put(b"a", b"v")
    batch.done()
    first.close()
    second = RocksStore(folder, SMALL, create=False)
    assert second.get(b"a") == b"v"
    second.destroy()
