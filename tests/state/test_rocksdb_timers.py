"""Timers in RocksDB: the same as on the heap, in bounded memory."""

from itertools import repeat

import pytest

from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import EVERYTHING, GROUPS, SMALL, cramped, heap, rocksdb, timers_on_heap
from tests.state.keyed_machine import Target
from tests.state.timer_walk import TimerWalk

NAME = "_timers/event"


def fired(timers, until=100):
    found = []
    timers.fire(until, lambda entry, time: found.append((entry, time)), relief=repeat(True))
    return found


def saved(backend, store, *, take="snapshot"):
    captured = getattr(backend, take)(1)
    captured.key_groups = EVERYTHING
    part = captured.write(Target(store))
    return OperatorRestore("operator", (part,), (), backend.infos(), 1, GROUPS)


def in_memory(timers):
    return sum(map(len, timers._by_time.values())) + len(timers._added) + len(timers._removed)


@pytest.mark.parametrize("seed", range(6))
def test_timers_are_those_of_a_set_on_every_backend_and_after_every_restore(seed):
    walk = TimerWalk(seed)
    for _ in range(250):
        walk.step()
    walk.close()


@pytest.mark.parametrize("times", ["one time", "many times"])
@pytest.mark.parametrize("saves", [False, True])
def test_memory_is_bounded_while_timers_are_registered_and_fire(times, saves):
    backend, store = cramped(), MemoryFiles()
    timers = backend.timers(NAME, windowed=False)
    most = 4 * GROUPS * 2  # of timers, and of changes to them
    for number in range(3_000):
        timers.add(number, 5 if times == "one time" else number)
        assert in_memory(timers) <= most
        if saves and number % 500 == 0:
            saved(backend, store)
    held = []
    timers.fire(10_000, lambda entry, time: held.append((entry, in_memory(timers))), relief=repeat(True))
    assert sorted(entry for entry, _ in held) == list(range(3_000))
    assert max(count for _, count in held) <= most
    assert timers.next_ms() is None
    assert list(timers.timers()) == []
    backend.close()


@pytest.mark.parametrize("make", [heap, rocksdb, timers_on_heap])
def test_timers_of_one_time_fire_in_the_order_of_registration_also_after_a_restore(make):
    store, keys = MemoryFiles(), [f"key {number * 7 % 50}" for number in range(50)]
    before = rocksdb()
    timers = before.timers(NAME, windowed=False)
    for key in keys:
        timers.add(key, 5)
    restored = make()
    restored.restore(saved(before, store), store, EVERYTHING)
    again = restored.timers(NAME, windowed=False)
    again.add("last", 5)
    if make is rocksdb:
        assert fired(again) == [(key, 5) for key in (*keys, "last")]
    else:
        assert sorted(fired(again)) == sorted((key, 5) for key in (*keys, "last"))
    before.close()
    restored.close()


def with_timers_on_disk_only():
    """Return a backend and its timers at 0, 10, 20, ..., of which RocksDB alone has the later ones."""
    backend = cramped()
    timers = backend.timers(NAME, windowed=False)
    for time in range(0, 3_000, 10):
        timers.add("k", time)
    assert in_memory(timers) < 100
    return backend, timers


def test_a_timer_on_disk_that_is_registered_again_and_deleted_is_gone():
    backend, timers = with_timers_on_disk_only()
    timers.add("k", 2_000)
    timers.remove("k", 2_000)
    assert ("k", 2_000) not in fired(timers, 3_000)
    backend.close()


def test_a_timer_on_disk_that_is_deleted_and_registered_again_is_there_once():
    backend, timers = with_timers_on_disk_only()
    timers.remove("k", 2_000)
    timers.add("k", 2_000)
    assert fired(timers, 3_000).count(("k", 2_000)) == 1
    backend.close()


def test_a_timer_that_is_deleted_before_it_is_registered_is_there():
    backend, timers = with_timers_on_disk_only()
    timers.remove("k", 2_001)
    timers.add("k", 2_001)
    assert ("k", 2_001) in set(timers.timers())  # which come from disk
    assert ("k", 2_001) in fired(timers, 3_000)
    backend.close()


def test_a_deletion_that_is_not_written_yet_is_heeded_when_timers_are_read():
    backend, timers = with_timers_on_disk_only()
    timers.remove("k", 2_000)
    assert len(timers._removed) == 1
    assert [time for _, time in fired(timers, 3_000)] == [t for t in range(0, 3_000, 10) if t != 2_000]
    backend.close()


@pytest.mark.parametrize("count", [3_000, 9_000])  # of which 4,000 fit into memory
@pytest.mark.parametrize("keys", [1, 1_000])
def test_many_timers_that_fired_are_deleted_and_no_others(count, keys):
    room = RocksDBSettings(**{**SMALL.__dict__, "cache_bytes": 400 * 4_000, "timer_cache_count": 1})
    backend, store = rocksdb(settings=room), MemoryFiles()
    timers = backend.timers(NAME, windowed=False)
    expected = [(number % keys, number) for number in range(count)]
    for timer in expected:
        timers.add(*timer)
    saved(backend, store)
    backend.snapshot_completed(1)
    assert fired(timers, 1_499) == expected[:1_500]
    restored = rocksdb()
    restored.restore(saved(backend, store), store, EVERYTHING)
    assert fired(restored.timers(NAME, windowed=False), count) == expected[1_500:]
    assert fired(timers, count) == expected[1_500:]
    backend.close()
    restored.close()


def test_an_instance_is_opened_for_the_first_timer_and_not_before():
    backend, store = rocksdb(), MemoryFiles()
    timers = backend.timers(NAME, windowed=False)
    saved(backend, store)
    assert not backend.rocks.is_open
    timers.add("a", 1)
    saved(backend, store)
    assert backend.rocks.is_open
    backend.close()


@pytest.mark.parametrize("kept", ["timers_on_heap", "heap"])
def test_a_checkpoint_with_timers_in_memory_restores_into_rocksdb_and_back(kept):
    store, make = MemoryFiles(), {"timers_on_heap": timers_on_heap, "heap": heap}[kept]
    first = make()
    first.timers(NAME, windowed=False).add("a", 7)
    second = rocksdb()
    second.restore(saved(first, store), store, EVERYTHING)
    timers = second.timers(NAME, windowed=False)
    timers.add("b", 3)
    third = make()
    third.restore(saved(second, store), store, EVERYTHING)
    assert fired(third.timers(NAME, windowed=False)) == [("b", 3), ("a", 7)]
    fourth = make()  # the next checkpoint of the timers on the heap holds what came out of RocksDB
    fourth.restore(saved(third, store), store, EVERYTHING)
    assert fired(fourth.timers(NAME, windowed=False)) == []
    for backend in (first, second, third, fourth):
        backend.close()


def test_timers_that_came_out_of_rocksdb_are_in_the_next_checkpoint_of_the_heap():
    store, first = MemoryFiles(), rocksdb()
    first.timers(NAME, windowed=False).add("a", 7)
    second = timers_on_heap()
    second.restore(saved(first, store), store, EVERYTHING)
    second.timers(NAME, windowed=False)
    third = rocksdb()
    third.restore(saved(second, store), store, EVERYTHING)
    assert fired(third.timers(NAME, windowed=False)) == [("a", 7)]
    for backend in (first, second, third):
        backend.close()


def test_a_checkpoint_without_changes_writes_no_sorted_file():
    backend, store = rocksdb(), MemoryFiles()
    timers = backend.timers(NAME, windowed=False)
    for number in range(1_000):
        timers.add(number, number)
    saved(backend, store)
    backend.snapshot_completed(1)
    captured, target = backend.snapshot(2), Target(store)
    captured.key_groups = EVERYTHING
    captured.write(target)
    assert target.bytes_written < 2_000
    backend.close()


def test_fired_timers_leave_no_garbage_that_outnumbers_what_is_left():
    backend, store = rocksdb(), MemoryFiles()
    timers = backend.timers(NAME, windowed=False)
    for number in range(60_000):
        timers.add(number, number)
    saved(backend, store)
    backend.snapshot_completed(1)
    fired(timers, 59_000)
    saved(backend, store)
    backend.rocks.merging.wait()
    assert sum(file.entries for file in backend.rocks.store.files()) < 5_000
    backend.close()
