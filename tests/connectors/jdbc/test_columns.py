"""`JdbcSink` on streams of columns: what rows would store, in the same transactions, by `COPY` where PostgreSQL may."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekorn.clock import ManualClock
from ekorn.common import Configuration, Row, Types, WatermarkStrategy
from ekorn.connectors.jdbc.exactly_once import JdbcExactlyOnceSink
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.jdbc import JdbcExecutionOptions, JdbcSink
from ekorn.datastream.functions import SinkFunction
from ekorn.errors import DatabaseError, JobExecutionError
from ekorn.table import DataTypes
from ekorn.testing import on_local_engine
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from ekorn.types.data_type_info import row_type_info
from tests.connectors.formats.values_of_types import MILLIS, TEXTS, VALUES
from tests.connectors.jdbc.stores import Context, Store, batches
from tests.connectors.jdbc.written_columns import (
    COLUMNS,
    INSERT,
    MANY,
    PAIR,
    as_columns,
    batch_of,
    commands,
    fill,
    names,
    pairs,
)
from tests.operators.committing import environment, run_at_two_parallelisms


@pytest.fixture
def table(store):
    store.run("CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR(50))")
    return store


# ------------------------------------------------------------------------------------------------------- programs


def draw(stream, store, guarantee):
    stream.add_sink(getattr(JdbcSink, guarantee)(INSERT, PAIR, store.options))


@pytest.mark.parametrize("guarantee", ["sink", "exactly_once_sink"])
@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
def test_a_program_writes_batches_and_makes_no_rows(table, guarantee, keyed):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)
    wide = Types.ROW_NAMED(["more", "name", "id"], [Types.LONG(), Types.STRING(), Types.INT()])
    rows = [(n, None if n % 7 == 0 else f"n{n}", n) for n in range(1000)]
    stream = env.from_collection(rows, wide).to_columns()
    draw(stream.key_by("id") if keyed else stream, table, guarantee)
    assert "To Rows" not in env.get_execution_plan()
    with on_local_engine():
        env.execute()
    assert names(table) == [(n, name) for _, name, n in rows]
    assert not table.is_postgresql or commands(table) <= 20


@pytest.mark.parametrize(
    ("name", "data_type"),
    [("id", DataTypes.BIGINT()), ("id", DataTypes.STRING()), ("number", DataTypes.INT())],
    ids=["wider", "other", "unknown"],
)
def test_columns_of_another_type_or_name_are_rows_to_the_sink(table, name, data_type):
    row_type = DataTypes.ROW([DataTypes.FIELD(name, data_type), DataTypes.FIELD("name", DataTypes.STRING())])
    assert JdbcSink.sink(INSERT, PAIR, table.options).with_columns(row_type) is None
    assert JdbcSink.exactly_once_sink(INSERT, PAIR, table.options).with_columns(row_type) is None
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    stream = env.from_collection([(5, "x")], Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()]))
    draw(stream.to_columns(), table, "sink")
    assert "To Rows" in env.get_execution_plan()
    with on_local_engine():
        env.execute()
    assert names(table) == [(5, "x")]


def test_a_statement_without_values_is_run_for_each_row(table):
    table.run("CREATE TABLE ticks (id INT DEFAULT 1)")
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    rows = env.from_collection([(n, "x") for n in range(7)], PAIR).to_columns()
    nothing = Types.ROW_NAMED([], [])
    assert JdbcSink.sink("INSERT INTO ticks VALUES (1)", nothing, table.options).with_columns(COLUMNS) is None
    rows.add_sink(JdbcSink.sink("INSERT INTO ticks VALUES (1)", nothing, table.options))
    with on_local_engine():
        env.execute()
    assert table.run("SELECT count(*) FROM ticks") == [(7,)]


class Misled(SinkFunction):
    def with_columns(self, row_type):
        return self

    def invoke(self, value, context):
        raise AssertionError("the stream has columns")


def test_a_sink_that_says_that_it_takes_columns_and_does_not_fails_the_job():
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.from_collection([(1, "x")], PAIR).to_columns().add_sink(Misled())
    with on_local_engine(), pytest.raises(JobExecutionError, match="Misled takes records"):
        env.execute()


# ------------------------------------------------------------------------------------------------- the same values

SPECIAL = ["", "\\", "\\.", "\\N", "a\tb", "line\nline\r\n", "quote\"'", "\x01", "é😀", "NULL", "{}", "a,b"]
TYPES: dict[str, tuple[str, Any, Any]] = {
    "text": ("TEXT", DataTypes.STRING(), TEXTS.map(lambda text: text.replace("\0", "")) | st.sampled_from(SPECIAL)),
    "flag": ("BOOLEAN", DataTypes.BOOLEAN(), VALUES["flag"]),
    "tiny": ("SMALLINT", DataTypes.TINYINT(), VALUES["tiny"]),
    "int": ("INT", DataTypes.INT(), VALUES["int"]),
    "long": ("BIGINT", DataTypes.BIGINT(), st.integers(-(2**63), 2**63 - 1)),
    "whole": ("NUMERIC", DataTypes.BIGINT(), st.integers(-(2**63), 2**63 - 1)),
    "single": ("REAL", DataTypes.FLOAT(), st.floats(width=32)),
    "double": ("DOUBLE PRECISION", DataTypes.DOUBLE(), st.floats()),
    "price": ("DECIMAL(12, 3)", DataTypes.DECIMAL(12, 3), VALUES["price"]),
    "day": ("DATE", DataTypes.DATE(), VALUES["day"]),
    "clock": ("TIME", DataTypes.TIME(3), VALUES["clock"]),
    "at": ("TIMESTAMP", DataTypes.TIMESTAMP(3), MILLIS),
    "instant": ("TIMESTAMPTZ", DataTypes.TIMESTAMP_LTZ(6), VALUES["instant"]),
    "data": ("BYTEA", DataTypes.BYTES(), st.binary(max_size=5) | st.just(b"\\x\n\t\0")),
}


def _array(sql, data_type, values):
    return f"{sql}[]", DataTypes.ARRAY(data_type), st.lists(st.none() | values, max_size=3)


OF_POSTGRESQL = {
    "padded": ("CHAR(8)", DataTypes.STRING(), TYPES["text"][2].map(lambda text: text[:8])),
    "cut": ("VARCHAR(2)", DataTypes.STRING(), st.sampled_from(["", "a ", "ab   ", "\t "])),
    "code": ("UUID", DataTypes.STRING(), st.uuids().map(str)),
    "json": ("JSON", DataTypes.STRING(), st.sampled_from(['{"a": [1, "\\n"]}', "null", '"\\\\"'])),
    "binary_json": ("JSONB", DataTypes.STRING(), st.sampled_from(['{"a": [1, "\\n"]}', "null", '"\\\\"'])),
    "narrow": ("SMALLINT", DataTypes.BIGINT(), st.integers(-(2**15), 2**15 - 1)),
    "widened": ("DOUBLE PRECISION", DataTypes.FLOAT(), st.floats(width=32)),
    "rounded": ("DECIMAL(20, 1)", DataTypes.DECIMAL(12, 3), VALUES["price"]),
    "flags": _array("BOOLEAN", DataTypes.BOOLEAN(), VALUES["flag"]),
    "shorts": _array("SMALLINT", DataTypes.SMALLINT(), st.integers(-(2**15), 2**15 - 1)),
    "ints": _array("INT", DataTypes.INT(), VALUES["int"]),
    "longs": _array("BIGINT", DataTypes.BIGINT(), TYPES["long"][2]),
    "doubles": _array("DOUBLE PRECISION", DataTypes.DOUBLE(), st.floats(allow_nan=False)),
    "texts": _array("TEXT", DataTypes.STRING(), TYPES["text"][2]),
}


def seen_values(store, name):
    return [tuple(map(_comparable, row)) for row in store.run(f"SELECT * FROM {name} ORDER BY nr")]


def _comparable(value):
    return (type(value), repr(value) if isinstance(value, float) and math.isnan(value) else value)


@pytest.mark.parametrize("guarantee", ["sink", "exactly_once_sink"])
def test_both_forms_store_the_same_values(store, guarantee):
    types = TYPES | (OF_POSTGRESQL if store.is_postgresql else {})
    listed = ", ".join(f"{name} {sql}" for name, (sql, _, _) in types.items())
    fields = [DataTypes.FIELD(name, data_type) for name, (_, data_type, _) in types.items()]
    row_type = DataTypes.ROW([*fields, DataTypes.FIELD("nr", DataTypes.INT())])
    for name in ("of_rows", "of_columns"):
        store.run(f"CREATE TABLE {name} ({listed}, nr INT)")
    record = st.fixed_dictionaries({name: st.none() | values for name, (_, _, values) in types.items()})

    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(record, min_size=1, max_size=6))
    def holds(records):
        rows = [Row(**records[n % len(records)], nr=n) for n in range(150)]
        for name, form in (("of_rows", None), ("of_columns", row_type)):
            store.run(f"DELETE FROM {name}")
            sql = f"INSERT INTO {name} VALUES ({', '.join('?' * len(row_type))})"
            fill(getattr(JdbcSink, guarantee)(sql, row_type_info(row_type), store.options), rows, form)
        assert seen_values(store, "of_columns") == seen_values(store, "of_rows")

    holds()
    assert not store.is_postgresql or commands(store, "of_columns") == 1


# ------------------------------------------------------------------------------------------------- the same batches


def test_rows_are_written_when_the_batch_is_full_and_when_its_interval_ends(table):
    sink = as_columns(JdbcSink.sink(INSERT, PAIR, table.options, batches(size=3, interval_ms=100)))
    context = Context()
    sink.invoke_batch(batch_of(pairs(2)), context)
    assert names(table) == [] and sink.next_flush_ms() == 100
    context.now_ms = 30
    sink.invoke_batch(batch_of(pairs(5, first=2)), context)
    assert [number for number, _ in names(table)] == [0, 1, 2, 3, 4, 5]
    assert sink.next_flush_ms() == 130
    sink.flush_due(130)
    assert len(names(table)) == 7 and sink.next_flush_ms() is None
    sink.invoke_batch(batch_of(pairs(3, first=7)), context)
    assert sink.next_flush_ms() is None, "nothing waits"
    sink.close()


def test_a_batch_larger_than_a_part_is_written_in_transactions_of_the_size_of_batches(table):
    sink = as_columns(JdbcSink.sink(INSERT, PAIR, table.options, batches(size=3000)))
    sink.invoke_batch(batch_of(pairs(10_000)), Context())
    assert len(names(table)) == 9000
    sink.finish()
    sink.close()
    assert names(table) == [(n, f"n{n}") for n in range(10_000)]
    assert not table.is_postgresql or commands(table) == 4


def test_batches_without_a_size_are_written_at_checkpoints_only(table):
    sink = as_columns(JdbcSink.sink(INSERT, PAIR, table.options, batches(size=0)))
    sink.invoke_batch(batch_of(pairs(10_000)), Context())
    assert names(table) == []
    sink.snapshot_state(None)
    assert len(names(table)) == 10_000
    sink.close()


@pytest.mark.parametrize("count", [3, MANY])
@pytest.mark.parametrize("form", [None, COLUMNS], ids=["rows", "columns"])
def test_a_row_that_the_database_refuses_fails_at_once_and_its_batch_leaves_nothing(table, form, count):
    rows = [*pairs(count - 1), Row(id=1, name="again")]
    with pytest.raises(DatabaseError, match=f"write a batch of {count} rows") as caught:
        fill(JdbcSink.sink(INSERT, PAIR, table.options), rows, form)
    assert "INSERT INTO names" in str(caught.value) and table.options.get_db_url() in str(caught.value)
    assert names(table) == []


def test_a_connection_that_was_lost_is_opened_again(postgresql):
    postgresql.run("CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR(50))")
    sink = as_columns(JdbcSink.sink(INSERT, PAIR, postgresql.options, batches(size=MANY)))
    sink.invoke_batch(batch_of(pairs(MANY)), Context())
    postgresql.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ? AND pid <> pg_backend_pid()",
        postgresql.name,
    )
    sink.invoke_batch(batch_of(pairs(MANY, first=MANY)), Context())
    sink.close()
    assert len(names(postgresql)) == 2 * MANY and commands(postgresql) == 2


# --------------------------------------------------------------------------------------------------- exactly once

NUMBER = Types.ROW_NAMED(["id"], [Types.INT()])
NUMBERS = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT())])
RECORDS = list(range(1800))
LOG = "INSERT INTO log VALUES (?)"


@pytest.fixture
def log(store: Store) -> Store:
    store.run("CREATE TABLE log (id INT)")
    return store


def draw_log(env, store):
    source = env.from_source(ScriptedSource([RECORDS], [300]), WatermarkStrategy.no_watermarks(), "numbers")
    stream = source.uid("numbers").set_parallelism(1).rebalance().map(lambda n: Row(id=n), NUMBER).to_columns()
    stream.add_sink(JdbcSink.exactly_once_sink(LOG, NUMBER, store.options)).uid("sink")


def written(store):
    return sorted(number for (number,) in store.run("SELECT id FROM log"))


@pytest.mark.parametrize("point", ["in-epoch", "before-notify", "in-notify", "after-notify"])
def test_a_kill_at_a_step_loses_no_row_and_writes_none_twice(log, point):
    env = environment(parallelism=2)
    draw_log(env, log)
    run_scripted(env, Script(crashes=[Crash(point, 1), Crash(point, 3)], kill=True))
    assert written(log) == RECORDS
    assert not log.is_postgresql or commands(log, "log") <= 40


def test_another_parallelism_commits_what_was_prepared(log, tmp_path):
    run_at_two_parallelisms(lambda env: draw_log(env, log), tmp_path / "checkpoints", "before-notify", 1, 3)
    assert written(log) == RECORDS


def test_either_form_commits_what_the_other_has_prepared_and_none_commits_it_twice(log):
    options = JdbcExecutionOptions.defaults()
    of_rows = JdbcExactlyOnceSink(LOG, NUMBER, log.options, options, clock=ManualClock())
    of_columns = as_columns(of_rows, NUMBERS)
    numbers = [Row(id=n) for n in range(2500)]
    one, other = of_rows.begin_transaction(), of_columns.begin_transaction()
    for number in numbers[:1200]:
        of_rows.invoke(one, number, Context())
    of_columns.invoke_batch(other, batch_of(numbers[1200:], NUMBERS), Context())
    of_rows.pre_commit(one)
    of_columns.pre_commit(other)
    assert (one["row_count"], len(one["chunks"])) == (1200, 2)
    assert (other["row_count"], len(other["chunks"])) == (1300, 2)
    for sink, transaction in ((of_columns, one), (of_rows, other), (of_rows, one), (of_columns, other)):
        sink.commit(transaction)
    of_rows.close()
    of_columns.close()
    assert written(log) == list(range(2500))


def test_rows_that_the_database_refuses_leave_no_row_of_the_ledger(log):
    log.run("CREATE UNIQUE INDEX once ON log (id)")
    with pytest.raises(DatabaseError, match="commit 301 rows"):
        fill(JdbcSink.exactly_once_sink(LOG, NUMBER, log.options), [Row(id=n) for n in (*range(MANY), 1)], NUMBERS)
    assert written(log) == []
    assert log.run("SELECT * FROM ekorn_ledger") == []
