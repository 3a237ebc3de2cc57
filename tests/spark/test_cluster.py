"""A job on a real standalone cluster of Spark: it survives what a cluster loses, with the exact result."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live_jobs import until
from tests.spark.cluster_job import run
from tests.spark.processes import python_workers, run_driver, slot_processes, worker_daemons
from tests.spark.standalone_cluster import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.stop()


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_a_job_on_a_standalone_cluster_survives_the_loss_of_a_slot(cluster: Cluster, tmp_path: Path) -> None:
    assert run(cluster, tmp_path, "slot").executors == 2
    until(lambda: not list(cluster.scratch.glob("ekorn-slot-*")))  # also that of the slot that was killed is gone


def test_a_job_survives_the_loss_of_an_executor_with_its_slots(cluster: Cluster, tmp_path: Path) -> None:
    output = run(cluster, tmp_path, "executor").output
    killed = re.search(r"KILLED (\d+)", output)
    assert killed is not None and int(killed[1]) > 1, "an executor and at least one slot were killed"


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_slots_end_with_the_jvm_of_their_executor_and_the_job_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    ended = run(cluster, tmp_path, "JVM of an executor")
    assert "SLOTS ENDED True" in ended.output
    assert ended.restarts >= 1


@pytest.mark.soak  # minutes: CI has half an hour for everything
@pytest.mark.parametrize("fault", ["slot", "executor", "JVM of an executor"])
def test_a_continuous_job_survives_what_a_cluster_loses(cluster: Cluster, tmp_path: Path, fault: str) -> None:
    """A lost executor costs one restart: the next attempt waits until Spark has replaced the executor."""
    ended = run(cluster, tmp_path, fault, "ekorn.execution=continuous")
    assert ended.restarts == 1, ended.output[-3000:]


@pytest.mark.soak  # minutes: CI has half an hour for everything
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

    settings = ["heartbeat.interval=300 ms", "ekorn.epoch.stall-timeout=4 s", "spark.task.reaper.killTimeout=5s"]
    try:
        ended = run(cluster, tmp_path, "ask", *settings, per_second=150.0, strike=stop_daemon)
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):  # it ended with its executor
                os.kill(pid, signal.SIGKILL)
    assert stopped, "there was a daemon to stop"
    assert 1 <= ended.restarts < 10, ended.output[-2000:]
    logs = cluster.executor_logs().values()
    assert any("Killing executor JVM because killed task" in log for log in logs), "Spark's reaper ends the executor"


FAILED_START = """
import sys
from ekorn.engine.slots.registering_pool import RegisteringSlotPool
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.spark.driver_side.cluster import SlotLauncher, ship_package
from ekorn.engine.spark.driver_side.session import spark_context
from ekorn.errors import DeploymentError
context = spark_context({"spark.master": sys.argv[1], "spark.driver.host": "127.0.0.1", "spark.cores.max": "4",
                         "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "512m"})
ship_package(context)
launcher, left_out = SlotLauncher(context), [2]

def launch(driver, numbers):
    launcher.launch(driver, [number for number in numbers if number not in left_out])

pool = RegisteringSlotPool(3, "127.0.0.1", launch, Heartbeat(), launcher.release, register_s=20.0)
for _ in range(2):
    try:
        pool.ensure()
    except DeploymentError as error:
        print("ERROR", error, flush=True)
print("STARTS FAILED", flush=True)
sys.stdin.readline()
left_out.clear()
print("STARTED", pool.ensure(), flush=True)
sys.stdin.readline()
pool.shutdown()
print("ENDED", flush=True)
"""


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_a_start_that_failed_leaves_no_slot_behind(cluster: Cluster) -> None:
    """A slot of three never registers: the two others end, each time."""
    driver = run_driver(FAILED_START, cluster.master, stdin=subprocess.PIPE)
    output, orders = driver.stdout, driver.stdin
    assert output is not None and orders is not None
    said = ""

    def hear(word: str) -> None:
        nonlocal said
        while word not in said:
            line = output.readline()
            assert line, said[-3000:]
            said += line

    def go_on() -> None:
        orders.write("\n")
        orders.flush()

    try:
        hear("STARTS FAILED")
        assert said.count("only 2 of 3 slots registered") == 2, said[-3000:]
        until(lambda: slot_processes() == [])
        go_on()
        hear("STARTED [0, 1, 2]")
        assert len(slot_processes()) == 3
        go_on()
        hear("ENDED")
        until(lambda: slot_processes() == [])
    finally:
        driver.kill()
        driver.communicate()
