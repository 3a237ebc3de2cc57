"""Slots as processes, without Spark: what is killed, stopped or left alone changes no result and leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tamias.common import Configuration, RestartStrategies, Types, WatermarkStrategy
from tamias.common.job_status import JobStatus
from tamias.datastream import StreamExecutionEnvironment
from tamias.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from tamias.errors import ConfigurationError
from tamias.testing.local_run import on_local_engine
from tamias.testing.process_engine import on_process_engine

RECORDS = 2_000


def environment(
    parallelism: int = 2, *, heartbeat_ms: int = 100, timeout_ms: int = 1_500
) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("heartbeat.interval", f"{heartbeat_ms} ms")
    configuration.set_string("heartbeat.timeout", f"{timeout_ms} ms")
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(parallelism)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    return env


def sums(env: StreamExecutionEnvironment, per_second: float = 1e9):
    """Numbers, summed per key: every record's result is different, and the last of each key tells all."""
    source = DataGeneratorSource(lambda n: n, RECORDS, RateLimiterStrategy.per_second(per_second))
    return (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        .map(lambda n: (n % 7, n))
        .key_by(lambda v: v[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
    )


EXPECTED_TOTALS = {key: sum(range(key, RECORDS, 7)) for key in range(7)}


def totals(records) -> dict[int, int]:
    return {key: max(total for k, total in records if k == key) for key in {k for k, _ in records}}


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def until(condition, within_s: float = 20.0) -> bool:
    limit = time.monotonic() + within_s
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.02)  # another process's doing: there is nothing to wait on
    return False


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_results_are_those_of_the_local_engine(parallelism: int, registering: bool) -> None:
    with on_process_engine(registering=registering), sums(environment(parallelism)).execute_and_collect() as records:
        found = sorted(records)
    with on_local_engine(), sums(environment(parallelism)).execute_and_collect() as records:
        assert found == sorted(records)
    assert totals(found) == EXPECTED_TOTALS


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_slot_that_is_killed_or_stopped_is_replaced(blow: signal.Signals, registering: bool) -> None:
    env = environment()
    env.enable_checkpointing(50)
    with on_process_engine(registering=registering):
        records = sums(env, per_second=2_000).execute_and_collect()
        handle = records._handle
        assert until(lambda: handle.progress().checkpoints_completed > 1)
        victim = handle.progress().slot_pids[1]
        os.kill(victim, blow)
        found = list(records)
    try:
        progress = handle.progress()
        assert progress.status is JobStatus.FINISHED
        assert progress.restarts >= 1
        assert progress.last_failure is not None and "slot 1" in progress.last_failure
        assert totals(found) == EXPECTED_TOTALS
        assert len(found) == RECORDS
        if registering and blow is signal.SIGSTOP:
            assert running(victim)  # nobody could kill it
            os.kill(victim, signal.SIGCONT)
        assert until(lambda: not running(victim)), "a slot that was given up lives on"
    finally:
        if running(victim):
            os.kill(victim, signal.SIGKILL)


@pytest.mark.parametrize("registering", [False, True], ids=["children", "registering"])
def test_slots_end_with_their_driver(registering: bool) -> None:
    program = f"""
        import time
        from tests.slot.test_slot_processes import environment, sums
        from tamias.testing.process_engine import on_process_engine
        with on_process_engine(registering={registering}):
            env = environment()
            sums(env, per_second=100).filter(lambda v: False).print()
            client = env.execute_async()
            while not client.get_progress().slot_pids:
                time.sleep(0.02)
            print("PIDS", *client.get_progress().slot_pids, flush=True)
            time.sleep(60)
    """
    path = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    driver = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert driver.stdout is not None
    try:
        pids = next([int(p) for p in line.split()[1:]] for line in driver.stdout if line.startswith("PIDS"))
        assert all(running(pid) for pid in pids)
    finally:
        driver.kill()
        driver.wait()
        driver.stdout.close()
    assert until(lambda: not any(running(pid) for pid in pids))


def hang(value):
    time.sleep(3600)
    return value


def test_a_job_whose_code_hangs_can_be_cancelled() -> None:
    env = environment(1, timeout_ms=60_000)
    env.from_collection([1]).map(hang).print()
    with on_process_engine():
        client = env.execute_async()
        assert until(lambda: bool(client.get_progress().slot_pids))
        pids = client.get_progress().slot_pids
        client.cancel().result()
        assert until(lambda: client.get_job_status().result() is JobStatus.CANCELED, 30)
    assert until(lambda: not any(running(pid) for pid in pids))


@pytest.mark.parametrize(("interval_ms", "timeout_ms"), [(0, 100), (100, 100), (200, 100)])
def test_a_heartbeat_that_cannot_be_heard_is_refused(interval_ms: int, timeout_ms: int) -> None:
    env = environment(heartbeat_ms=interval_ms, timeout_ms=timeout_ms)
    env.from_collection([1]).print()
    with on_process_engine(), pytest.raises(ConfigurationError, match=r"heartbeat\.timeout"):
        env.execute()
