"""A session that ekorn started for a job in epochs has the task slots of every continuous job that comes later."""

from __future__ import annotations

import json

from tests.spark.processes import run_driver

DRIVER = """
import json, logging, os, time
from pathlib import Path
from pyspark import SparkContext
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.engine.spark.driver_side.pipelined_job import rows_in_flight
from ekorn.engine.spark.driver_side.session import SparkLog

found, lines, cores = {}, [], os.cpu_count()


class Lines(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())


logging.getLogger("ekorn").addHandler(Lines())
logging.getLogger("ekorn").setLevel(logging.INFO)


def environment(execution, parallelism):
    configuration = Configuration()
    configuration.set_string("ekorn.execution", execution)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def sums(parallelism):
    env = environment("continuous", parallelism)
    pairs = env.from_sequence(1, 100).map(lambda n: (n % 8, n))
    with pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).execute_and_collect() as sums:
        last = dict(sorted(sums))
    return sum(last.values())


env = environment("epochs", 1)
rate = RateLimiterStrategy.per_second(200)
numbers = env.from_source(DataGeneratorSource(lambda n: n, 10**9, rate), WatermarkStrategy.no_watermarks(), "numbers")
numbers.map(lambda n: n).print()
beside = env.execute_async("beside")
while not beside.get_progress().records_read:
    time.sleep(0.02)
context = SparkContext._active_spark_context
kept = context.parallelize([1, 2, 3], 1).cache()
kept.count()
found["sums"] = [sums(cores), sums(cores)]
read = beside.get_progress().records_read
while beside.get_progress().records_read <= read:  # the job in epochs goes on
    time.sleep(0.02)
found["wide"] = sums(17)  # more tasks than a session that is started for a continuous job has at least
found["kept"] = kept.collect() if SparkContext._active_spark_context is context else None
beside.cancel().result()
found["rows"] = rows_in_flight(context)
found["starts"] = [line for line in lines if "starts on" in line]
found["complaints"] = [line for line in Path(SparkLog.path).read_text().splitlines() if "TID -1" in line]
print("FOUND", json.dumps(found), flush=True)
"""


def test_continuous_jobs_run_in_the_session_of_a_job_in_epochs_that_goes_on() -> None:
    driver = run_driver(DRIVER)
    try:
        output, _ = driver.communicate(timeout=200)
    finally:
        driver.kill()
    answers = [line for line in output.splitlines() if line.startswith("FOUND ")]
    assert answers, output[-4000:]
    found = json.loads(answers[0].removeprefix("FOUND "))
    assert (found["sums"], found["wide"]) == ([5050, 5050], 5050)
    assert "local[*]" in found["starts"][0] and "continuously" not in found["starts"][0]
    assert all("continuously" in line for line in found["starts"][1:])
    assert found["kept"] == [1, 2, 3], "the session stays, with what the program keeps in it"
    assert found["rows"] == 8, "tasks have the buffers of a session that was started for continuous jobs"
    assert found["complaints"] == []
