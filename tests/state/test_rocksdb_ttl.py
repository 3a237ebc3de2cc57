"""Expiring state in RocksDB: the sweep of entries that are not read, and snapshots without expired entries."""

import logging
import os

import pytest

from ekorn.clock import ManualClock
from ekorn.common.time import Duration, Time
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.keygroups import state_key
from ekorn.state.rocksdb.limits import RocksLimits
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.memory import MemoryFiles
from tests.state.backends import EVERYTHING, GROUPS, rocksdb
from tests.state.expiring import KINDS, TTL_MS, Target, handle_of


def configured(ttl_ms=TTL_MS):
    return StateTtlConfig.new_builder(Time.milliseconds(ttl_ms)).return_expired_if_not_cleaned_up()


class Kept:
    def __init__(self, kind, config, *, clock=None, restored=None, windowed=False, **more):
        self.kind, self.clock, self.name = kind, clock or ManualClock(), f"w/{kind}" if windowed else kind
        self.backend = rocksdb(EVERYTHING, self.clock, **more)
        if restored is not None:
            self.backend.restore(*restored, EVERYTHING)
        states = self.backend.in_windows("w/") if windowed else self.backend
        self.cell, self.windowed = (self.backend.window_cell if windowed else self.backend.cell), windowed
        self.state = handle_of(states, kind, config.build())

    def write(self, key, value="v", entry="m"):
        self.cell[0] = (state_key(key), (0, 10)) if self.windowed else state_key(key)
        if self.kind == "value":
            self.state.update(value)
        elif self.kind == "map":
            self.state.put(entry, value)
        else:
            self.state.add(value)

    def forget(self):
        """Write everything to disk, so that no entry is in use."""
        for table in self.backend.rocks.by_name.values():
            table.make_room()

    def epochs(self, count=1):
        for _ in range(count):
            self.backend.end_epoch()

    @property
    def physical(self):
        return [key[0] if self.windowed else key for key, _ in self.backend.entries(self.name)]

    def parts(self, key):
        return dict(self.backend.entries(self.name))[key]

    def snapshot(self):
        store = MemoryFiles()
        captured = self.backend.snapshot(1)
        captured.key_groups = EVERYTHING
        return OperatorRestore("operator", (captured.write(Target(store)),), (), self.backend.infos(), 1, GROUPS), store


@pytest.fixture
def kept():
    made = []

    def make(*args, **more):
        made.append(Kept(*args, **more))
        return made[-1]

    yield make
    for each in made:
        each.backend.close()


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_expired_is_removed_although_nobody_reads_it(kept, kind, windowed):
    states = kept(kind, configured(), windowed=windowed)
    for key in range(30):
        states.write(key)
    states.forget()
    states.clock.set_ms(9)
    states.write("young")
    states.epochs()
    assert len(states.physical) == 31
    states.clock.set_ms(10)
    states.epochs()
    assert states.physical == ["young"]
    states.clock.set_ms(19)
    states.forget()
    states.epochs()
    assert states.physical == []


@pytest.mark.parametrize("kind", ["list", "map"])
def test_of_lists_and_maps_the_expired_parts_go(kept, kind):
    states = kept(kind, configured())
    for number, at_ms in enumerate((0, 3, 6)):
        states.clock.set_ms(at_ms)
        states.write("key", f"v{number}", f"m{number}")
        states.forget()  # one piece of the list for each
    states.clock.set_ms(12)
    states.epochs()
    stamped = (3, "v1"), (6, "v2")
    assert states.parts("key") == (
        [(3, "v1"), (6, "v2")] if kind == "list" else dict(zip(("m1", "m2"), stamped, strict=True))
    )
    states.write("key", "new", "new")
    states.forget()
    states.clock.set_ms(18)
    states.epochs()
    assert states.parts("key") == ([(12, "new")] if kind == "list" else {"new": (12, "new")})
    states.cell[0] = "key"
    assert list(states.state.get() if kind == "list" else states.state.values()) == ["new"]


def test_a_list_in_use_is_left_alone_and_swept_later(kept):
    states = kept("list", configured())
    states.write("key", "old")
    states.forget()
    states.clock.set_ms(12)
    states.write("key", "new")  # the entry is now in use, but was not read
    states.epochs()
    states.cell[0] = "key"
    assert list(states.state.get()) == ["old", "new"]
    states.forget()
    states.epochs()
    assert states.parts("key") == [(12, "new")]


def test_a_value_that_was_renewed_after_it_was_written_stays(kept):
    states = kept("value", configured())
    states.write("key", "old")
    states.forget()
    states.clock.set_ms(12)
    states.write("key", "new")
    states.epochs()
    assert states.parts("key") == (12, "new")


def test_a_sweep_takes_some_entries_with_every_epoch_and_goes_on_where_it_stopped(kept):
    states = kept("value", configured(), limits=RocksLimits(swept_entries=10, swept_range_cost=0))
    for key in range(25):
        states.write(key)
    states.forget()
    states.clock.set_ms(10)
    left = []
    for _ in range(4):
        states.epochs()
        left.append(len(states.physical))
    assert left == [15, 5, 0, 0]


def test_the_logger_that_flink_documents_tells_what_a_sweep_did(kept, caplog):
    states = kept("value", configured(), limits=RocksLimits(swept_entries=10, swept_range_cost=0))
    for key in range(15):
        states.write(key)
    states.forget()
    states.clock.set_ms(10)
    states.epochs()
    assert caplog.messages == [], "it is a matter of debugging"
    with caplog.at_level(logging.DEBUG, "org.rocksdb.FlinkCompactionFilter"):
        states.epochs(2)
    (line,) = caplog.messages  # the second epoch rests
    assert line == (
        "state 'value': checked 5 entries in RocksDB, removed 5; TTL: 10 ms, current timestamp: 10 ms; "
        "the next round begins at 20 ms"
    )


def test_a_sweep_through_many_empty_key_groups_takes_several_epochs(kept):
    states = kept("value", configured(), limits=RocksLimits(swept_entries=50))
    states.write("key")
    states.forget()
    states.clock.set_ms(10)
    states.epochs()
    (sweep,) = states.backend.rocks.sweeps
    assert sweep.in_round
    states.epochs(3)
    assert not sweep.in_round
    assert states.physical == []


def test_a_sweep_rests_until_something_can_have_expired(kept):
    states = kept("value", configured(1000))
    for at_ms in (100, 300):
        states.clock.set_ms(at_ms)
        states.write(at_ms)
    states.forget()
    (sweep,) = states.backend.rocks.sweeps
    states.epochs()
    assert sweep.checked == 2
    states.clock.set_ms(1099)
    states.epochs()
    assert sweep.checked == 2, "it looked in vain"
    states.clock.set_ms(1100)
    states.epochs()
    assert sweep.checked == 4
    assert states.physical == [300]


def test_the_longest_rest_can_be_configured(kept):
    config = configured(10_000).cleanup_in_rocksdb_compact_filter(1000, Duration.of_millis(50))
    states = kept("value", config)
    states.epochs()
    (sweep,) = states.backend.rocks.sweeps
    assert sweep.rests_until_ms == 50


def test_a_period_of_0_is_none(kept):
    states = kept("value", configured(10_000).cleanup_in_rocksdb_compact_filter(1000, Duration.of_millis(0)))
    states.epochs()
    (sweep,) = states.backend.rocks.sweeps
    assert sweep.rests_until_ms == 10_000


class ClockOfReadings(ManualClock):
    """A clock that shows a list of times, one with each look at it."""

    def __init__(self):
        super().__init__()
        self.readings: list[int] = []

    def now_ms(self):
        return self.readings.pop(0) if self.readings else super().now_ms()


def test_the_clock_is_looked_at_as_often_as_configured(kept):
    clock = ClockOfReadings()
    states = kept("value", configured().cleanup_in_rocksdb_compact_filter(4), clock=clock)
    for key in range(20):
        states.write(key)
    states.forget()
    clock.readings = [5, 5, 5, 10, 10, 10, 10]
    states.epochs()
    # The clock is read at the beginning and after every fourth entry; from the third time on everything has expired.
    assert len(states.physical) == 11


@pytest.mark.parametrize(
    "config",
    [
        configured().disable_cleanup_in_background(),
        configured().disable_cleanup_in_background().cleanup_incrementally(10, True),
    ],
    ids=["nothing", "the heap's"],
)
def test_without_a_cleanup_for_rocksdb_only_reads_remove(kept, config):
    states = kept("value", config)
    states.write("key")
    states.forget()
    states.clock.set_ms(100)
    states.epochs(3)
    assert states.physical == ["key"]
    assert not states.backend.every_record


def test_an_explicit_cleanup_stays_when_the_default_one_is_off(kept):
    states = kept("value", configured().disable_cleanup_in_background().cleanup_in_rocksdb_compact_filter(1000))
    states.write("key")
    states.forget()
    states.clock.set_ms(100)
    states.epochs()
    assert states.physical == []


def test_what_was_removed_leaves_the_disk(kept):
    states = kept("value", configured())
    for key in range(5000):
        states.write(key, f"{key}" * 20)
    states.forget()
    store, folder = states.backend.rocks.store, states.backend.rocks.folder

    def on_disk():
        return sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder) if name.endswith(".sst"))

    store.compact()
    before = on_disk()
    states.clock.set_ms(10)
    states.epochs()
    store.compact()
    assert on_disk() < before / 50


# ------------------------------------------------------------------------------------------------------ full snapshots


@pytest.mark.parametrize("kind", KINDS)
def test_full_snapshots_leave_expired_entries_out_and_the_state_alone(kept, kind):
    config = configured().disable_cleanup_in_background().cleanup_full_snapshot()
    states = kept(kind, config, incremental=False)
    for key in range(5):
        states.write(key)
    states.clock.set_ms(9)
    states.write("key", "young")
    states.clock.set_ms(15)
    again = kept(kind, config, clock=ManualClock(15), restored=states.snapshot())
    assert again.physical == ["key"]
    assert len(states.physical) == 6


def test_incremental_snapshots_keep_them(kept):
    config = configured().disable_cleanup_in_background().cleanup_full_snapshot()
    states = kept("value", config)
    states.write("key")
    states.clock.set_ms(15)
    assert kept("value", config, clock=ManualClock(15), restored=states.snapshot()).physical == ["key"]


@pytest.mark.parametrize("kind", ["list", "map"])
def test_savepoints_leave_out_the_expired_parts_of_lists_and_maps(kept, kind):
    config = configured().disable_cleanup_in_background().cleanup_full_snapshot()
    states = kept(kind, config)
    states.write("key", "old", "old")
    states.clock.set_ms(6)
    states.write("key", "young", "young")
    states.clock.set_ms(12)
    store = MemoryFiles()
    captured = states.backend.full_snapshot(1)
    captured.key_groups = EVERYTHING
    files = captured.write(Target(store))
    restored = OperatorRestore("operator", (files,), (), states.backend.infos(), 1, GROUPS), store
    again = kept(kind, config, clock=ManualClock(12), restored=restored)
    assert again.parts("key") == ([(6, "young")] if kind == "list" else {"young": (6, "young")})
    assert len(states.parts("key")) == 2
