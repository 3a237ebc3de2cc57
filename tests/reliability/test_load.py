"""Difficult loads: keys that come and go, one hot key, slow sinks, large values, records that kill their process."""

from __future__ import annotations

import ctypes
import os
import random
import resource
import time
from collections import Counter
from pathlib import Path

import pytest

from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.common.job_status import JobStatus
from ekorn.datastream import KeyedProcessFunction, MapFunction, SinkFunction
from ekorn.datastream.state import StateTtlConfig, ValueStateDescriptor
from ekorn.datastream.window import EventTimeSessionWindows
from ekorn.testing.by_epoch import EpochSource, timed
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.process_engine import on_process_engine
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from tests.driver.submitted_jobs import noted_handles
from tests.live_jobs import environment, expected_tally, generated, tallied, until

# -------------------------------------------------------------------------------------------------------------- churn


class Remember(KeyedProcessFunction):
    """Keeps a value for every key, which expires 50 ms after the last write."""

    def open(self, runtime_context):
        descriptor = ValueStateDescriptor("last", Types.STRING())
        descriptor.enable_time_to_live(StateTtlConfig.new_builder(Time.milliseconds(50)).build())
        self.last = runtime_context.get_state(descriptor)

    def process_element(self, value, ctx):
        self.last.update("x" * 50)
        yield value


def sizes(stream) -> list[int]:
    """Return the size of every checkpoint: one in each epoch, each with all state."""
    run = run_scripted(stream)
    assert run.status is JobStatus.FINISHED
    return [size for _, size in sorted(run.engine.bytes_written.items())]


def churn(directory: Path, backend: str, keys: int, shape: str) -> list[int]:
    """Send every key once. The script's clock and event time advance by 10 ms in each epoch."""
    env = environment(directory, state__backend__type=backend, execution__checkpointing__incremental="false")
    if shape == "ttl":
        source = env.from_source(ScriptedSource([list(range(keys))], [100]), WatermarkStrategy.no_watermarks(), "keys")
        return sizes(source.uid("keys").key_by(lambda n: n).process(Remember()).uid("remember"))
    epochs = [[(n, n // 10, n // 10 - 1) for n in range(start, start + 100)] for start in range(0, keys, 100)]
    source = env.from_source(EpochSource(epochs), WatermarkStrategy.no_watermarks(), "keys").uid("keys")
    sessions = timed(source).key_by(lambda n: n).window(EventTimeSessionWindows.with_gap(Time.milliseconds(50)))
    return sizes(sessions.reduce(lambda a, b: b).uid("sessions"))


@pytest.mark.parametrize(("backend", "shape"), [("hashmap", "ttl"), ("hashmap", "sessions"), ("rocksdb", "ttl")])
def test_keys_that_come_and_go_leave_nothing_behind(backend: str, shape: str, tmp_path: Path) -> None:
    found = churn(tmp_path, backend, 6_000, shape)
    assert len(found) >= 50
    assert max(found[30:]) < 1.5 * max(found[10:25]), found


@pytest.mark.soak
@pytest.mark.parametrize("shape", ["ttl", "sessions"])
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_a_million_keys_that_come_and_go_leave_nothing_behind(backend: str, shape: str, tmp_path: Path) -> None:
    found = churn(tmp_path, backend, 1_000_000, shape)
    assert max(found[4_000:]) < 1.5 * max(found[100:2_000])


# ---------------------------------------------------------------------------------------------------------- many keys


class CountAgain(KeyedProcessFunction):
    """Counts the records of a key; emits the counts of every hundredth key, and every count above 2."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count > 2 or (count == 2 and value % 100 == 0):
            yield value, count


def many_keys(keys: int, directory: Path, backend: str) -> None:
    """Send every key twice. The job restores all keys between the first and the second time, and once more."""
    env = environment(directory, parallelism=2, restarts=5, state__backend__type=backend)
    records = list(range(keys)) * 2
    source = env.from_source(ScriptedSource([records], [keys // 20]), WatermarkStrategy.no_watermarks(), "keys")
    counts = source.uid("keys").set_parallelism(1).key_by(lambda n: n).process(CountAgain()).uid("count")
    run = run_scripted(counts, Script(crashes=[Crash("after-epoch", 20), Crash("in-epoch", 4 * 30)]))
    assert run.handle.progress().restarts == 2
    assert sorted(run.records) == [(key, 2) for key in range(0, keys, 100)]


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_many_keys_are_restored_between_their_first_and_second_record(backend: str, tmp_path: Path) -> None:
    many_keys(20_000, tmp_path, backend)


@pytest.mark.soak
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_ten_million_keys_are_restored_between_their_first_and_second_record(backend: str, tmp_path: Path) -> None:
    many_keys(10_000_000, tmp_path, backend)


# ------------------------------------------------------------------------------------------------------------ hot key


@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
def test_one_key_with_four_fifths_of_the_load_changes_no_result(backend: str, tmp_path: Path) -> None:
    chance = random.Random(43)
    records = [(0 if chance.random() < 0.8 else chance.randrange(1, 100), 1) for _ in range(10_000)]
    env = environment(tmp_path, parallelism=3, restarts=3, state__backend__type=backend)
    source = env.from_source(ScriptedSource([records], [700]), WatermarkStrategy.no_watermarks(), "records")
    counts = source.uid("records").set_parallelism(1).key_by(lambda r: r[0]).sum(1).uid("sum")
    run = run_scripted(counts, Script(crashes=[Crash("after-epoch", 5), Crash("in-epoch", 40)]))
    expected = Counter(key for key, _ in records)
    assert Counter(run.records) == Counter((key, n) for key, count in expected.items() for n in range(1, count + 1))


# --------------------------------------------------------------------------------------------------------- a slow sink

HANDLED: list[int] = []


class Slow(SinkFunction):
    """Takes a millisecond for each record; the source is a hundred thousand times faster."""

    def invoke(self, value, context):
        time.sleep(0.001)
        HANDLED.append(value)


def test_behind_a_slow_sink_checkpoints_complete_and_little_data_is_in_flight(tmp_path: Path) -> None:
    HANDLED.clear()
    env = environment(tmp_path, interval_ms=50)
    generated(env, None).add_sink(Slow())
    with on_local_engine():
        client = env.execute_async()
        until(lambda: client.get_progress().checkpoints_completed >= 3)
        largest = 0
        while client.get_progress().checkpoints_completed < 12:
            assert client.get_job_status().result() is JobStatus.RUNNING
            largest = max(largest, client.get_progress().last_epoch_records)
            time.sleep(0.005)  # the job makes progress by itself: there is nothing to wait on
        read = client.get_progress().records_read
        client.cancel().result()
        until(lambda: client.get_job_status().result() is JobStatus.CANCELED)
    assert client.get_progress().checkpoints_failed == 0
    assert largest <= 1_000, "an epoch is no longer than what the sink takes in about a second"
    assert read <= len(HANDLED) + 1_000
    assert sorted(HANDLED) == list(range(len(HANDLED)))


# ---------------------------------------------------------------------------------------------------- large and deadly


def test_state_values_of_thirty_megabytes_are_checkpointed_and_restored(tmp_path: Path) -> None:
    env = environment(tmp_path, restarts=2)
    source = env.from_source(ScriptedSource([[1, 1, 1]], [1]), WatermarkStrategy.no_watermarks(), "keys")

    def longer(n, kept):
        grown = (kept or b"") + bytes([n]) * (10 << 20)
        return (n, len(grown), set(grown) == {n}), grown

    stream = source.uid("keys").key_by(lambda n: n).map_with_state(longer).uid("longer")
    run = run_scripted(stream, Script(crashes=[Crash("after-epoch", 2)]))
    assert run.records == [(1, size << 20, True) for size in (10, 20, 30)]
    assert run.handle.progress().restarts == 1


class Deadly(MapFunction):
    """Kills its process at one record, in another way each time, until the ways are used up."""

    def open(self, runtime_context):
        self.attempt = runtime_context.get_attempt_number()

    def map(self, value):
        if value == 700 and self.attempt == 0:
            os._exit(5)
        if value == 700 and self.attempt == 1:
            ctypes.string_at(0)
        if value == 700 and self.attempt == 2:
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, hard))
            bytearray(8 << 30)
        return value


def test_a_record_that_killed_its_process_is_processed_once_in_the_end(tmp_path: Path) -> None:
    """The process exits silently, crashes in native code, and runs out of memory; each failure names the operator."""
    env = environment(tmp_path, parallelism=2, restarts=5)
    numbers = generated(env, 1_500, per_second=3_000).map(Deadly()).name("deadly").uid("deadly").set_parallelism(1)
    with on_process_engine(), noted_handles() as handles:
        found = list(tallied(numbers, 7).execute_and_collect())
    (handle,) = handles
    assert sorted(found) == sorted(expected_tally(1_500, 7))
    assert handle.progress().restarts == 3
    failures = [each.trace.splitlines()[0] for each in handle.view.statistics.failures.failures]
    for words in ("exited with code 5", "signal 11", "MemoryError"):
        told = [failure for failure in failures if words in failure]
        assert told and "deadly" in told[0], failures
