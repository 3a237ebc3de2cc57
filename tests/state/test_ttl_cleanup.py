"""State with a time to live: what the cleanup in the background looks at and removes."""

import itertools

import pytest

from ekorn.clock import ManualClock
from ekorn.common.time import Time
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.storage.memory import MemoryFiles
from tests.state.expiring import KINDS, TTL_MS
from tests.state.ttl_states import ON_HEAP, Kept, backends, builder  # noqa: F401 - backends is a fixture


def incremental(size, every_record):
    return StateTtlConfig.new_builder(Time.milliseconds(TTL_MS)).cleanup_incrementally(size, every_record)


@ON_HEAP
@pytest.mark.parametrize("kind", KINDS)
def test_each_access_looks_at_a_few_entries(kind):
    kept = Kept(kind, incremental(3, False))
    kept.fill(10)
    kept.at(50)
    left = []
    for _ in range(6):
        kept.read()
        left.append(len(kept.physical))
    assert left[-1] == 0
    assert all(0 <= before - after <= 3 for before, after in itertools.pairwise([10, *left]))


ACCESSES = [
    ("value", lambda state: state.value()),
    ("value", lambda state: state.update("new")),
    ("list", lambda state: list(state.get())),
    ("list", lambda state: state.add("new")),
    ("list", lambda state: state.add_all(["new"])),
    ("list", lambda state: state.add_all([])),
    ("list", lambda state: state.update(["new"])),
    ("map", lambda state: state.get("m")),
    ("map", lambda state: state.contains("m")),
    ("map", lambda state: state.put("m", "new")),
    ("map", lambda state: state.put_all({"m": "new"})),
    ("map", lambda state: state.put_all({})),
    ("map", lambda state: state.remove("m")),
    ("map", lambda state: list(state.items())),
    ("map", lambda state: list(state.keys())),
    ("map", lambda state: list(state.values())),
    ("map", lambda state: state.is_empty()),
    ("reducing", lambda state: state.get()),
    ("reducing", lambda state: state.add("new")),
    ("aggregating", lambda state: state.get()),
    ("aggregating", lambda state: state.add("new")),
    ("folding", lambda state: state.get()),
    ("folding", lambda state: state.add("new")),
]


@ON_HEAP
@pytest.mark.parametrize(("kind", "access"), ACCESSES)
def test_every_kind_of_access_cleans_up(kind, access):
    kept = Kept(kind, incremental(3, False))
    kept.fill(10)
    kept.at(50)
    for _ in range(6):
        access(kept.state)
    assert [key for key in kept.backend.keys(kind) if key != "key"] == []


@ON_HEAP
def test_by_default_five_entries_are_looked_at():
    kept = Kept("value")
    kept.fill(20)
    default = StateTtlConfig.new_builder(Time.milliseconds(TTL_MS))
    again = Kept("value", default, clock=ManualClock(50), restored=kept.snapshot())
    left = []
    for _ in range(5):
        again.read()
        left.append(len(again.physical))
    assert left == [15, 10, 5, 0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_with_background_cleanup_off_only_reads_remove(kind):
    kept = Kept(kind)
    kept.fill(20)
    kept.at(50)
    for _ in range(50):
        kept.read()
    assert len(kept.physical) == 20


@ON_HEAP
def test_what_rocksdb_would_do_means_nothing_here():
    kept = Kept("value", builder().cleanup_in_rocksdb_compact_filter(1000))
    kept.fill(20)
    kept.at(50)
    for _ in range(50):
        kept.read()
    assert len(kept.physical) == 20


@ON_HEAP
def test_an_explicit_cleanup_stays_when_the_default_one_is_off():
    kept = Kept("value", builder().cleanup_incrementally(7, False))
    kept.fill(20)
    kept.at(50)
    for _ in range(6):
        kept.read()
    assert kept.physical == []


@ON_HEAP
@pytest.mark.parametrize("kind", ["list", "map"])
def test_the_cleanup_removes_expired_parts_and_keeps_the_others(kind):
    kept = Kept(kind, incremental(1, False).return_expired_if_not_cleaned_up())
    kept.write("old", "old")
    kept.at(6)
    kept.write("young", "young")
    kept.at(12)
    kept.cell[0] = "another"
    kept.read()
    kept.read()
    kept.cell[0] = "key"
    assert list(kept.state) == ["young"]


@ON_HEAP
def test_the_cleanup_reaches_every_entry_although_others_come_and_go():
    kept = Kept("value", incremental(2, False))
    kept.fill(100)
    kept.at(50)
    for key in range(1000, 1200):
        kept.cell[0] = key
        kept.write("young")
        if key % 3 == 0:
            kept.state.clear()
    assert not [key for key in kept.physical if key < 1000]


@ON_HEAP
def test_every_record_is_for_states_that_ask_for_it():
    for every_record, left in ((False, 20), (True, 0)):
        kept = Kept("value", incremental(5, every_record))
        kept.fill(20)
        kept.at(50)
        for _ in range(6):
            for clean_up in kept.backend.every_record:
                clean_up()
        assert len(kept.physical) == left


@ON_HEAP
def test_what_the_cleanup_removes_is_gone_from_the_next_snapshot():
    kept, store = Kept("value", incremental(5, False)), MemoryFiles()
    kept.fill(20)
    kept.snapshot(1, store)
    kept.backend.snapshot_completed(1)
    kept.at(50)
    for _ in range(10):
        kept.read()
    again = Kept("value", clock=ManualClock(50), restored=kept.snapshot(2, store))
    assert again.physical == []
