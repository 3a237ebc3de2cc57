"""A job on a real standalone cluster of Spark: a master and two workers on loopback, from the PySpark package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.processes import run_driver
from tests.spark.standalone_cluster import Cluster

PROGRAM = """
import os, signal, sys
from collections import Counter
from tamias.common import Configuration, Types, WatermarkStrategy
from tamias.common.restart_strategy import RestartStrategies
from tamias.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from tamias.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from tamias.datastream.state import ValueStateDescriptor

class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value % 10, count, os.getpid()

master, folder, fault, *settings = sys.argv[1:]
conf = Configuration()
for setting in settings:
    conf.set_string(*setting.split("=", 1))
for key, value in {"spark.master": master, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                   "spark.cores.max": "4", "spark.executor.memory": "512m", "spark.ui.enabled": "false"}.items():
    conf.set_string(key, value)
env = StreamExecutionEnvironment.get_execution_environment(conf)
env.set_parallelism(3)
env.enable_checkpointing(300)
env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
env.set_restart_strategy(RestartStrategies.fixed_delay_restart(5, 200))
source = DataGeneratorSource(lambda n: n, 3000, RateLimiterStrategy.per_second(600))
stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").key_by(lambda n: n % 10).process(Count())
results, pids, killed = [], set(), False
with stream.execute_and_collect("on a cluster") as rows:
    for digit, count, pid in rows:
        results.append((digit, count))
        pids.add(pid)
        if not killed and len(results) > 800:
            if fault == "slot":
                os.kill(pid, signal.SIGKILL)
            elif fault == "executor":
                from tests.spark.processes import kill_an_executor
                print("KILLED", len(kill_an_executor()))
            killed = True
assert Counter(results) == Counter((d, n) for d in range(10) for n in range(1, 301)), len(results)
from pyspark import SparkContext
executors = SparkContext._active_spark_context._jsc.sc().statusTracker().getExecutorInfos()
print("EXECUTORS", len(executors) - 1)
print("EXACT", killed, len(pids))
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.stop()


def test_a_job_on_a_standalone_cluster_survives_the_loss_of_a_slot(cluster: Cluster, tmp_path: Path) -> None:
    output = run(cluster, tmp_path, "slot")
    assert "EXECUTORS 2" in output, output[-2000:]


def test_a_job_survives_the_loss_of_an_executor_with_its_slots(cluster: Cluster, tmp_path: Path) -> None:
    output = run(cluster, tmp_path, "executor")
    killed = re.search(r"KILLED (\d+)", output)
    assert killed is not None and int(killed[1]) > 1, "an executor and at least one slot were killed"


def run(cluster: Cluster, folder: Path, fault: str, *settings: str) -> str:
    """Run the job on the cluster under a fault; check that it succeeds with the exact result; return its output."""
    driver = run_driver(PROGRAM, cluster.master, str(folder / "checkpoints"), fault, *settings)
    output, _ = driver.communicate(timeout=240)
    assert driver.returncode == 0, output[-4000:]
    assert "EXACT True" in output, output[-2000:]
    return output
