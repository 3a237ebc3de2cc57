"""Jobs that run continuously in slot processes: nothing is lost or doubled, whatever ends them."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tamias.common import JobStatus, RestartStrategies
from tamias.datastream.functions import KeyedProcessFunction
from tamias.errors import JobExecutionError
from tamias.testing.process_engine import on_process_engine
from tests.live_jobs import until
from tests.slot.test_slot_processes import EXPECTED_TOTALS, RECORDS, environment, sums, totals
from tests.spark import every_kind, tally

pytestmark = pytest.mark.long


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
def test_a_killed_slot_is_replaced_and_nothing_is_doubled(registering: bool) -> None:
    env = environment()
    env.enable_checkpointing(50)
    with on_process_engine(registering=registering, continuous=True):
        records = sums(env, per_second=2_000).execute_and_collect()
        client = records.job_client
        until(lambda: client.get_progress().checkpoints_completed > 1)
        os.kill(client.get_progress().slot_pids[1], signal.SIGKILL)
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
        client = tally.build(6_000, 3_000, tmp_path, parallelism=2).execute_async()
        until(lambda: client.get_progress().records_read > 500)
        path = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
        assert client.get_job_status().result() is JobStatus.FINISHED
    with on_process_engine():
        tally.build(6_000, 1e9, tmp_path, parallelism=3, restore=path).execute()
    assert tally.verify(6_000, tmp_path) == []


def test_a_savepoint_of_epochs_continues_continuously(tmp_path: Path) -> None:
    with on_process_engine():
        client = tally.build(6_000, 3_000, tmp_path, parallelism=3).execute_async()
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


def test_a_processing_time_timer_fires_though_no_record_comes() -> None:
    env = environment()
    first = sums(env, per_second=800).filter(lambda v: v == (0, 0))
    alarms = first.key_by(lambda v: v[0]).process(Alarm())
    with on_process_engine(continuous=True), alarms.execute_and_collect() as records:
        assert Counter(records) == {"record": 1, "alarm": 1}
