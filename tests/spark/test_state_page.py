"""The programs on docs/state_processor.md that need a session of Spark, one of them with the state of its query."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from ekorn.common import Time, Types
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.functions import AggregateFunction
from ekorn.datastream.state import ListStateDescriptor, ValueStateDescriptor
from ekorn.datastream.window import TumblingEventTimeWindows
from ekorn.testing import collect_locally, on_local_engine
from tests.manual.blocks import blocks_run_by

PAGE = Path(__file__).parents[2] / "docs" / "state_processor.md"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class CountWords(StatefulProcessor):
    """Counts the visits of each word, and keeps their pages: the query whose state is migrated."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "n long")
        self.seen = handle.getListState("seen", "page string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        pages = [row.page for row in rows]
        before = self.count.get()[0] if self.count.exists() else 0
        self.count.update((before + len(pages),))
        self.seen.appendList([(page,) for page in pages])
        yield Row(word=key[0], n=before + len(pages))

    def close(self) -> None:
        pass


class Continue(KeyedProcessFunction):
    """The job that goes on with the state."""

    def open(self, runtime_context):
        self.visits = runtime_context.get_state(ValueStateDescriptor("visits", Types.LONG()))
        self.pages = runtime_context.get_list_state(ListStateDescriptor("pages", Types.STRING()))

    def process_element(self, value, ctx):
        self.visits.update((self.visits.value() or 0) + 1)
        yield ctx.get_current_key(), self.visits.value(), sorted(self.pages.get())


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = running or builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.sparkContext.pythonExec = sys.executable  # the processor of the query needs the packages of this Python
    return session


def query_checkpoint_of(spark, folder: Path) -> str:
    """Run a streaming query of Spark over some visits; return its checkpoint."""
    visits = [("ann", "/"), ("bob", "/"), ("ann", "/shoes")]
    spark.createDataFrame(visits, "word string, page string").write.parquet(str(folder / "visits"))
    words = spark.readStream.schema("word string, page string").parquet(str(folder / "visits")).groupBy("word")
    counted = words.transformWithState(CountWords(), "word string, n long", "Update", "none")
    checkpoint = str(folder / "query")
    stream = counted.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    before = {key: spark.conf.get(key, None) for key in (PROVIDER, "spark.sql.shuffle.partitions")}
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    try:
        stream.option("checkpointLocation", checkpoint).start().awaitTermination()
    finally:
        for key, value in before.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)
    return checkpoint


def continued(spark, path: str) -> list[Any]:
    """Start a job from a savepoint; return what it says of two users."""
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(2)
    env.set_restore_path(path)
    users = env.from_collection(["ann", "bob", "cat"], Types.STRING())
    return sorted(collect_locally(users.key_by(lambda user: user, Types.STRING()).process(Continue()).uid("visits")))


class CountAll(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + 1

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


def check_timers_and_windows(stored, spark, folder: Path) -> None:
    """Check what the program on timers and windows has written."""
    timers = spark.read.format("ekorn-state").option("operatorUid", "visits").option("readRegisteredTimers", "true")
    found = timers.load(str(folder / "savepoints" / "without-pages")).collect()
    assert [tuple(row) for row in found] == [("ann", "event", 1700000000000, None)]
    states = stored.load(str(folder / "savepoints" / "without-pages")).groupBy("state").count().collect()
    assert {row["state"]: row["count"] for row in states} == {"visits": 2, "_timers/event": 1}
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_restore_path(str(folder / "savepoints" / "hours"))
    no_visits = env.from_collection([], Types.TUPLE([Types.STRING(), Types.LONG()])).key_by(lambda v: v[0])
    windows = no_visits.window(TumblingEventTimeWindows.of(Time.hours(1))).aggregate(CountAll()).uid("hours")
    with on_local_engine():
        assert collect_locally(windows) == [7], "the window of the row fires"


def test_the_programs_of_the_page_run_on_spark(spark, tmp_path, capsys):
    programs = [block.text for block in blocks_run_by(__file__, PAGE)]
    assert len(programs) == 5
    rows = spark.sql("select 'ann' key, 2L visits, array('/', '/shoes') pages union select 'bob', 1L, array('/')")
    names = {"__name__": "page", "spark": spark, "rows": rows}
    names["query_checkpoint"] = query_checkpoint_of(spark, tmp_path)
    written = rows.coalesce(1).write.format("ekorn-state").option("operatorUid", "visits").mode("append")
    from ekorn.state_processor.spark import register_state_sources

    register_state_sources(spark)
    written.save(str(tmp_path / "savepoints" / "history"))
    limits = spark.sql("select 'ann' key, 5L value").write.format("ekorn-state").option("operatorUid", "rules")
    limits = limits.option("operatorState", "limits").option("operatorStateKind", "broadcast").mode("append")
    limits.save(str(tmp_path / "savepoints" / "rules"))
    for number, program in enumerate(programs):
        there = program.replace('"savepoints/', f'"{tmp_path}/savepoints/')  # the tasks of Spark run elsewhere
        exec(compile(there, f"program {number + 1} on Spark of {PAGE.name}", "exec"), names)
    assert "ann" in capsys.readouterr().out, "the first program shows who has more than one visit"
    doubled = names["rules"].load(str(tmp_path / "savepoints" / "doubled"))
    assert [tuple(row) for row in doubled.collect()] == [("ann", 10)]
    check_timers_and_windows(names["stored"], spark, tmp_path)
    expected = [("ann", 3, ["/", "/shoes"]), ("bob", 2, ["/"]), ("cat", 1, [])]
    assert continued(spark, str(tmp_path / "savepoints" / "from-rows")) == expected
    assert continued(spark, str(tmp_path / "savepoints" / "migrated")) == expected
