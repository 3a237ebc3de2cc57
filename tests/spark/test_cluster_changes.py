"""A cluster that changes while a job runs: speculation, dynamic allocation, decommissioning. The result is exact."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live_jobs import until
from tests.spark.cluster_job import run
from tests.spark.processes import listening_sockets, python_workers, slot_processes, waits_for
from tests.spark.standalone_cluster import Cluster

Start = Callable[..., Cluster]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a cluster with workers on two hosts: Spark runs no second copy of a task on the host of the first."""
    started: list[Cluster] = []

    def cluster(**settings: str) -> Cluster:
        by_key = {key.replace("__", "."): value for key, value in settings.items()}
        started.append(Cluster(tmp_path, ("127.0.0.1", "127.0.0.2"), by_key))
        return started[0]

    yield cluster
    for each in started:
        each.stop()


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_a_task_that_spark_speculates_on_costs_no_restart(start: Start, tmp_path: Path) -> None:
    """The first copy of a task hangs after it has asked its slot. The second, 3 s later, gets the answer."""
    eager = {"interval": "100ms", "multiplier": "1.01", "quantile": "0.1", "minTaskRuntime": "3s"}
    settings = [f"spark.speculation.{key}={value}" for key, value in eager.items()]
    cluster = start()
    stopped: list[int] = []

    def stop_worker() -> None:
        """Stop the Python worker that waits for the slot with the slow record."""
        ports = {port for pid in slot_processes() for _, port in listening_sockets(pid)}
        workers = [pid for number in (1, 2) for pid in python_workers(cluster.worker_pid(number))]
        until(lambda: sum(waits_for(pid, ports) for pid in workers) == 1)
        stopped.extend(pid for pid in workers if waits_for(pid, ports))
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)

    try:
        ended = run(cluster, tmp_path, "pause", "spark.speculation=true", *settings, pause_s=6.0, strike=stop_worker)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):  # Spark has killed the copy that was not needed any more
                os.kill(pid, signal.SIGKILL)
    assert len(stopped) == 1
    logs = cluster.executor_logs()
    assert any(re.search(r"Running task \d+\.1 in stage", log) for log in logs.values()), "Spark ran a second copy"
    assert ended.restarts == 0, ended.output[-2000:]


@pytest.mark.soak  # minutes: CI has half an hour for everything
def test_dynamic_allocation_keeps_the_executors_beside_which_slots_run(start: Start, tmp_path: Path) -> None:
    """While one task waits for a record that takes 8 s, the other executor is idle, which Spark releases after 1 s."""
    eager = {
        "enabled": "true",
        "initialExecutors": "2",
        "minExecutors": "0",
        "executorIdleTimeout": "1s",
        "shuffleTracking.enabled": "true",
        "shuffleTracking.timeout": "1s",
        "schedulerBacklogTimeout": "1s",
    }
    settings = [f"spark.dynamicAllocation.{key}={value}" for key, value in eager.items()]
    cluster = start()
    ended = run(cluster, tmp_path, "pause", *settings, "spark.executor.cores=2", pause_s=8.0)
    assert ended.restarts == 0, ended.output[-2000:]
    assert ended.executors == 2


@pytest.mark.soak  # minutes: CI has half an hour for everything
def test_a_job_leaves_an_executor_that_is_decommissioned(start: Start, tmp_path: Path) -> None:
    cluster = start(spark__decommission__enabled="true")
    ended = run(
        cluster,
        tmp_path,
        "ask",
        "spark.decommission.enabled=true",
        per_second=150.0,
        strike=lambda: os.kill(cluster.worker_pid(2), signal.SIGPWR),
    )
    assert any("decommission" in log.lower() for log in cluster.executor_logs().values())
    assert 1 <= ended.restarts <= 3, ended.output[-2000:]
    assert ended.executors == 1
