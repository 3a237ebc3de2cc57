"""Cyclic garbage that user functions leave behind in a slot, within one epoch."""

from __future__ import annotations

import gc
import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ekorn import garbage
from ekorn.common import Configuration, RuntimeExecutionMode
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.garbage import GarbageWatch
from ekorn.slot import garbage as slot_garbage
from ekorn.slot.garbage import ProcessGarbage
from ekorn.testing.process_engine import on_process_engine

MB = 1 << 20


class LeavesCycles(KeyedProcessFunction):
    """Makes an object that refers to itself for each record; yields the largest memory of the slot so far."""

    def __init__(self, cycle_bytes: int) -> None:
        self.cycle_bytes = cycle_bytes

    def process_element(self, value, ctx):
        cycle: dict[str, object] = {"data": bytearray(self.cycle_bytes)}
        cycle["self"] = cycle
        if value % 100 == 0:
            yield int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024


@pytest.mark.heavy
@pytest.mark.parametrize(("records", "cycle_bytes"), [(2_500, 400_000), (300_000, 3_000)])
def test_cyclic_garbage_of_one_long_epoch_does_not_pile_up(records: int, cycle_bytes: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    keyed = env.set_parallelism(1).from_collection(range(records)).key_by(lambda n: n % 3)
    with on_process_engine(), keyed.process(LeavesCycles(cycle_bytes)).execute_and_collect() as peaks_mb:
        seen = list(peaks_mb)
    assert records * cycle_bytes > 800 * MB
    assert max(seen) < 500


@pytest.mark.heavy
def test_a_slots_process_keeps_the_collector_from_walking_what_was_deployed():
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    frozen = env.set_parallelism(1).from_collection([0]).map(lambda _: gc.get_freeze_count())
    with on_process_engine(), frozen.execute_and_collect() as counts:
        assert next(counts) > 0


def test_growth_by_a_tenth_collects_young_objects_and_growth_by_half_everything():
    watch = GarbageWatch(1000 * MB)
    assert watch.due(1099 * MB) is None
    assert watch.due(1100 * MB) == 1
    watch.collected_young(1090 * MB)
    assert watch.due(1190 * MB) is None
    assert watch.due(1500 * MB) == 2
    watch.collected_all(1400 * MB)
    assert watch.due(1500 * MB) is None


def test_growth_is_counted_from_the_least_memory_since_the_last_collection():
    watch = GarbageWatch(1000 * MB)
    assert watch.due(100 * MB) is None
    assert watch.due(163 * MB) is None
    assert watch.due(164 * MB) == 1
    assert watch.due(228 * MB) == 2


def test_half_a_million_young_objects_are_collected_though_the_memory_does_not_grow():
    watch = GarbageWatch(1000 * MB)
    assert watch.due(1000 * MB, young_objects=499_999) is None
    assert watch.due(1000 * MB, young_objects=500_000) == 1


def test_survivors_of_young_collections_are_collected_when_they_are_many_and_half_of_what_is_there():
    watch = GarbageWatch(1000 * MB)
    watch.collected_young(1000 * MB, survivors=999_999)
    assert watch.due(1000 * MB) is None
    watch.collected_young(1000 * MB, survivors=1)
    assert watch.due(1000 * MB) == 2
    watch.collected_all(1000 * MB, blocks=4_000_000)
    assert watch.due(1000 * MB) is None
    watch.collected_young(1000 * MB, survivors=1_999_999)
    assert watch.due(1000 * MB) is None
    watch.collected_young(1000 * MB, survivors=1)
    assert watch.due(1000 * MB) == 2


SMALL = """
import gc, threading, time
from ekorn.garbage import collect_by_growth

collected = []
gc.callbacks.append(lambda phase, info: phase == "stop" and collected.append(info["collected"]))
room = [[] for _ in range(3_000_000)]  # Python's arenas have gaps for as many objects before the process grows again
kept = room[::1_000]
del room
collect_by_growth(threading.Event())
gc.collect()
collected.clear()
for number in range(1_500_000):  # they fit into the gaps
    cycle = []
    cycle.append(cycle)
    if number % 1_000 == 0:
        time.sleep(0)
time.sleep(0.1)
print(sum(collected) >= 400_000, gc.isenabled())
"""


@pytest.mark.heavy
def test_small_garbage_is_collected_before_it_has_filled_the_gaps_in_pythons_arenas() -> None:
    """Else the garbage of a long epoch grows with its records: each collection leaves more gaps than the last."""
    done = subprocess.run([sys.executable, "-c", SMALL], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("True False\n", "")


GROWING = """
import gc, threading, time, weakref
from ekorn.garbage import collect_by_growth

class Cycle:
    def __init__(self):
        self.itself, self.data = self, bytearray(b"x") * (1 << 20)

collect_by_growth(threading.Event())
assert not gc.isenabled()
first = weakref.ref(Cycle())
for _ in range(800):  # no more megabytes than that, however it ends
    if first() is None:
        print("collected")
        break
    Cycle()
    time.sleep(0.01)
"""


@pytest.mark.heavy
def test_garbage_that_makes_the_process_grow_is_collected_though_pythons_collector_is_off() -> None:
    done = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("collected\n", "")


SCATTERED = """
import gc
from ekorn.garbage import _resident_bytes, collect

gc.disable()
kept = []
for _ in range(5_000):  # 200 megabytes of garbage, with objects between that stay
    cycle = {"data": bytearray(40_000)}
    cycle["itself"] = cycle
    kept.append(bytearray(600))
del cycle
before = _resident_bytes()
collect(2)
print((before - _resident_bytes()) // 100_000_000, len(kept))
"""


@pytest.mark.heavy
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library decides by itself what to give back")
def test_a_collection_gives_memory_back_also_between_objects_that_stay() -> None:
    """Else growth begins above what was freed, and a process takes more memory with every collection."""
    done = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("1 5000\n", "")


STEADY = """
import gc, threading, time
from ekorn.garbage import collect_by_growth

collections = 0

def count(phase, info):
    global collections
    collections += phase == "start"

gc.callbacks.append(count)
collect_by_growth(threading.Event())
kept = [bytearray(b"x") * (1 << 20) for _ in range(200)]
while not collections:
    time.sleep(0.05)
time.sleep(1)
settled = collections
time.sleep(1)
print(len(kept), collections - settled)
"""


@pytest.mark.heavy
def test_memory_that_stays_in_use_is_not_collected_again_and_again() -> None:
    done = subprocess.run([sys.executable, "-c", STEADY], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("200 0\n", "")


BETWEEN_REQUESTS = """
import gc
from ekorn.slot.garbage import ProcessGarbage

gc.disable()
collected = []
gc.callbacks.append(lambda phase, info: collected.append(info["generation"]) if phase == "start" else None)
garbage = ProcessGarbage()
for _ in range(1025):
    garbage.epoch_ended()
print([number for number, generation in enumerate(collected, 1) if generation == 2], set(collected), len(collected))
collected.clear()
garbage.deployed()
print(collected, gc.get_freeze_count() > 0)
garbage.deploying()
print(gc.get_freeze_count())
"""


def test_a_process_collects_after_each_epoch_now_and_then_everything_and_freezes_what_was_deployed() -> None:
    command = [sys.executable, "-c", BETWEEN_REQUESTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.splitlines() == ["[512, 1024] {1, 2} 1025", "[2] True", "0"], done.stderr


class Collector:
    """Stands for Python's collector."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    young_objects = 0

    def collect(self, generation: int = 2) -> int:
        self.calls.append(generation)
        return 0

    def get_count(self) -> tuple[int, int, int]:
        return self.young_objects, 0, 0

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.calls.append(name)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    made = Collector()
    monkeypatch.setattr(garbage, "gc", made)
    monkeypatch.setattr(slot_garbage, "gc", made)
    return made


def test_a_process_of_one_slot_walks_restored_state_once(collector: Collector) -> None:
    of_slot = ProcessGarbage()
    of_slot.deploying()
    assert collector.calls == ["unfreeze"]
    of_slot.deployed()
    assert collector.calls == ["unfreeze", 2, "freeze"]


def test_every_five_hundred_and_twelfth_epoch_collects_everything(collector: Collector) -> None:
    of_slot = ProcessGarbage()
    for _ in range(1_024):
        of_slot.epoch_ended()
    assert len(collector.calls) == 1_024 and set(collector.calls) == {1, 2}
    assert [number for number, call in enumerate(collector.calls, 1) if call == 2] == [512, 1_024]


def watches(before: set[threading.Thread]) -> list[threading.Thread]:
    return [each for each in set(threading.enumerate()) - before if each.name == "garbage-watch"]


def test_a_slot_collects_each_time_its_memory_has_grown_until_it_ends(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, before = threading.Event(), set(threading.enumerate())
    # At the start; grown, and after the collection; the same; grown by less, and after the collection; the same.
    looks = iter([100, 300, 300, 300, 400, 390, 390])

    def next_look() -> int:
        found = next(looks, None)
        if found is None:
            ended.set()
        return (found or 390) * MB

    monkeypatch.setattr(garbage, "_resident_bytes", next_look)
    monkeypatch.setattr(garbage, "_INTERVAL_S", 0.001)
    garbage.collect_by_growth(ended)
    for watch in watches(before):
        watch.join(60)
    assert ended.is_set() and watches(before) == []
    assert collector.calls == ["disable", 2, 1]


def test_where_memory_is_not_told_pythons_collector_stays_on(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage, "_resident_bytes", lambda: None)
    before = set(threading.enumerate())
    garbage.collect_by_growth(threading.Event())
    assert collector.calls == [] and watches(before) == []


def test_the_memory_of_a_process_is_what_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    found = garbage._resident_bytes()
    told = int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) * 1024
    assert found is not None and abs(found - told) < 16 * MB
    monkeypatch.setattr(garbage, "open", missing, raising=False)
    assert garbage._resident_bytes() is None


def missing(*_: object) -> object:
    raise FileNotFoundError("no /proc here")
