"""DataFrames in and out, on a session of the user's own."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow.compute as pc
import pytest

from ekorn.common import Types
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.engine.spark.data_frames.result_frames import row_type_for
from ekorn.table import Row
from tests.example_modules import example


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session


class FailsOnce(KeyedProcessFunction):
    """Counts by key, and fails after a checkpoint, once in its life."""

    def __init__(self, mark):
        self._mark = mark

    def open(self, runtime_context):
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen", Types.LONG()))

    def process_element(self, value, ctx):
        if value.id == 4321 and not os.path.exists(self._mark):
            Path(self._mark).touch()
            raise RuntimeError("as planned")
        seen = (self.seen.value() or 0) + 1
        self.seen.update(seen)
        yield Row(
            ctx.get_current_key(), value.id, seen, value.at, value.old, {"digits": [int(d) for d in str(value.id)]}
        )


def test_a_stateful_step_between_two_data_frames_is_exactly_once_although_it_fails(spark, tmp_path):
    """The plan gives other rows each time it is run: a second run would show in the result."""
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(2)
    env.enable_checkpointing(100).get_checkpoint_config().set_checkpoint_storage_dir(f"file://{tmp_path}/checkpoints")
    made = "id", "rand() as luck", "timestamp_micros(id) as at", "timestamp_seconds(-14800000000) as old"  # in 1501
    frame = spark.range(0, 5000, 1, 3).selectExpr(*made)
    output = Types.ROW_NAMED(
        ["key", "id", "seen", "at", "old", "more"],
        [
            Types.LONG(),
            Types.LONG(),
            Types.INT(),
            Types.INSTANT(),
            Types.INSTANT(),
            Types.MAP(Types.STRING(), Types.LIST(Types.INT())),
        ],
    )
    stream = env.from_data_frame(frame).key_by(lambda row: row.id % 10)
    result = stream.process(FailsOnce(str(tmp_path / "failed")), output_type=output).to_data_frame()
    assert (tmp_path / "failed").exists()
    assert result.schema.simpleString() == (
        "struct<key:bigint,id:bigint,seen:int,at:timestamp,old:timestamp,more:map<string,array<int>>>"
    )
    rows = result.selectExpr("*", "unix_micros(at) as at_us", "unix_seconds(old) as old_s").collect()
    assert sorted(row.id for row in rows) == list(range(5000))
    assert sorted((row.key, row.seen) for row in rows) == [(key, n) for key in range(10) for n in range(1, 501)]
    assert all(row.at_us == row.id and row.old_s == -14_800_000_000 for row in rows)
    assert all(row.more == {"digits": [int(digit) for digit in str(row.id)]} for row in rows)
    assert not list((tmp_path / "checkpoints").rglob("_ekorn-rows.json")), "the rows go with the job"
    assert row_type_for("id long not null, tags array<string>", None, "f()").field_names() == ["id", "tags"]


def add_clicks(folder, name, clicks):
    """Put a file of clicks in place at once."""
    draft = folder / f".{name}"
    draft.write_text("".join(json.dumps({"user": user, "page": page}) + "\n" for user, page in clicks))
    os.makedirs(folder / "clicks", exist_ok=True)
    draft.rename(folder / "clicks" / name)


def read_until(frame, progress, rows, count):
    """Run a streaming query from its own checkpoint until it has seen so many rows; add them to `rows`."""
    query = (
        frame.writeStream.option("checkpointLocation", str(progress))
        .foreachBatch(lambda batch, number: rows.extend(map(tuple, batch.collect())))
        .start()
    )
    deadline = time.monotonic() + 90
    while len(rows) < count and time.monotonic() < deadline and query.isActive:
        time.sleep(0.1)
    if query.isActive:
        query.processAllAvailable()
    query.stop()


def test_a_stateful_step_inside_a_pipeline_is_exactly_once_across_restarts_of_the_job_and_of_both_queries(
    spark, tmp_path
):
    pipeline = example("spark_pipeline").pipeline
    visits: list[tuple] = []
    add_clicks(tmp_path, "1.json", [("ada", "/"), ("bob", "/"), ("ada", "/pay"), ("bob", "/nuts")])
    client, frame = pipeline(spark, str(tmp_path))
    read_until(frame, tmp_path / "reading", visits, 1)
    assert visits == [("ada", 2)]
    savepoint = client.stop_with_savepoint(False, f"file://{tmp_path}/savepoints").result()
    assert not spark.streams.active, "the query that feeds the job is stopped with it"

    add_clicks(tmp_path, "2.json", [("bob", "/pay"), ("ada", "/"), ("cyd", "/pay")])
    client, frame = pipeline(spark, str(tmp_path), savepoint)
    read_until(frame, tmp_path / "reading", visits, 3)
    client.cancel().result()
    assert sorted(visits) == [("ada", 2), ("bob", 3), ("cyd", 1)]

    rows = spark.read.format("ekorn").load(f"{tmp_path}/visits")
    assert sorted(map(tuple, rows.collect())) == sorted(visits)
    unread = list((tmp_path / "clicks-progress" / "ekorn-rows" / "batches").iterdir())
    assert len(unread) <= 1, "batches that a checkpoint covers are deleted"


def test_columns_pass_between_two_data_frames_without_rows(spark, caplog):
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(2)
    made = "id", "cast(id as decimal(12, 2)) as price", "timestamp_micros(id) as at", "array(id) as ids"
    stream = env.from_data_frame(spark.range(0, 5000, 1, 3).selectExpr(*made), as_columns=True)
    kept = stream.filter(pc.field("id") >= 1000)
    result = kept.to_data_frame()
    assert "To Rows" not in caplog.text  # where an operator is warned of whose results go nowhere
    assert result.schema.simpleString() == "struct<id:bigint,price:decimal(12,2),at:timestamp,ids:array<bigint>>"
    rows = result.selectExpr("*", "unix_micros(at) as at_us").collect()
    assert sorted(row.id for row in rows) == list(range(1000, 5000))
    assert all(row.price == row.at_us == row.ids[0] == row.id for row in rows)
