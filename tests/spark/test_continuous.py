"""Jobs that run continuously on Spark: every operator, a savepoint, a cancellation and a failure, in one session."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.spark import every_kind, slow_sink, tally
from tests.spark.processes import run_driver, slot_processes

DRIVER = """
import json, logging, sys, time
from pathlib import Path
from ekorn.common import Configuration, JobStatus, RestartStrategies
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.engine.spark.driver_side.session import SparkLog
from ekorn.errors import EkornError
from tests.spark import every_kind, slow_sink, tally

folder, found, lines = Path(sys.argv[1]), {}, []


class Lines(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())


logging.getLogger("ekorn").addHandler(Lines())
logging.getLogger("ekorn").setLevel(logging.INFO)


def environment(execution):
    configuration = Configuration()
    configuration.set_string("ekorn.execution", execution)
    configuration.set_string("spark.master", "local[32]")  # a number of the user's does not grow
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_restart_strategy(RestartStrategies.no_restart())
    env.set_parallelism(2)
    return env


# ------------------------------------ a job that cannot run continuously starts Spark for those that can
env = environment("auto")
env.set_runtime_mode(RuntimeExecutionMode.BATCH)
with env.from_sequence(1, 10).key_by(lambda v: v % 2).reduce(lambda a, b: a + b).execute_and_collect() as records:
    found["batch"] = sorted(records)

# ------------------------------------------------------------------------------------ every kind of operator
every_kind.build(
    3_000, 3_000, folder / "kinds", execution="continuous", kinds=every_kind.WITHOUT_LOOP
).execute()

# ------------------------------------------------------------- a savepoint, continued at another parallelism
client = tally.build(12_000, 400, folder / "tally", execution="continuous").execute_async()
while client.get_progress().records_read < 200:
    time.sleep(0.02)
path = client.stop_with_savepoint(False, str(folder / "savepoints")).result()
tally.build(12_000, 1e9, folder / "tally", parallelism=1, restore=path, execution="continuous").execute()

# ------------------------------------------------- a job that is cancelled leaves its places to the next one
client = tally.build(100_000, 1_000, folder / "cancelled", execution="continuous").execute_async()
while client.get_progress().records_read < 100:
    time.sleep(0.02)
env = environment("continuous")
env.set_parallelism(15)
env.from_sequence(1, 10).key_by(lambda v: v).map(lambda v: v).print("beside")
try:
    env.execute()
except EkornError as error:
    found["beside"] = str(error)
client.cancel().result()
while client.get_job_status().result() is not JobStatus.CANCELED:
    time.sleep(0.02)

# ---------------------------------------------------------------------------------------------- a slow sink
env = environment("continuous")
tracks = slow_sink.build(env, folder)
client = env.execute_async()
found["pressure"] = slow_sink.watch(client, *tracks)
client.cancel().result()
while client.get_job_status().result() is not JobStatus.CANCELED:
    time.sleep(0.02)

# ------------------------------------------------------------------------------------ an error of user code
def check(value):
    if value == 42:
        raise ValueError("no 42")
    return value


env = environment("continuous")
env.from_sequence(1, 100).key_by(lambda v: v % 3).map(check).print()
try:
    env.execute()
except EkornError as error:
    found["error"] = str(error).splitlines()[0]

# ------------------------------------------------------------------------- a job that the session cannot serve
env = environment("continuous")
env.set_parallelism(40)
env.from_sequence(1, 10).key_by(lambda v: v).map(lambda v: v).print()
try:
    env.execute()
except EkornError as error:
    found["too wide"] = str(error)
env = environment("auto")
env.set_parallelism(1)
stream = env.from_sequence(1, 3)
with stream.execute_and_collect() as records:
    found["auto"] = list(records)
found["lines"] = [line for line in lines if "starts on" in line or "in epochs" in line]
written = Path(SparkLog.path).read_text().splitlines()
found["warnings"] = [line for line in written if "WARN StreamingShuffleWriter" in line]
print("FOUND", json.dumps(found), flush=True)
"""

OWN_SESSION = """
from pyspark.sql import SparkSession
from ekorn.common import Configuration, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy

SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
configuration = Configuration()
configuration.set_string("ekorn.execution", "continuous")
env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
rate = RateLimiterStrategy.per_second(100)
numbers = env.from_source(DataGeneratorSource(lambda n: n, 300, rate), WatermarkStrategy.no_watermarks(), "numbers")
with numbers.key_by(lambda n: n % 3).reduce(lambda a, b: a + b).execute_and_collect() as sums:
    print("FOUND", max(sums), flush=True)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("continuous")


@pytest.fixture(scope="module")
def found(folder):
    driver = run_driver(DRIVER, str(folder))
    try:
        output, _ = driver.communicate(timeout=280)
    finally:
        driver.kill()
    answers = [line for line in output.splitlines() if line.startswith("FOUND ")]
    assert answers, output[-4000:]
    return json.loads(answers[0].removeprefix("FOUND "))


def test_a_job_in_batch_mode_starts_a_session_that_later_jobs_can_use_continuously(found) -> None:
    assert found["batch"] == [25, 30]
    reason, started, next_started = found["lines"][:3]
    assert "runs in epochs: the job runs in BATCH mode" in reason
    assert "continuously" not in started
    assert "continuously" in next_started


def test_every_kind_of_operator_gives_the_results_of_epochs(found, folder: Path) -> None:
    assert every_kind.verify(3_000, folder / "kinds", every_kind.WITHOUT_LOOP) == []


def test_a_savepoint_continues_at_another_parallelism(found, folder: Path) -> None:
    assert tally.verify(12_000, folder / "tally") == []


def test_a_slow_sink_stops_the_source_through_sparks_shuffle(found) -> None:
    slow_sink.verify(found["pressure"])


def test_an_exception_of_the_users_code_reaches_the_program_as_itself(found) -> None:
    assert "ValueError: no 42" in found["error"]


def test_a_job_with_more_tasks_than_places_is_refused_with_what_to_do(found) -> None:
    assert "the job needs 80 tasks at the same time" in found["too wide"]
    assert "ekorn.execution" in found["too wide"]


def test_a_job_does_not_take_places_that_another_one_holds(found) -> None:
    assert "the job needs 30 tasks at the same time" in found["beside"]
    assert re.search(r"32 task slots, of which job '.*' holds \d+", found["beside"])


def test_auto_runs_a_job_continuously_where_the_session_allows_it(found) -> None:
    assert found["auto"] == [1, 2, 3]
    assert "continuously" in found["lines"][-1]


def test_sparks_log_does_not_grow_with_the_time_of_a_job(found) -> None:
    assert found["warnings"] == [], "its shuffle warns once a second of each task"


def test_a_session_of_the_users_runs_a_job_continuously_without_a_warning() -> None:
    driver = run_driver(OWN_SESSION)
    try:
        said, _ = driver.communicate(timeout=120)
    finally:
        driver.kill()
    assert f"FOUND {sum(range(2, 300, 3))}" in said
    assert "have no effect" not in said, "the program sets none"
    assert "StreamingShuffleWriter" not in said


def test_no_slot_is_left(found) -> None:
    assert slot_processes() == []
