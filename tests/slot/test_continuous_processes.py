"""Jobs that run continuously in slot processes: nothing is lost or doubled, whatever ends them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import JobStatus, RestartStrategies, WatermarkStrategy
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.functions import KeyedProcessFunction
from ekorn.errors import JobExecutionError
from ekorn.testing.process_engine import on_process_engine
from tests import live_jobs
from tests.live_jobs import Held, Tracks, comes_to_rest, until
from tests.slot.summing_job import EXPECTED_TOTALS, RECORDS, environment, sums, totals
from tests.spark import every_kind, slow_sink, tally

pytestmark = pytest.mark.long


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
def test_a_killed_slot_is_replaced_and_nothing_is_doubled(registering: bool, tmp_path: Path) -> None:
    env, held = environment(), Held(tmp_path, RECORDS // 8)
    env.enable_checkpointing(50)
    with on_process_engine(registering=registering, continuous=True):
        records = sums(env, held).execute_and_collect()
        client = records.job_client
        until(lambda: client.get_progress().checkpoints_completed > 1)
        os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
        held.let_go()
        found = list(records)
    progress = client.get_progress()
    assert progress.status is JobStatus.FINISHED
    assert progress.restarts >= 1
    assert progress.last_failure is not None and "slot 1" in progress.last_failure
    assert totals(found) == EXPECTED_TOTALS
    assert len(found) == RECORDS


def test_every_kind_of_operator_gives_the_results_of_epochs(tmp_path: Path) -> None:
    with on_process_engine(continuous=True):
        every_kind.build(4_000, 4_000, tmp_path, parallelism=2, kinds=every_kind.WITHOUT_LOOP).execute()
    assert every_kind.verify(4_000, tmp_path, every_kind.WITHOUT_LOOP) == []


def test_a_savepoint_of_a_continuous_job_continues_in_epochs_at_another_parallelism(tmp_path: Path) -> None:
    with on_process_engine(continuous=True):
        client = tally.build(6_000, Held(tmp_path, 2_000, 3_000), tmp_path, parallelism=2).execute_async()
        until(lambda: client.get_progress().records_read > 500)
        path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
        assert client.get_job_status().result() is JobStatus.FINISHED
    with on_process_engine():
        tally.build(6_000, 1e9, tmp_path, parallelism=3, restore=path).execute()
    assert tally.verify(6_000, tmp_path) == []


def test_a_savepoint_of_epochs_continues_continuously(tmp_path: Path) -> None:
    with on_process_engine():
        client = tally.build(6_000, Held(tmp_path, 2_000, 3_000), tmp_path, parallelism=3).execute_async()
        until(lambda: client.get_progress().records_read > 500)
        path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    with on_process_engine(continuous=True):
        tally.build(6_000, 1e9, tmp_path, parallelism=2, restore=path).execute()
    assert tally.verify(6_000, tmp_path) == []


def fails_at(number: int) -> Any:
    def check(value):
        if value[1] == number:
            raise ValueError(f"no {number}")
        return value

    return check


def test_an_exception_of_the_users_code_reaches_the_program_as_itself() -> None:
    env = environment()
    env.set_restart_strategy(RestartStrategies.no_restart())
    numbers = env.from_collection([(n % 3, n) for n in range(100)])
    numbers.key_by(lambda v: v[0]).map(fails_at(42)).print()
    with on_process_engine(continuous=True), pytest.raises(JobExecutionError, match="ValueError: no 42"):
        env.execute()


def test_a_cancelled_job_ends() -> None:
    env = environment()
    sums(env, per_second=100).print()
    with on_process_engine(continuous=True):
        client = env.execute_async()
        until(lambda: client.get_progress().records_read > 0)
        client.cancel().result()
        until(lambda: client.get_job_status().result() is JobStatus.CANCELED)


class Alarm(KeyedProcessFunction):
    """Emits when its timer fires, half a second after a record."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 500)
        yield "record"

    def on_timer(self, timestamp, ctx):
        yield "alarm"


def test_a_processing_time_timer_fires_though_no_record_comes(tmp_path: Path) -> None:
    env, held = environment(), Held(tmp_path, RECORDS // 8)
    source = DataGeneratorSource(lambda n: n, RECORDS, held)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    # One record of all, whichever subtask is first: the first sum of a key depends on that.
    alarms = numbers.filter(lambda n: n == 0).key_by(lambda n: n).process(Alarm())
    with on_process_engine(continuous=True), alarms.execute_and_collect() as records:
        assert [next(records), next(records)] == ["record", "alarm"]
        held.let_go()
        assert list(records) == []


def test_a_slow_operator_stops_the_source(tmp_path: Path) -> None:
    read, processed, gate = Tracks(tmp_path / "read"), Tracks(tmp_path / "processed"), tmp_path / "gate"

    def waits(value):
        while not gate.exists():
            time.sleep(0.02)
        return processed(value)

    env = environment(2)
    source = DataGeneratorSource(lambda n: read((n, bytes(20_000))), 20_000)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").set_parallelism(1)
    in_the_other_slot = numbers.partition_custom(lambda key, count: 1, lambda v: v[0])
    in_the_other_slot.map(waits).filter(lambda v: False).print()
    with on_process_engine(continuous=True):
        client = env.execute_async()
        until(lambda: read.count > 0)
        until(lambda: comes_to_rest(read))
        assert processed.count == 0
        assert read.count < 5_000, "the queues between two subtasks hold some megabytes"
        gate.touch()
        client.get_job_execution_result().result()
    assert read.count == processed.count == 20_000


def test_a_slow_sink_stops_the_source_with_flat_memory_and_times_that_say_where(tmp_path: Path) -> None:
    env = environment(2)
    tracks = slow_sink.build(env, tmp_path)
    with on_process_engine(continuous=True):
        client = env.execute_async()
        try:
            found = slow_sink.watch(client, *tracks)
        finally:
            client.cancel().result()
    slow_sink.verify(found)


def test_a_program_that_does_not_read_its_results_stops_the_source(tmp_path: Path) -> None:
    read = Tracks(tmp_path / "read")
    env = live_jobs.environment(parallelism=1, ekorn__collect__buffer_size="1 mb")
    source = DataGeneratorSource(lambda n: read((n, bytes(2_000))), 100_000, RateLimiterStrategy.per_second(20_000))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    with on_process_engine(continuous=True), numbers.execute_and_collect() as records:
        next(records)
        until(lambda: comes_to_rest(read))
        assert read.count < 50_000
        assert sum(1 for _ in records) == 99_999
    assert read.count == 100_000
