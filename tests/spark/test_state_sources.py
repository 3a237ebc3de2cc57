"""Savepoints as tables of Spark: SQL over a savepoint, a savepoint from a DataFrame, and jobs on Spark over both."""

from __future__ import annotations

import sys
from functools import partial

import pytest

from ekorn.common import Types
from ekorn.dataset import ExecutionEnvironment
from ekorn.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.functions import CheckpointedFunction, MapFunction
from ekorn.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from ekorn.state_processor import OperatorTransformation, SavepointReader, SavepointWriter
from ekorn.state_processor.spark import register_state_sources
from ekorn.testing import collect_locally
from tests.state_processor.programs import KEYS, every_kind, restored, savepoint_of
from tests.state_processor.savepoint_functions import EARLIER, LATER, FillEveryKind, ReadEverything, last_by_key


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = running or builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    session.sparkContext.pythonExec = sys.executable  # where this module runs first, Spark's tasks need its packages
    register_state_sources(session)
    return session


@pytest.fixture(scope="module")
def savepoints(tmp_path_factory):
    """Two savepoints of one job, the second one later."""
    base = tmp_path_factory.mktemp("savepoints")
    return [savepoint_of(every_kind, base / str(after), after=after) for after in (2, 4)]


def test_sql_over_a_savepoint(spark, savepoints):
    _, path = savepoints
    state = spark.read.format("ekorn-state").option("operatorUid", "every-kind")
    frame = state.load(path)
    assert frame.schema.simpleString().startswith("struct<key:bigint,value:bigint,list:array<bigint>,map:map<string")
    assert frame.rdd.getNumPartitions() == 2
    frame.createOrReplaceTempView("state")
    rows = spark.sql("select key, value, aggregate(list, 0L, (a, x) -> a + x) total, rare from state order by key")
    found = rows.collect()
    assert [row.key for row in found] == list(range(KEYS)) and all(row.value == row.total for row in found)
    elements = state.option("stateVarName", "list").load(path)
    assert elements.columns == ["key", "namespace", "list_element", "ttl_ms", "key_group"]
    timers = spark.read.format("ekorn-state").option("operatorUid", "every-kind").option("readRegisteredTimers", "true")
    assert timers.load(path).where("time_domain = 'event'").count() == elements.count()
    metadata = spark.read.format("ekorn-state-metadata").load(path)
    kinds = {row.state_name: row.state_kind for row in metadata.where("operator_uid = 'every-kind'").collect()}
    assert kinds["value"] == "value" and kinds["map"] == "map" and kinds["_timers/event"] == "timers"


def test_the_changes_of_a_state_between_two_savepoints(spark, savepoints):
    old, new = savepoints
    changes = spark.read.format("ekorn-state").option("operatorUid", "every-kind").option("stateVarName", "value")
    found = changes.option("changeStart", old).load(new).collect()
    assert found and all(row.change_type == "changed" and row.value > row.previous for row in found)


class Continue(KeyedProcessFunction):
    """Continues from state that a DataFrame was written to."""

    def open(self, runtime_context):
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))
        self.names = runtime_context.get_list_state(ListStateDescriptor("names", Types.STRING()))
        self.prices = runtime_context.get_map_state(MapStateDescriptor("prices", Types.STRING(), Types.DOUBLE()))

    def process_element(self, value, ctx):
        yield ctx.get_current_key(), self.total.value(), list(self.names.get()), dict(self.prices.items())


def test_a_job_starts_from_a_savepoint_that_a_data_frame_was_written_to(spark, tmp_path):
    expressions = (
        "concat('user-', id) as user",
        "id * 10 as total",
        "array('a', cast(id as string)) as names",
        "map('p', id / 2.0D) as prices",
    )
    frame = spark.range(0, 1000, 1, 4).selectExpr(*expressions)
    path = str(tmp_path / "new")
    options = {"operatorUid": "continue", "keyColumn": "user", "parallelism": "3"}
    frame.write.format("ekorn-state").options(**options).mode("append").save(path)
    count = spark.read.format("ekorn-state").option("operatorUid", "continue").load(path).where("total = 50").count()
    assert count == 1
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(2)
    env.set_restore_path(path)
    users = env.from_collection(["user-7", "user-999", "user-x"], Types.STRING())
    stream = users.key_by(lambda user: user, Types.STRING()).process(Continue()).uid("continue")
    found = sorted(collect_locally(stream))
    assert found == [
        ("user-7", 70, ["a", "7"], {"p": 3.5}),
        ("user-999", 9990, ["a", "999"], {"p": 499.5}),
        ("user-x", None, [], {}),
    ]


class Keep(MapFunction, CheckpointedFunction):
    """Tells what its list, union and broadcast state were restored to."""

    def initialize_state(self, context):
        store = context.get_operator_state_store()
        kept = store.get_list_state(ListStateDescriptor("list", Types.LONG()))
        union = store.get_union_list_state(ListStateDescriptor("union", Types.STRING()))
        rules = store.get_broadcast_state(MapStateDescriptor("rules", Types.STRING(), Types.LONG()))
        self.restored = (sorted(kept.get()), sorted(union.get()), dict(rules.items()))

    def map(self, value):
        return self.restored

    def snapshot_state(self, context):
        pass


def test_a_job_starts_from_operator_state_that_data_frames_were_written_to(spark, tmp_path):
    frames = {
        "list": (
            "list-split",
            spark.range(0, 6, 1, 3).selectExpr("cast(id % 2 as int) subtask", "id position", "id element"),
        ),
        "union": ("list-union", spark.sql("select explode(array('a', 'b')) element")),
        "rules": ("broadcast", spark.sql("select 'limit' key, 7L value")),
    }
    options, base = {"operatorUid": "keep", "parallelism": "2"}, {}
    for name, (kind, frame) in frames.items():
        path = str(tmp_path / name)
        given = {**options, **base, "operatorState": name, "operatorStateKind": kind}
        frame.write.format("ekorn-state").options(**given).mode("append").save(path)
        options, base = {"operatorUid": "keep"}, {"baseSavepoint": path}
    state = spark.read.format("ekorn-state").option("operatorUid", "keep").option("operatorState", "list").load(path)
    assert sorted((row.subtask, row.element) for row in state.collect()) == [(n % 2, n) for n in (0, 2, 4, 1, 3, 5)]
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(2)
    env.set_restore_path(path)
    stream = env.from_collection(list(range(4)), Types.LONG()).rebalance().map(Keep()).uid("keep")
    told = collect_locally(stream)
    assert {tuple(each[0]) for each in told} == {(0, 2, 4), (1, 3, 5)}
    assert all(each[1:] == (["a", "b"], {"limit": 7}) for each in told)


def test_jobs_on_spark_read_and_write_savepoints(spark, savepoints, tmp_path):
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(2)
    reader = SavepointReader.read(env, savepoints[1])
    frame = reader.read_keyed_state("every-kind", ReadEverything()).map(
        lambda r: (r[0], r[1]), Types.TUPLE([Types.LONG(), Types.LONG()])
    )
    assert sorted(row[0] for row in frame.to_data_frame("key long, value long").collect()) == list(range(KEYS))
    past = OperatorTransformation.bootstrap_with(env.from_collection(list(EARLIER), Types.LONG()))
    filled = past.key_by(lambda n: n % KEYS).transform(FillEveryKind())
    path = SavepointWriter.new_savepoint(env, 128).with_operator("every-kind", filled).write(tmp_path / "new")
    later = restored(partial(every_kind, given=LATER), path, tmp_path)
    assert last_by_key(later) == last_by_key(restored(every_kind, None, tmp_path / "whole"))


def data_set_of(spark):
    """Return the numbers of the past as a data set."""
    env = ExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(2)
    return env, env.generate_sequence(EARLIER[0], EARLIER[-1])


def frame_of(spark):
    """Return the numbers of the past as rows of a DataFrame, in a stream."""
    env = StreamExecutionEnvironment.get_execution_environment(spark=spark).set_parallelism(2)
    rows = env.from_data_frame(spark.range(EARLIER[0], EARLIER[-1] + 1, 1, 2))
    return env, rows.map(lambda row: row[0], Types.LONG())


@pytest.mark.parametrize("data_of", [data_set_of, frame_of])
def test_state_is_filled_from_data_sets_and_data_frames_and_read_as_both(spark, data_of, tmp_path):
    env, past = data_of(spark)
    filled = OperatorTransformation.bootstrap_with(past).key_by(lambda n: n % KEYS).transform(FillEveryKind())
    path = SavepointWriter.new_savepoint(env, 128).with_operator("every-kind", filled).write(tmp_path / "new")
    later = restored(partial(every_kind, given=LATER), path, tmp_path)
    assert last_by_key(later) == last_by_key(restored(every_kind, None, tmp_path / "whole"))
    found = SavepointReader.read(env, path).read_keyed_state("every-kind", ReadEverything())
    pairs = found.map(lambda r: (r[0], r[1]), Types.TUPLE([Types.LONG(), Types.LONG()]))
    frame = pairs.to_data_frame("key long, value long")
    assert sorted(row.key for row in frame.collect()) == list(range(KEYS))
