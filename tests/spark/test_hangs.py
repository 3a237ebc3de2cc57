"""Python processes of Spark that hang: the job restarts from its checkpoint, and nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
from tests.driver.submitted_jobs import noted_handles
from tests.live_jobs import Held, until
from tests.spark import tally
from tests.spark.processes import python_workers, worker_daemons

RECORDS = 3_000
STALL_S = 6.0


@pytest.fixture(scope="module", autouse=True)
def _warm_session() -> None:
    """Start Spark and its Python daemon, so that the short timeout of these tests is not spent on it."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    with env.from_collection(range(10)).rebalance().map(lambda n: n).execute_and_collect("warm up") as results:
        assert len(list(results)) == 10


def stop_workers() -> list[int]:
    """Stop all Python workers; return them."""
    workers = python_workers(os.getpid())
    return [pid for pid in workers if stop(pid)]


def stop(pid: int) -> bool:
    """Stop a process; return whether it was still there."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    return True


def stop_daemon_and_kill_workers() -> list[int]:
    """Stop the daemon that would fork new Python workers, and take the present ones away; return the daemon."""
    daemons = worker_daemons(os.getpid())
    for pid in daemons:
        os.kill(pid, signal.SIGSTOP)
    for pid in python_workers(os.getpid()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return daemons


def run_with(fault: Callable[[], list[int]], folder: Path, execution: str = "epochs") -> list[str]:
    """Run a job that a fault hits after its first checkpoint; check its output; return its failures."""
    held = Held(folder, RECORDS // 8)
    parallelism = 2 if execution == "epochs" else 1  # a continuous job has a task for each side of an exchange
    env = tally.build(RECORDS, held, folder, execution=execution, parallelism=parallelism)
    env.configure(watched())
    with noted_handles() as handles:
        client = env.execute_async("hit by a hang")
    until(lambda: client.get_progress().checkpoints_completed > 0)
    hit = fault()
    held.let_go()
    assert hit, "there was a process to stop"
    try:
        client.get_job_execution_result().result(150)
    finally:
        client.cancel()
        for pid in hit:
            revive(pid)
    assert tally.verify(RECORDS, folder) == []
    statistics = handles[0].view.statistics
    return [each.trace for each in statistics.failures.failures]


def watched() -> Configuration:
    configuration = Configuration()
    configuration.set_string("heartbeat.interval", "300 ms")
    configuration.set_string("ekorn.epoch.stall-timeout", f"{STALL_S:.0f} s")
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


def test_a_continuous_job_whose_worker_daemon_is_stopped_restarts_and_is_exact(tmp_path: Path) -> None:
    failures = run_with(stop_daemon_and_kill_workers, tmp_path, "continuous")
    assert any("stalled" in failure for failure in failures), failures
    assert len(failures) == 2, "the workers are killed, and the attempt after that stalls: " + repr(failures)


def test_a_continuous_job_whose_python_workers_are_stopped_restarts_once_and_is_exact(tmp_path: Path) -> None:
    failures = run_with(stop_workers, tmp_path, "continuous")
    assert len(failures) == 1 and "stalled" in failures[0], failures


def test_a_function_that_takes_longer_than_the_timeout_is_no_hang() -> None:
    def slow(number: int) -> int:
        if number == 3:
            time.sleep(STALL_S + 2)  # the user's own waiting
        return number

    env = StreamExecutionEnvironment.get_execution_environment(watched()).set_parallelism(2)
    with env.from_collection(range(10)).rebalance().map(slow).execute_and_collect("slow") as results:
        assert sorted(results) == list(range(10))  # without checkpoints there is no restart
