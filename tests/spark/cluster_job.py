"""A job for a cluster that counts records by key, under a fault; its program checks its own results.

The program is text, so that its classes travel by value: the executors do not have the tests.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.live_jobs import until
from tests.spark.processes import run_driver

PROGRAM = """
import os, signal, sys, time
from collections import Counter
from ekorn.common import Configuration, Types, WatermarkStrategy
from ekorn.common.restart_strategy import RestartStrategies
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.state import ValueStateDescriptor

class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if fault == "pause" and value == 800:
            open(folder + ".pauses", "w").close()
            time.sleep(pause_s)
        yield value % 10, count, os.getpid()

master, folder, fault, pause_s, per_second, *settings = sys.argv[1:]
pause_s = float(pause_s)
conf = Configuration()
for key, value in {"spark.master": master, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                   "spark.cores.max": "4", "spark.executor.memory": "512m", "spark.ui.enabled": "false",
                   "spark.scheduler.minRegisteredResourcesRatio": "1.0",
                   "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s"}.items():  # slots beside both executors
    conf.set_string(key, value)
for setting in settings:
    conf.set_string(*setting.split("=", 1))
env = StreamExecutionEnvironment.get_execution_environment(conf)
# Continuously every subtask holds a core of four.
env.set_parallelism(2 if conf.get_string("ekorn.execution", "") == "continuous" else 3)
env.enable_checkpointing(300)
env.get_checkpoint_config().set_checkpoint_storage_dir(folder)
env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 200))
source = DataGeneratorSource(lambda n: n, 3000, RateLimiterStrategy.per_second(float(per_second)))
stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").key_by(lambda n: n % 10).process(Count())

def strike(pid):
    if fault == "slot":
        os.kill(pid, signal.SIGKILL)
    elif fault == "executor":
        from tests.spark.processes import kill_an_executor
        print("KILLED", len(kill_an_executor()), flush=True)
    elif fault == "JVM of an executor":
        from tests.spark.processes import kill_the_jvm_of_an_executor, slots_end
        print("SLOTS ENDED", slots_end(kill_the_jvm_of_an_executor()), flush=True)
    elif fault == "ask":
        print("STRIKE", flush=True)
        sys.stdin.readline()

results, pids, struck = [], set(), False
with stream.execute_and_collect("on a cluster") as rows:
    for digit, count, pid in rows:
        results.append((digit, count))
        pids.add(pid)
        if not struck and len(results) > 800:
            strike(pid)
            struck = True
    progress = rows.job_client.get_progress()
assert Counter(results) == Counter((d, n) for d in range(10) for n in range(1, 301)), len(results)
from pyspark import SparkContext
executors = SparkContext._active_spark_context._jsc.sc().statusTracker().getExecutorInfos()
print("EXECUTORS", len(executors) - 1)
print("RESTARTS", progress.restarts, progress.last_failure)
print("EXACT", struck, len(pids), flush=True)
"""


class Cluster(Protocol):
    """Where a job can run.

    Attributes:
        master: The address of the master.
        settings: Settings that a job needs there, as `key=value`.
        environment: Variables that a driver needs in order to find it.
    """

    master: str
    settings: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Ended:
    """A job that has ended with the exact result."""

    output: str
    restarts: int
    executors: int  # when the job ended


def run(
    cluster: Cluster,
    folder: Path,
    fault: str,
    *settings: str,
    pause_s: float = 0.0,
    per_second: float = 600.0,
    strike: Callable[[], None] = lambda: None,
) -> Ended:
    """Run the job on the cluster under a fault, and check that it succeeds with the exact result.

    Args:
        cluster: Where the job runs.
        folder: Where its checkpoints are.
        fault: `slot`, `executor`, `JVM of an executor`: it is killed after 800 of 3,000 records. `pause`: one record
            takes `pause_s` to process, and `strike` is called meanwhile. `ask`: `strike` is called after 800 records.
        settings: More settings, as `key=value`.
        pause_s: See `fault`.
        per_second: How many records the source emits.
        strike: See `fault`.
    """
    arguments = [cluster.master, str(folder / "checkpoints"), fault, str(pause_s), str(per_second)]
    arguments += [*cluster.settings, *settings]
    driver = run_driver(PROGRAM, *arguments, env=cluster.environment, stdin=subprocess.PIPE)
    try:
        output = ""
        assert driver.stdout is not None
        while fault == "ask" and "STRIKE" not in output:
            line = driver.stdout.readline()
            assert line, output[-4000:]
            output += line
        if fault == "pause":
            until(lambda: driver.poll() is not None or (folder / "checkpoints.pauses").exists(), within_s=180)
        if fault in ("ask", "pause"):
            strike()
        rest, _ = driver.communicate("\n", timeout=240)
        output += rest
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0, output[-4000:]
    assert "EXACT True" in output, output[-2000:]
    restarts, executors = (re.search(rf"{word} (\d+)", output) for word in ("RESTARTS", "EXECUTORS"))
    assert restarts is not None and executors is not None
    return Ended(output, int(restarts[1]), int(executors[1]))
