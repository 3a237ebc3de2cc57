"""Sources of Structured Streaming, read by a job from offset to offset, on a session of the user's own."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ekorn.common import Configuration
from ekorn.connectors.data_frames.row_files_sink import RowFilesSink
from ekorn.datastream import MapFunction, StreamExecutionEnvironment
from ekorn.engine.spark.data_frames.micro_batches import SparkMicroBatches
from ekorn.errors import ConfigurationError
from ekorn.table import DataTypes
from tests.connectors.data_frames.row_files import committed_rows

WAIT_S = 120
NUMBERS = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())])


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # for the Python source; jobs of Ekorn do not need it
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session


class FailsOnce(MapFunction):
    """Fails at the first number behind a place, once in its life."""

    def __init__(self, mark, place):
        self._mark = mark
        self._place = place

    def map(self, value):
        if value.n >= self._place and not os.path.exists(self._mark):
            Path(self._mark).touch()
            raise RuntimeError("as planned")
        return value


def copy(spark, frame, folder, *, parallelism, savepoint=None, available_now=False):
    """Start a job that copies the numbers of a source of Spark into row files, and fails once."""
    configuration = Configuration().set_string("execution.checkpointing.interval", "200 ms")
    configuration.set_string("execution.checkpointing.dir", f"file://{folder}/checkpoints")
    if savepoint is not None:
        configuration.set_string("execution.savepoint.path", savepoint)
    env = StreamExecutionEnvironment.get_execution_environment(configuration, spark=spark).set_parallelism(parallelism)
    stream = env.from_spark_source(frame, available_now=available_now).uid("numbers").rebalance()
    copied = stream.map(FailsOnce(f"{folder}/failed", 1000)).uid("copy")
    copied.sink_to(RowFilesSink(f"{folder}/out", NUMBERS)).uid("out")
    return env.execute_async("copy")


def numbers_in(folder):
    return Counter(row.n for row in committed_rows(f"{folder}/out", NUMBERS))


def wait_for(folder, count):
    deadline = time.monotonic() + WAIT_S
    while sum((found := numbers_in(folder)).values()) < count:
        assert time.monotonic() < deadline, f"only {sum(found.values())} rows"
        time.sleep(0.1)


def test_a_source_is_read_once_across_a_failure_and_a_savepoint_restored_at_another_parallelism(spark, tmp_path):
    source = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=500, numPartitions=3).load()
    frame = source.selectExpr("explode(array(2 * value, 2 * value + 1)) as n").where("n >= 100")
    client = copy(spark, frame, tmp_path, parallelism=2)
    wait_for(tmp_path, 3000)
    savepoint = client.stop_with_savepoint(False, f"file://{tmp_path}/savepoints").result()
    assert (tmp_path / "failed").exists()
    assert not list((tmp_path / "checkpoints").rglob("run-*")), "the batches go with the job"
    before = numbers_in(tmp_path)

    # The same offsets in other partitions, as after a change of the cluster.
    source = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=500, numPartitions=2).load()
    frame = source.selectExpr("explode(array(2 * value, 2 * value + 1)) as n").where("n >= 100")
    client = copy(spark, frame, tmp_path, parallelism=3, savepoint=savepoint)
    wait_for(tmp_path, sum(before.values()) + 2000)
    client.stop_with_savepoint(False, f"file://{tmp_path}/savepoints").result()
    found = numbers_in(tmp_path)
    assert set(found.values()) == {1}
    assert sorted(found) == list(range(100, 100 + len(found)))


@pytest.mark.soak  # Spark gives the process of such a source ten seconds to start, which a busy machine may not have
def test_a_python_source_is_read_between_its_offsets_and_feeds_a_job(spark, tmp_path):
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    class Reader(DataSourceStreamReader):
        def initialOffset(self):
            return {"n": 0}

        def latestOffset(self, start=None, limit=None):
            return {"n": 1200}

        def partitions(self, start, end):
            return [InputPartition((first, min(first + 500, end["n"]))) for first in range(start["n"], end["n"], 500)]

        def read(self, partition):
            for number in range(*partition.value):
                yield (number,)

    class Source(DataSource):
        @classmethod
        def name(cls):
            return "counted"

        def schema(self):
            return "n long"

        def streamReader(self, schema):
            return Reader()

    spark.dataSource.register(Source)
    even = spark.readStream.format("counted").load().where("n % 2 = 0")
    batches = SparkMicroBatches(even, NUMBERS)
    batches.open(f"file://{tmp_path}/notes", available_now=True)
    first, last = batches.initial_offset(), batches.latest_offset(batches.initial_offset())
    assert (first, last) == ('{"n": 0}', '{"n": 1200}')
    assert sorted(row.n for row in batches.frame('{"n": 700}', last).collect()) == list(range(700, 1200, 2))
    batches.commit(last)
    batches.close()

    copy(spark, even, tmp_path, parallelism=2, available_now=True).get_job_execution_result().result(WAIT_S)
    assert (tmp_path / "failed").exists()
    assert numbers_in(tmp_path) == Counter(range(0, 1200, 2))


def test_what_cannot_be_read_from_offset_to_offset_is_refused_with_what_to_use_instead(spark, tmp_path):
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark)
    rate = spark.readStream.format("rate").load()
    with pytest.raises(TypeError, match=r"does not stream: use from_data_frame\(df\)"):
        env.from_spark_source(spark.range(3))
    with pytest.raises(TypeError, match=r"got a DataStreamReader: call load\(\) on it"):
        env.from_spark_source(spark.readStream.format("rate"))
    with pytest.raises(TypeError, match="got a DataStreamWriter: pass the DataFrame whose writeStream it is"):
        env.from_spark_source(rate.writeStream)
    with pytest.raises(ConfigurationError, match=r"FileSource.*older interface.*from_streaming_data_frame\(df, check"):
        env.from_spark_source(spark.readStream.text(str(tmp_path)))
    with pytest.raises(ConfigurationError, match=r"withWatermark\(\) has no effect in a job; .*watermark_strategy"):
        env.from_spark_source(rate.withWatermark("timestamp", "1 second"))
    for stateful, step in [
        (rate.groupBy("value").count(), "Aggregate"),
        (rate.dropDuplicates(["value"]), "Deduplicate"),
        (rate.union(rate), "Union"),
        (rate.join(spark.range(3).withColumnRenamed("id", "value"), "value"), "Join"),
    ]:
        with pytest.raises(
            ConfigurationError, match=f"step {step} after its source.* do this step in the job, or from_str"
        ):
            env.from_spark_source(stateful)
    query = rate.writeStream.format("noop").option("checkpointLocation", f"{tmp_path}/query").start()
    with pytest.raises(TypeError, match="got a StreamingQuery: a query that was started feeds only its own sink"):
        env.from_spark_source(query)
    query.stop()
