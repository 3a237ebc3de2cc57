"""Python processes of Spark that hang: the job restarts from its checkpoint, and nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tamias.common import Configuration
from tamias.datastream import StreamExecutionEnvironment
from tests.live_jobs import until
from tests.spark import tally
from tests.spark.processes import python_workers, worker_daemons

RECORDS = 3_000
STALL_S = 4.0


@pytest.fixture(scope="module", autouse=True)
def _warm_session() -> None:
    """Start Spark and its Python daemon, so that the short timeout of these tests is not spent on it."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    with env.from_collection(range(10)).rebalance().map(lambda n: n).execute_and_collect("warm up") as results:
        assert len(list(results)) == 10


def stop_workers() -> list[int]:
    """Stop all Python workers; return them."""
    workers = python_workers(os.getpid())
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    return workers


def stop_daemon_and_kill_workers() -> list[int]:
    """Stop the daemon that would fork new Python workers, and take the present ones away; return the daemon."""
    daemons = worker_daemons(os.getpid())
    for pid in daemons:
        os.kill(pid, signal.SIGSTOP)
    for pid in python_workers(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    return daemons


def run_with(fault: Callable[[], list[int]], folder: Path) -> list[str]:
    """Run a job that a fault hits after its first checkpoint; check its output; return its failures."""
    env = tally.build(RECORDS, RECORDS / 2, folder)
    env.configure(watched())
    client = env.execute_async("hit by a hang")
    until(lambda: client.get_progress().checkpoints_completed > 0)
    hit = fault()
    assert hit, "there was a process to stop"
    failures: list[str] = []

    def ended() -> bool:
        progress = client.get_progress()
        if progress.last_failure is not None and progress.last_failure not in failures:
            failures.append(progress.last_failure)
        return progress.status.is_terminal_state()

    try:
        until(ended, within_s=120)
        client.get_job_execution_result().result()
    finally:
        client.cancel()
        for pid in hit:
            revive(pid)
    assert tally.verify(RECORDS, folder) == []
    return failures


def watched() -> Configuration:
    configuration = Configuration()
    configuration.set_string("heartbeat.interval", "300 ms")
    configuration.set_string("tamias.epoch.stall-timeout", f"{STALL_S:.0f} s")
    return configuration


def revive(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        return  # the process was killed, as it should be


def test_a_job_whose_python_workers_are_stopped_restarts_and_is_exact(tmp_path: Path) -> None:
    failures = run_with(stop_workers, tmp_path)
    assert any("stalled" in failure and "not answered: " in failure for failure in failures), failures


def test_a_job_whose_worker_daemon_is_stopped_restarts_and_is_exact(tmp_path: Path) -> None:
    failures = run_with(stop_daemon_and_kill_workers, tmp_path)
    assert any("stalled" in failure for failure in failures), failures


def test_a_function_that_takes_longer_than_the_timeout_is_no_hang() -> None:
    def slow(number: int) -> int:
        if number == 3:
            time.sleep(STALL_S * 2)  # the user's own waiting
        return number

    env = StreamExecutionEnvironment.get_execution_environment(watched()).set_parallelism(2)
    with env.from_collection(range(10)).rebalance().map(slow).execute_and_collect("slow") as results:
        assert sorted(results) == list(range(10))  # without checkpoints there is no restart
