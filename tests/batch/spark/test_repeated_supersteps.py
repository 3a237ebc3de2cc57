"""Supersteps of which Spark repeats tasks, or loses an executor: every record counts once."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.spark.processes import TEST_RUN, run_driver
from tests.spark.standalone_cluster import Cluster

PROGRAM = """
import glob, os, sys
from ekorn.common import Configuration
from ekorn.dataset import ConvergenceCriterion, ExecutionEnvironment, LongSumAggregator, MapPartitionFunction

master, folder, fault, supersteps = sys.argv[1:]
SUPERSTEPS = int(supersteps)
COUNT = 40_000

class Step(MapPartitionFunction):
    def __init__(self):
        self.seen = 0

    def open(self, runtime_context):
        self.superstep = runtime_context.get_superstep_number()
        self.records = runtime_context.get_iteration_aggregator("records")
        self.calls = runtime_context.get_int_counter("calls")
        before = runtime_context.get_previous_iteration_aggregate("records")
        assert before == (None if self.superstep == 1 else COUNT), before

    def map_partition(self, values):
        for value in values:
            self.seen += 1
            self.records.aggregate(1)
            self.calls.add()
            if fault == "task" and self.seen == COUNT - 100:  # in superstep 2: most of the partition is written
                try:
                    os.close(os.open(os.path.join(folder, "failed"), os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    pass
                else:
                    raise RuntimeError("the first attempt of the task fails")
            yield value + 1
        assert self.seen == self.superstep * COUNT // 2, self.seen

class Strike(ConvergenceCriterion):
    def is_converged(self, iteration, value):
        assert value == COUNT, value
        shuffles = len(glob.glob(os.path.join(folder, "local", "**", "shuffle_*"), recursive=True))
        assert shuffles < 24, (iteration, shuffles)  # a superstep writes six files; they are removed in the background
        if fault == "executor" and iteration == 2 and not os.path.exists(os.path.join(folder, "struck")):
            open(os.path.join(folder, "struck"), "w").close()
            from tests.spark.processes import kill_an_executor
            print("KILLED", len(kill_an_executor()), flush=True)
        return False

conf = Configuration()
for key, value in {"spark.master": master, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                   "spark.local.dir": os.path.join(folder, "local"),
                   "spark.cores.max": "4", "spark.executor.memory": "512m", "spark.ui.enabled": "false",
                   "spark.scheduler.minRegisteredResourcesRatio": "1.0"}.items():
    conf.set_string(key, value)
env = ExecutionEnvironment.get_execution_environment(conf).set_parallelism(2)
iteration = env.generate_sequence(1, COUNT).iterate(SUPERSTEPS)
iteration.register_aggregation_convergence_criterion("records", LongSumAggregator(), Strike())
found = iteration.close_with(iteration.rebalance().map_partition(Step())).collect()
assert sorted(found) == list(range(1 + SUPERSTEPS, COUNT + 1 + SUPERSTEPS)), len(found)
calls = env.get_last_job_execution_result().get_accumulator_result("calls")
assert calls == SUPERSTEPS * COUNT, calls
print("EXACT", os.path.exists(os.path.join(folder, "failed")), flush=True)
"""


def run(master: str, folder: Path, fault: str, supersteps: int, timeout_s: float = 240.0) -> str:
    driver = run_driver(PROGRAM, master, str(folder), fault, str(supersteps), stdin=subprocess.DEVNULL)
    try:
        output, _ = driver.communicate(timeout=timeout_s)
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0, output[-4000:]
    return output


def test_a_task_that_spark_tries_again_counts_once_and_shuffles_leave_no_files(tmp_path: Path) -> None:
    assert "EXACT True" in run("local[2,4]", tmp_path, "task", 8)


@pytest.mark.soak  # minutes: CI has half an hour for everything
def test_a_thousand_supersteps_grow_neither_plan_nor_disk(tmp_path: Path) -> None:
    assert "EXACT True" in run("local[2,4]", tmp_path, "task", 1_000, timeout_s=3_000.0)


@pytest.mark.soak  # minutes: CI has half an hour for everything
def test_an_iteration_survives_the_loss_of_an_executor_with_its_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(*TEST_RUN)  # the program finds the executors of this test run by it
    cluster = Cluster(tmp_path)
    try:
        output = run(cluster.master, tmp_path, "executor", 4)
    finally:
        cluster.stop()
    killed = re.search(r"KILLED (\d+)", output)
    assert killed is not None and int(killed[1]) > 1, "an executor and at least one slot were killed"
    assert "EXACT" in output
    assert not list(cluster.scratch.glob("ekorn-slot-*"))
