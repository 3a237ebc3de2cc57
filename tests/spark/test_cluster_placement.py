"""Tasks of continuous jobs on a cluster run on the hosts of their slots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.spark.processes import run_driver
from tests.spark.standalone_cluster import Cluster

JOBS = 3  # without a preference, the tasks of one may be beside their slots by chance

DRIVER = """
import json, os, sys
from pathlib import Path
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.functions import MapFunction

class Where(MapFunction):  # a slot has the folder of its executor: work-2/app-20261116-0000/1
    def open(self, runtime_context):
        self.where = runtime_context.get_index_of_this_subtask(), Path(os.getcwd()).name
    def map(self, value):
        return self.where

master, events, jobs = sys.argv[1:]
conf = Configuration()
for key, value in {"spark.master": master, "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
                   "spark.cores.max": "4", "spark.executor.cores": "2", "spark.executor.memory": "512m",
                   "spark.ui.enabled": "false", "spark.scheduler.minRegisteredResourcesRatio": "1.0",
                   "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
                   "spark.eventLog.enabled": "true", "spark.eventLog.dir": events, "spark.eventLog.compress": "false",
                   "ekorn.execution": "continuous"}.items():
    conf.set_string(key, value)
for _ in range(int(jobs)):
    env = StreamExecutionEnvironment.get_execution_environment(conf)
    env.set_parallelism(2)
    source = DataGeneratorSource(lambda n: n, 200, RateLimiterStrategy.per_second(200))
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers")
    with numbers.key_by(lambda n: n % 10).map(Where()).execute_and_collect() as records:
        print("FOUND", json.dumps(sorted(set(records))), flush=True)
"""


class Task(NamedTuple):
    """A task that Spark has run."""

    stage: int
    partition: int
    executor: str


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path, ("127.0.0.1", "127.0.0.2"))
    yield started
    started.stop()


def continuous_tasks(log: str) -> dict[int, list[Task]]:
    """Return the tasks of continuous jobs in a log of Spark's events, by job."""
    events = [json.loads(line) for line in log.splitlines()]
    jobs = {
        event["Job ID"]: set(event["Stage IDs"])
        for event in events
        if event["Event"] == "SparkListenerJobStart"
        and "attempt" in event["Properties"].get("spark.job.description", "")
    }
    tasks = [
        Task(event["Stage ID"], event["Task Info"]["Index"], event["Task Info"]["Executor ID"])
        for event in events
        if event["Event"] == "SparkListenerTaskStart"
    ]
    return {job: sorted(task for task in tasks if task.stage in stages) for job, stages in jobs.items()}


def test_a_task_runs_on_the_host_of_its_slot(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    driver = run_driver(DRIVER, cluster.master, folder.as_uri(), str(JOBS))
    try:
        output, _ = driver.communicate(timeout=150)
    finally:
        driver.kill()
    found = [json.loads(line.removeprefix("FOUND ")) for line in output.splitlines() if line.startswith("FOUND ")]
    assert len(found) == JOBS, output[-4000:]
    logs = [path.read_text() for path in sorted(folder.rglob("*")) if path.is_file() and "appstatus" not in path.name]
    tasks = continuous_tasks("".join(logs))
    assert len(tasks) == JOBS
    for slots, ran in zip(found, tasks.values(), strict=True):
        assert len({executor for _, executor in slots}) == 2, "a slot beside each executor"
        executors = dict(map(tuple, slots))
        assert len(ran) == 4
        assert [task.executor for task in ran] == [executors[task.partition] for task in ran]
