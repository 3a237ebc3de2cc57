"""A job on a real standalone cluster of Spark: it survives what a cluster loses, with the exact result."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.cluster_job import run
from tests.spark.processes import python_workers, worker_daemons
from tests.spark.standalone_cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.stop()


def test_a_job_on_a_standalone_cluster_survives_the_loss_of_a_slot(cluster: Cluster, tmp_path: Path) -> None:
    assert run(cluster, tmp_path, "slot").executors == 2


def test_a_job_survives_the_loss_of_an_executor_with_its_slots(cluster: Cluster, tmp_path: Path) -> None:
    output = run(cluster, tmp_path, "executor").output
    killed = re.search(r"KILLED (\d+)", output)
    assert killed is not None and int(killed[1]) > 1, "an executor and at least one slot were killed"


def test_slots_end_with_the_jvm_of_their_executor_and_the_job_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    ended = run(cluster, tmp_path, "JVM of an executor")
    assert "SLOTS ENDED True" in ended.output
    assert ended.restarts >= 1


def test_a_job_leaves_an_executor_whose_python_daemon_is_stopped(cluster: Cluster, tmp_path: Path) -> None:
    """Spark kills Python workers through the daemon. The executor ends, because tasks wait for a daemon that hangs."""
    stopped: list[int] = []

    def stop_daemon() -> None:
        worker = cluster.worker_pid(2)
        stopped.extend(worker_daemons(worker))
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        for pid in python_workers(worker):
            os.kill(pid, signal.SIGKILL)

    settings = ["heartbeat.interval=300 ms", "tamias.epoch.stall-timeout=4 s", "spark.task.reaper.killTimeout=5s"]
    try:
        ended = run(cluster, tmp_path, "ask", *settings, per_second=150.0, strike=stop_daemon)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):  # it ended with its executor
                os.kill(pid, signal.SIGKILL)
    assert stopped, "there was a daemon to stop"
    assert 1 <= ended.restarts < 10, ended.output[-2000:]
