"""A DataSet program on a standalone cluster of Spark that loses an executor in the middle: the same answer."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.processes import run_driver
from tests.spark.standalone_cluster import Cluster

# Text, so that its classes travel by value: the executors do not have the tests.
PROGRAM = """
import sys
from tamias.common import Configuration
from tamias.dataset import ExecutionEnvironment, MapFunction

master, marker = sys.argv[1:]
conf = Configuration()
for key, value in {"spark.master": master, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                   "spark.cores.max": "4", "spark.executor.memory": "512m", "spark.ui.enabled": "false",
                   "spark.scheduler.minRegisteredResourcesRatio": "1.0"}.items():
    conf.set_string(key, value)

class Counted(MapFunction):
    def open(self, runtime_context):
        self.seen = runtime_context.get_int_counter("seen")
    def map(self, value):
        self.seen.add()
        return value % 100, value

def kill_this_executor(group):
    import os, signal
    total = sum(value for _, value in group)
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return [total]
    with open(f"/proc/{os.getppid()}/stat") as stat:  # the daemon that forks workers; the JVM is its parent
        os.kill(int(stat.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
    signal.pause()

env = ExecutionEnvironment.get_execution_environment(conf).set_parallelism(4)
shared = env.generate_sequence(1, 20000).map(Counted())
sums = shared.group_by(0).reduce_group(kill_this_executor)
joined = sums.zip_with_index().join(shared.distinct(0)).where(0).equal_to(0).using(lambda a, b: a[1])
expected = sorted(sum(range(first, 20001, 100)) for first in range(1, 101))
assert sorted(joined.collect()) == expected, joined.count()
print("SEEN", env.get_last_job_execution_result().get_accumulator_result("seen"))
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.stop()


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_a_program_that_loses_an_executor_gives_the_same_answer(cluster: Cluster, tmp_path: Path) -> None:
    marker = tmp_path / "executor-killed"
    driver = run_driver(PROGRAM, cluster.master, str(marker))
    try:
        output, _ = driver.communicate(timeout=240)
    except subprocess.TimeoutExpired:
        driver.kill()
        output, _ = driver.communicate()
    assert marker.exists(), output[-3000:]
    assert driver.returncode == 0, output[-3000:]
    assert "SEEN 20000" in output, output[-3000:]
