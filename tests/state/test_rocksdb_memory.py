"""The memory of entries in use in front of RocksDB: bounded in bytes, also when values suddenly become large."""

from __future__ import annotations

import sys
import tracemalloc
from dataclasses import replace
from weakref import WeakSet

import pytest

from ekorn.common import Time, Types
from ekorn.functions.record_functions import AggregateFunction
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.state.rocksdb.tables import Shared
from tests.state.backends import SMALL, rocksdb

MB = 1 << 20
LARGE = 400_000
KEYS = 250  # 100 MB of large values; the memory for entries in use is 16 MB


class Longest(AggregateFunction):
    def create_accumulator(self):
        return []

    def add(self, value, accumulator):
        return max([value], accumulator, key=lambda one: len(one[0]) if one else 0)

    def get_result(self, accumulator):
        return accumulator[0]

    def merge(self, one, other):
        return max(one, other, key=lambda each: len(each[0]) if each else 0)


def by_map(backend):
    state = backend.state(MapStateDescriptor("state", Types.STRING(), Types.STRING()))
    return lambda text: state.put("entry", text), lambda: state.get("entry")


def by_whole_map(backend):
    state = backend.state(MapStateDescriptor("state", Types.STRING(), Types.STRING()))
    return lambda text: state.put("entry", text), lambda: dict(state.items())["entry"]


def by_updated_list(backend):
    state = backend.state(ListStateDescriptor("state"))
    return lambda text: state.update([text]), lambda: list(state.get())[-1]


def by_value_with_ttl(backend):
    descriptor = ValueStateDescriptor("state")
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.days(1)).build())
    state = backend.state(descriptor)
    return state.update, state.value


def by_list(backend):
    state = backend.state(ListStateDescriptor("state"))
    return state.add, lambda: list(state.get())[-1]


def by_reducing(backend):
    state = backend.state(ReducingStateDescriptor("state", lambda one, other: max(one, other, key=len)))
    return state.add, state.get


def by_aggregating(backend):
    state = backend.state(AggregatingStateDescriptor("state", Longest()))
    return state.add, state.get


def by_value(type_info=None, form=lambda text: text, text_of=lambda value: value):
    def of(backend):
        state = backend.state(ValueStateDescriptor("state", type_info))
        return lambda text: state.update(form(text)), lambda: text_of(state.value())

    return of


STATES = {
    "value": by_value(),
    "value, typed": by_value(Types.STRING()),
    "value, bytes": by_value(form=str.encode, text_of=bytes.decode),
    "value, tuple": by_value(form=lambda text: (1, text), text_of=lambda value: value[1]),
    "value, pickled": by_value(form=lambda text: [text], text_of=lambda value: value[0]),
    "map": by_map,
    "map, read as a whole": by_whole_map,
    "list": by_list,
    "list, updated": by_updated_list,
    "value, with a time to live": by_value_with_ttl,
    "reducing": by_reducing,
    "aggregating": by_aggregating,
}


@pytest.fixture
def backend(monkeypatch):
    monkeypatch.setattr(Shared, "in_slot", WeakSet())  # without the instances of other tests
    backend = rocksdb()
    yield backend
    backend.close()


@pytest.mark.parametrize("state", STATES)
def test_values_that_become_large_do_not_exceed_the_memory_for_entries_in_use(backend, state):
    write, read = STATES[state](backend)

    def write_all(size: int) -> None:
        for key in range(KEYS):
            backend.cell[0] = key
            write(chr(97 + key % 26) * size)

    for _ in range(20):  # small values: as many as there are keys fit a hundred times
        write_all(3)
        backend.snapshot(1)
    tracemalloc.start()
    write_all(LARGE)
    for key in range(KEYS):
        backend.cell[0] = key
        assert read() == chr(97 + key % 26) * LARGE
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 5 * SMALL.cache_bytes < KEYS * LARGE
    assert peak < 2.5 * SMALL.cache_bytes  # the entries, and their bytes while they are written


def test_a_key_without_a_value_that_was_read_is_not_kept_for_ever(backend):
    state = backend.state(ValueStateDescriptor("state"))
    key = "a key of no other place"[:-1] + "?"
    backend.cell[0] = "another"
    assert state.value() is None
    before = sys.getrefcount(key)
    backend.cell[0] = key
    assert state.value() is None
    assert sys.getrefcount(key) > before, "it is in use"
    for number in range(5_000):
        backend.cell[0] = f"key {number}"
        assert state.value() is None
    assert sys.getrefcount(key) == before


def test_the_size_of_later_values_counts_for_more(backend, monkeypatch):
    def limit_after(*seen):
        monkeypatch.setattr(Shared, "in_slot", WeakSet())
        other = rocksdb()
        other.state(ValueStateDescriptor("state"))
        table = other.rocks.by_name["state"]
        for values, value_bytes in seen:
            table.saw(values, value_bytes)
        limit = table.limit[0]
        other.close()
        return limit

    small, large = (200_000, 2_000_000), (100_000, 100_000_000)
    halved = (small[0] // 2, small[1] // 2)
    assert limit_after(small, large) == limit_after((halved[0] + large[0], halved[1] + large[1]))
    few, more = (50_000, 500_000), (50_000, 50_000_000)
    assert limit_after(few, more) == limit_after((few[0] + more[0], few[1] + more[1]))


def test_small_values_fill_the_memory_again_after_large_ones(backend):
    write, _ = by_value()(backend)
    for key in range(60):
        backend.cell[0] = key
        write("x" * LARGE)
    table = backend.rocks.by_name["state"]
    for _ in range(40):
        for key in range(5_000):
            backend.cell[0] = key
            write("small")
        backend.snapshot(1)
    assert len(table.data) > 4_000


def held_values(table):
    return len(table.data)


def held_elements(table):
    return sum(len(known.head or ()) + len(known.tail) for known in table.data.values())


def held_entries(table):
    return sum(len(known.entries) for known in table.data.values())


def adds_values(backend):
    state = backend.state(ValueStateDescriptor("state", Types.LONG()))

    def write(number):
        backend.cell[0] = number
        state.update(number)

    return write


def adds_values_with_ttl(backend):
    update, _ = by_value_with_ttl(backend)

    def write(number):
        backend.cell[0] = number
        update(number)

    return write


def adds_elements(backend):
    state = backend.state(ListStateDescriptor("state", Types.LONG()))

    def write(number):
        backend.cell[0] = number % 50
        state.add(number)

    return write


def reads_elements(backend):
    write, state = adds_elements(backend), backend.state(ListStateDescriptor("state", Types.LONG()))

    def write_and_read(number):
        write(number)
        if number % 50 == 7:
            assert number in list(state.get())

    return write_and_read


def adds_entries(backend):
    state = backend.state(MapStateDescriptor("state", Types.LONG(), Types.LONG()))

    def write(number):
        backend.cell[0] = number % 50
        state.put(number, number)

    return write


FILLED = {  # the last is what may be in memory beyond the limit: what is being written, a list just read, a small map
    "values": (adds_values, held_values, 1),
    "values with a time to live": (adds_values_with_ttl, held_values, 1),
    "elements of lists": (adds_elements, held_elements, 1),
    "elements of lists that are read": (reads_elements, held_elements, 200),
    "entries of maps": (adds_entries, held_entries, 257),
}


@pytest.mark.parametrize("what", FILLED)
def test_so_many_small_values_are_in_use_as_the_memory_has_room_for(monkeypatch, what):
    monkeypatch.setattr(Shared, "in_slot", WeakSet())  # without the instances of other tests
    backend = rocksdb(settings=replace(SMALL, cache_bytes=MB // 4))
    begin, held, more = FILLED[what]
    write = begin(backend)
    table = backend.rocks.by_name["state"]
    fullest, evictions, before = 0, 0, 0
    for number in range(10_000):
        write(number)
        count = held(table)
        assert count <= table.limit[0] + more
        fullest, evictions, before = max(fullest, count), evictions + (count < before), count
    backend.close()
    assert evictions >= 3
    assert fullest > 400


def test_the_memory_is_divided_among_the_tables_of_all_instances_by_the_size_of_their_values(backend):
    assert not Shared.in_slot, "an instance without tables takes no part"
    backends = [rocksdb(settings=replace(SMALL, cache_bytes=MB)) for _ in range(2)]
    names = [(backends[0], "a"), (backends[0], "b"), (backends[1], "c"), (backends[1], "d")]
    for of, name in names:
        of.state(ValueStateDescriptor(name))
    tables = [of.rocks.by_name[name] for of, name in names]
    assert [table.limit[0] for table in tables] == [100] * 4, "a hundred values until their size is known"
    for values, value_bytes, limit in ((10, 1_000, MB // 4 // 550), (30, 0, MB // 4 // 325), (0, 10**9, 1)):
        tables[1].saw(values, value_bytes)  # 250 bytes for each entry, and three times its value
        assert tables[1].limit[0] == limit
    backends[1].close()
    tables[0].saw(1, 0)
    assert tables[0].limit[0] == MB // 2 // 250
    backends[0].close()
