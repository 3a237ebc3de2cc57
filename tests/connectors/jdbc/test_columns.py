"""`JdbcSink` on streams of columns: what rows would store, in the same transactions, by `COPY` where PostgreSQL may."""

import datetime
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekorn.clock import ManualClock
from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.row_columns import RowColumns
from ekorn.common import Configuration, Instant, Row, Types, WatermarkStrategy
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
from tests.connectors.jdbc.stores import Context, Store, batches, options_of
from tests.operators.committing import environment, run_at_two_parallelisms
from tests.servers.postgres import PASSWORD, USER

PAIR = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
COLUMNS = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("name", DataTypes.STRING())])
INSERT = "INSERT INTO names (id, name) VALUES (?, ?)"
MANY = 300  # rows, more than are written one by one


@pytest.fixture
def table(store):
    store.run("CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR(50))")
    return store


def batch_of(rows, row_type=COLUMNS):
    return ColumnBatch(RowColumns(row_type).batch(rows))


def pairs(count, first=0):
    return [Row(id=n, name=f"n{n}") for n in range(first, first + count)]


def names(store):
    return store.run("SELECT id, name FROM names ORDER BY id")


def commands(store, table="names"):
    """Return how many statements have written the rows of a table of PostgreSQL: a COPY writes many rows."""
    [(count,)] = store.run(f"SELECT count(DISTINCT (xmin::text, cmin::text)) FROM {table}")
    return count


def as_columns(sink, row_type=COLUMNS):
    found = sink.with_columns(row_type)
    assert found is not None
    return found


def fill(sink, rows, row_type=None):
    """Give rows to a sink as one batch of columns, or one by one if there is no row type, and let it write them."""
    sink = sink if row_type is None else as_columns(sink, row_type)
    exactly_once = isinstance(sink, JdbcExactlyOnceSink)
    begun = [sink.begin_transaction()] if exactly_once else []
    if row_type is None:
        for row in rows:
            sink.invoke(*begun, row, Context())
    else:
        sink.invoke_batch(*begun, batch_of(rows, row_type), Context())
    try:
        if exactly_once:
            sink.pre_commit(*begun)
            sink.commit(*begun)
        else:
            sink.finish()
    finally:
        sink.close()


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


# ---------------------------------------------------------------------------------------- where COPY would do other

PLAIN = "CREATE TABLE names (id INT, name TEXT)"
TRIGGER = """
CREATE FUNCTION count_them() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN NEW.name := NEW.name || (SELECT count(*) FROM names); RETURN NEW; END $$;
CREATE TRIGGER counts BEFORE INSERT ON names FOR EACH ROW EXECUTE FUNCTION count_them()
"""
BY_STATEMENT = {
    "trigger": (f"{PLAIN}; {TRIGGER}", INSERT),
    "rule": (f"{PLAIN}; CREATE RULE r AS ON INSERT TO names WHERE NEW.id = 5 DO INSTEAD NOTHING", INSERT),
    "key-into-itself": (
        "CREATE TABLE names (id INT PRIMARY KEY, name TEXT, before INT DEFAULT 0 REFERENCES names (id)); "
        "INSERT INTO names VALUES (0, 'n0', 0)",
        "INSERT INTO names (id, name) VALUES (?, ?)",
    ),
    "partitions": (
        "CREATE TABLE names (id INT, name TEXT) PARTITION BY RANGE (id); "
        "CREATE TABLE low PARTITION OF names FOR VALUES FROM (0) TO (1000)",
        INSERT,
    ),
    "view": ("CREATE TABLE t (id INT, name TEXT); CREATE VIEW names AS SELECT id, name FROM t", INSERT),
    "real-column": ("CREATE TABLE names (id REAL, name TEXT)", INSERT),
    "domain": ("CREATE DOMAIN small AS INT CHECK (VALUE < 1000); CREATE TABLE names (id small, name TEXT)", INSERT),
    "upsert": (
        "CREATE TABLE names (id INT PRIMARY KEY, name TEXT)",
        "INSERT INTO names VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
    ),
    "expression": (PLAIN, "INSERT INTO names VALUES (?, upper(?))"),
    "constant": (PLAIN, "INSERT INTO names (id, name) VALUES (? + 0, ?)"),
    "comment": (PLAIN, "INSERT INTO names VALUES (?, ?) -- all of them"),
    "query": (PLAIN, "INSERT INTO names SELECT ?, ?"),
}


def test_the_statement_is_run_where_copy_might_store_other_values(postgresql):
    for case, (prepare, sql) in BY_STATEMENT.items():
        postgresql.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        postgresql.run(prepare)
        fill(JdbcSink.sink(sql, PAIR, postgresql.options), pairs(MANY, first=1))
        of_rows = names(postgresql)
        postgresql.run("DELETE FROM names WHERE id > 0")
        fill(JdbcSink.sink(sql, PAIR, postgresql.options), pairs(MANY, first=1), COLUMNS)
        assert names(postgresql) == of_rows and len(of_rows) >= MANY - 1, case
        assert commands(postgresql, "t" if case == "view" else "names") >= MANY - 1, case


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ("id INT GENERATED ALWAYS AS IDENTITY, name TEXT", "GENERATED ALWAYS|DEFAULT"),
        ("name TEXT, id INT GENERATED ALWAYS AS (1) STORED", "generated column|DEFAULT"),
        ("id INT", "column"),
    ],
)
def test_what_the_statement_may_not_do_copy_does_not_do(postgresql, columns, error):
    postgresql.run(f"CREATE TABLE names ({columns})")
    with pytest.raises(DatabaseError, match=error):
        fill(JdbcSink.sink(INSERT, PAIR, postgresql.options), pairs(MANY), COLUMNS)
    assert postgresql.run("SELECT * FROM names") == []


@pytest.mark.parametrize(
    ("table", "columns", "sql"),
    [
        (
            '"Odd ""Names"',
            'id INT, more INT DEFAULT 7, "The Name" TEXT',
            'insert into "Odd ""Names" (ID, "The Name") values (?,?);',
        ),
        ("odd.names", 'id INT, "The Name" TEXT, more INT DEFAULT 7', "INSERT INTO odd . names VALUES\n  (?, ?)"),
        ("odd.names", 'more INT DEFAULT 7, "The Name" TEXT, id INT', 'INSERT INTO odd.names(id,"The Name")VALUES(?,?)'),
    ],
)
def test_tables_and_columns_are_found_as_the_statement_names_them(postgresql, table, columns, sql):
    postgresql.run("CREATE SCHEMA odd")
    postgresql.run(f"CREATE TABLE {table} ({columns})")
    fill(JdbcSink.sink(sql, PAIR, postgresql.options), pairs(MANY), COLUMNS)
    found = postgresql.run(f'SELECT id, "The Name", more FROM {table} ORDER BY id')
    assert found == [(n, f"n{n}", 7) for n in range(MANY)]
    assert commands(postgresql, table) == 1


def test_few_rows_are_written_one_by_one(postgresql):
    postgresql.run(PLAIN)
    fill(JdbcSink.sink(INSERT, PAIR, postgresql.options), pairs(50), COLUMNS)
    assert len(names(postgresql)) == commands(postgresql) == 50


@pytest.fixture
def clerk(postgresql):
    """Return the options of a user who may insert into `names`, and not read it."""
    user = f"clerk_{postgresql.name}"
    postgresql.run(PLAIN)
    postgresql.run(f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'")
    postgresql.run(f"GRANT INSERT ON names TO {user}")
    yield options_of(postgresql.options.get_db_url(), user, PASSWORD)
    postgresql.run(f"DROP OWNED BY {user}")
    postgresql.run(f"DROP ROLE {user}")


def test_a_user_who_may_only_insert_copies(postgresql, clerk):
    fill(JdbcSink.sink(INSERT, PAIR, clerk), pairs(MANY), COLUMNS)
    assert len(names(postgresql)) == MANY and commands(postgresql) == 1


def test_a_policy_of_the_table_decides_about_every_row(postgresql, clerk):
    postgresql.run("ALTER TABLE names ENABLE ROW LEVEL SECURITY")
    postgresql.run("CREATE POLICY small ON names FOR INSERT WITH CHECK (id < 1000)")
    fill(JdbcSink.sink(INSERT, PAIR, clerk), pairs(MANY), COLUMNS)
    assert len(names(postgresql)) == commands(postgresql) == MANY
    with pytest.raises(DatabaseError, match="row-level security policy"):
        fill(JdbcSink.sink(INSERT, PAIR, clerk), pairs(MANY, first=900), COLUMNS)
    assert len(names(postgresql)) == MANY


MOMENT = datetime.datetime(2024, 2, 29, 23, 30, 0, 250_000)
CASTS = {
    "instant": (DataTypes.TIMESTAMP_LTZ(6), "TIMESTAMP", Instant.of_epoch_milli(1_500)),
    "wall_clock": (DataTypes.TIMESTAMP(3), "TIMESTAMPTZ", MOMENT),
    "day_of": (DataTypes.TIMESTAMP(3), "DATE", MOMENT),
    "rounded": (DataTypes.DOUBLE(), "INT", 2.5),
    "narrowed": (DataTypes.DOUBLE(), "REAL", 0.1),
    "exact": (DataTypes.DOUBLE(), "NUMERIC", 0.1),
    "spelled": (DataTypes.BOOLEAN(), "TEXT", True),
    "flags": (DataTypes.ARRAY(DataTypes.BOOLEAN()), "TEXT[]", [True, None]),
}


def test_a_value_of_another_type_is_converted_as_the_statement_converts_it(postgresql):
    url = f"{postgresql.options.get_db_url()}?options=-cTimeZone%3DAsia/Tokyo"
    elsewhere = options_of(url, USER, PASSWORD)
    for name, (data_type, sql, value) in CASTS.items():
        postgresql.run(f"CREATE TABLE {name} (value {sql})")
        row_type = DataTypes.ROW([DataTypes.FIELD("value", data_type)])
        for form in (None, row_type):
            sink = JdbcSink.sink(f"INSERT INTO {name} VALUES (?)", row_type_info(row_type), elsewhere)
            fill(sink, [Row(value=value)] * MANY, form)
        assert postgresql.run(f"SELECT count(DISTINCT value) FROM {name}") == [(1,)], name
        assert commands(postgresql, name) == 2 * MANY, name
