"""A DataSet program on a standalone cluster of Spark that loses an executor in the middle: the same answer."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.processes import TEST_RUN, run_driver
from tests.spark.standalone_cluster import Cluster

# Text, so that its classes travel by value: the executors do not have the tests.
PROGRAM = """
import sys
from ekorn.common import Configuration
from ekorn.dataset import ExecutionEnvironment, MapFunction

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


BEGINNING = """
import os, sys
from ekorn.common import Configuration
from ekorn.dataset import ExecutionEnvironment, MapPartitionFunction

master, folder = sys.argv[1:]
conf = Configuration()
for key, value in {"spark.master": master, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                   "spark.cores.max": "4", "spark.executor.memory": "512m", "spark.ui.enabled": "false",
                   "spark.scheduler.minRegisteredResourcesRatio": "1.0"}.items():
    conf.set_string(key, value)
env = ExecutionEnvironment.get_execution_environment(conf).set_parallelism(4)
"""

# Three subtasks of the last stage have delivered their records when the executor of the fourth is lost, and with it
# files of the shuffle that it reads.
DEALT = (
    BEGINNING
    + """
def in_another_order(values):
    import random
    found = list(values)
    random.SystemRandom().shuffle(found)  # as the records of a shuffle may arrive
    return found

class Strike(MapPartitionFunction):
    def open(self, runtime_context):
        self.subtask = runtime_context.get_index_of_this_subtask()

    def map_partition(self, values):
        import os, signal, time
        yield from values
        if self.subtask < 3:
            open(os.path.join(folder, f"done-{self.subtask}"), "w").close()
            return
        while not all(os.path.exists(os.path.join(folder, f"done-{each}")) for each in range(3)):
            time.sleep(0.05)
        time.sleep(2)  # the driver has their results
        try:
            os.close(os.open(os.path.join(folder, "struck"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        with open(f"/proc/{os.getppid()}/stat") as stat:  # the daemon that forks workers; the JVM is its parent
            os.kill(int(stat.read().rpartition(")")[2].split()[1]), signal.SIGKILL)
        signal.pause()

placed = env.generate_sequence(1, 20000).partition_by_hash("*").map_partition(in_another_order)
found = sorted(placed.rebalance().map_partition(Strike()).collect())
assert os.path.exists(os.path.join(folder, "struck"))
print("LOST", 20000 - len(set(found)), "DOUBLED", len(found) - len(set(found)), flush=True)
"""
)

FRAME = (
    BEGINNING
    + """
import signal, time
from tests.spark.processes import TEST_RUN, executors

iteration = env.generate_sequence(1, 1000).iterate(2)
frame = iteration.close_with(iteration.map(lambda x: x + 1)).map(lambda x: (x,)).to_data_frame("x long")
killed = executors(TEST_RUN[0], os.environ[TEST_RUN[0]])[0]
os.kill(killed, signal.SIGKILL)
time.sleep(2)
found = sorted(row.x for row in frame.collect())
assert found == list(range(3, 1003)), len(found)
print("SAME", flush=True)
"""
)


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


def run(program: str, cluster: Cluster, folder: Path) -> str:
    driver = run_driver(program, cluster.master, str(folder))
    try:
        output, _ = driver.communicate(timeout=240)
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0, output[-4000:]
    return output


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_records_that_are_dealt_after_a_shuffle_come_once_when_an_executor_is_lost(
    cluster: Cluster, tmp_path: Path
) -> None:
    assert "LOST 0 DOUBLED 0" in run(DEALT, cluster, tmp_path)


@pytest.mark.soak  # a minute: CI has half an hour for everything
def test_a_data_frame_of_an_iteration_outlives_an_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*TEST_RUN)  # the program finds the executors of this test run by it
    started = Cluster(tmp_path)
    try:
        assert "SAME" in run(FRAME, started, tmp_path)
    finally:
        started.stop()
