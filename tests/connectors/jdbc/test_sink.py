"""`JdbcSink.sink`: batches, retries, values of every type, at least once."""

import datetime
import logging
import socket
from decimal import Decimal

import pytest

from ekorn.clock import ManualClock
from ekorn.common import Configuration, Instant, RestartStrategies, Row, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.jdbc import JdbcSink
from ekorn.errors import DatabaseError, JobExecutionError, RecordTypeError
from ekorn.testing import on_local_engine
from ekorn.testing.scripted import Crash, Script, ScriptedSource, run_scripted
from tests.connectors.jdbc.stores import Context, batches, options_of, sqlite_store
from tests.live_jobs import until
from tests.servers.postgres import PASSWORD, USER

PAIR = Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])
RECORDS = list(range(12))
UPSERT = "INSERT INTO names VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name"


def names(store):
    return store.run("SELECT id, name FROM names ORDER BY id")


@pytest.fixture
def table(store):
    store.run("CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR(50))")
    return store


def test_a_program_of_pyflink_writes_rows(table):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(2)
    stream = env.from_collection([(101, "Stream"), (102, None), (103, "Hidden ? % %s")], PAIR)
    stream.add_sink(JdbcSink.sink("insert into names (id, name) values (?, ?)", PAIR, table.options, batches(size=2)))
    with on_local_engine():
        env.execute()
    assert names(table) == [(101, "Stream"), (102, None), (103, "Hidden ? % %s")]


def test_rows_are_written_when_the_batch_is_full_and_when_its_interval_ends(table):
    sink = JdbcSink.sink(UPSERT, PAIR, table.options, batches(size=3, interval_ms=100))
    context = Context()
    for number in range(4):
        context.now_ms = 10 * number
        sink.invoke(Row(number, "x"), context)
    assert [number for number, _ in names(table)] == [0, 1, 2]
    assert sink.next_flush_ms() == 130
    sink.flush_due(129)
    assert len(names(table)) == 3
    sink.flush_due(130)
    assert len(names(table)) == 4
    assert sink.next_flush_ms() is None
    sink.close()


def test_the_runtime_writes_a_batch_at_its_interval_while_no_record_arrives(table):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    slowly = RateLimiterStrategy.per_second(0.001)  # the first record comes at once
    source = DataGeneratorSource(lambda n: Row(n, "x"), None, slowly, PAIR)
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "one").set_parallelism(1)
    stream.add_sink(JdbcSink.sink(UPSERT, PAIR, table.options, batches(interval_ms=1)))
    with on_local_engine():
        client = env.execute_async()
    try:
        until(lambda: names(table) == [(0, "x")])
    finally:
        client.cancel().result()


@pytest.mark.parametrize("point", ["in-epoch", "after-epoch", "before-notify", "after-notify"])
def test_after_a_crash_every_row_is_written_at_least_once(store, point):
    store.run("CREATE TABLE log (id INT)")
    env = environment()
    stream = numbers(env).map(Row, Types.ROW([Types.INT()]))
    stream.add_sink(JdbcSink.sink("INSERT INTO log VALUES (?)", Types.ROW([Types.INT()]), store.options))
    run_scripted(env, Script(crashes=[Crash(point, 2)], kill=True))
    assert sorted({number for (number,) in store.run("SELECT id FROM log")}) == RECORDS


def test_a_checkpoint_covers_no_row_that_is_not_written(table):
    sink = JdbcSink.sink(UPSERT, PAIR, table.options)
    sink.invoke(Row(1, "x"), Context())
    assert names(table) == []
    sink.snapshot_state(None)  # type: ignore[arg-type]
    assert names(table) == [(1, "x")]
    sink.close()


# ------------------------------------------------------------------------------------------------------- values

EVERY_TYPE = {
    "text": (Types.STRING(), "VARCHAR(20)", "a ? b"),
    "flag": (Types.BOOLEAN(), "BOOLEAN", True),
    "small": (Types.SHORT(), "SMALLINT", -7),
    "long": (Types.LONG(), "BIGINT", 2**62),
    "double": (Types.DOUBLE(), "DOUBLE PRECISION", 0.1),
    "exact": (Types.BIG_DEC(), "DECIMAL(40, 20)", Decimal("12345678901234567890.12345678901234567890")),
    "bytes": (Types.PRIMITIVE_ARRAY(Types.BYTE()), "BYTEA", b"\x00\xff"),
    "day": (Types.SQL_DATE(), "DATE", datetime.date(2024, 2, 29)),
    "clock": (Types.SQL_TIME(), "TIME", datetime.time(23, 59, 58)),
    "moment": (Types.SQL_TIMESTAMP(), "TIMESTAMP", datetime.datetime(2024, 2, 29, 1, 2, 3, 4000)),
    "instant": (Types.INSTANT(), "TIMESTAMPTZ", Instant.of_epoch_milli(1_500)),
}


def test_values_of_every_type_arrive_as_they_are(postgresql):
    columns = ", ".join(f"{name} {sql}" for name, (_, sql, _) in EVERY_TYPE.items())
    postgresql.run(f"CREATE TABLE t ({columns}, list INT[])")
    types = [each for each, _, _ in EVERY_TYPE.values()] + [Types.LIST(Types.INT())]
    sink = JdbcSink.sink(f"INSERT INTO t VALUES ({', '.join('?' * len(types))})", Types.ROW(types), postgresql.options)
    values = [value for _, _, value in EVERY_TYPE.values()] + [[1, 2]]
    sink.invoke(Row(*values), Context())
    sink.invoke(Row(*[None] * len(values)), Context())
    sink.finish()
    sink.close()
    first, second = postgresql.run("SELECT * FROM t ORDER BY text NULLS LAST")
    found = dict(zip([*EVERY_TYPE, "list"], first, strict=True))
    expected = {name: value for name, (_, _, value) in EVERY_TYPE.items()} | {"list": [1, 2]}
    expected["instant"] = datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, datetime.UTC)
    assert found == expected
    assert set(second) == {None}


def test_sqlite_keeps_decimals_and_times_as_text(tmp_path):
    store = sqlite_store(tmp_path)
    columns = ", ".join(f"{name} {'TEXT' if name != 'bytes' else 'BLOB'}" for name in EVERY_TYPE)
    store.run(f"CREATE TABLE t ({columns})")
    types = [each for each, _, _ in EVERY_TYPE.values()]
    sink = JdbcSink.sink(f"INSERT INTO t VALUES ({', '.join('?' * len(types))})", Types.ROW(types), store.options)
    sink.invoke(Row(*[value for _, _, value in EVERY_TYPE.values()]), Context())
    sink.finish()
    sink.close()
    found = dict(zip(EVERY_TYPE, store.run("SELECT * FROM t")[0], strict=True))
    assert found["exact"] == "12345678901234567890.12345678901234567890"
    assert found["bytes"] == b"\x00\xff"
    assert (found["day"], found["clock"], found["moment"]) == ("2024-02-29", "23:59:58", "2024-02-29 01:02:03.004000")
    assert found["instant"] == "1970-01-01 00:00:01.500000+00:00"


def test_a_record_that_does_not_fit_is_refused_by_itself(table):
    sink = JdbcSink.sink(UPSERT, PAIR, table.options)
    sink.invoke(Row(1, "x"), Context())
    with pytest.raises(RecordTypeError, match="'one'"):
        sink.invoke(Row("one", "x"), Context())
    sink.finish()
    sink.close()
    assert names(table) == [(1, "x")]


@pytest.mark.parametrize(
    ("sql", "type_info", "reason"),
    [
        ("INSERT INTO t VALUES (?)", PAIR, "1 placeholders '\\?', but the type has 2 fields: id, name"),
        ("INSERT INTO t VALUES (?)", Types.STRING(), "the type of its rows"),
        ("INSERT INTO t VALUES (?)", Types.ROW([Types.MAP(Types.INT(), Types.INT())]), "field 'f0'.*to text"),
        ("INSERT INTO t VALUES (?)", Types.ROW([Types.PICKLED_BYTE_ARRAY()]), "field 'f0'.*declare one"),
    ],
)
def test_a_mistake_is_named_where_the_sink_is_made(store, sql, type_info, reason):
    with pytest.raises((ValueError, TypeError), match=reason):
        JdbcSink.sink(sql, type_info, store.options)


# ------------------------------------------------------------------------------------------------------- failures


def test_a_row_that_the_database_refuses_fails_at_once_and_its_batch_leaves_nothing(table, caplog):
    sink = JdbcSink.sink("INSERT INTO names VALUES (?, ?)", PAIR, table.options)
    for number in (1, 2, 1):
        sink.invoke(Row(number, "x"), Context())
    with caplog.at_level(logging.WARNING), pytest.raises(DatabaseError, match="write a batch of 3 rows") as caught:
        sink.finish()
    assert "names" in str(caught.value) and table.options.get_db_url() in str(caught.value)
    assert [record for record in caplog.records if record.name.startswith("ekorn")] == [], "a retry cannot help"
    assert names(table) == []
    sink.close()


def test_a_connection_that_was_lost_is_opened_again(postgresql, caplog):
    postgresql.run("CREATE TABLE names (id INT PRIMARY KEY, name VARCHAR(50))")
    sink = JdbcSink.sink(UPSERT, PAIR, postgresql.options, batches(size=1))
    sink.invoke(Row(1, "x"), Context())
    postgresql.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ? AND pid <> pg_backend_pid()",
        postgresql.name,
    )
    with caplog.at_level(logging.WARNING):
        sink.invoke(Row(2, "y"), Context())
    assert names(postgresql) == [(1, "x"), (2, "y")]
    said = [record.getMessage() for record in caplog.records if record.name.startswith("ekorn")]
    assert [text.partition(" at ")[0] for text in said] == ["cannot write a batch of 1 rows"]
    sink.close()


def test_a_database_that_stays_away_fails_the_job_after_its_retries(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        options = options_of(f"jdbc:postgresql://127.0.0.1:{unused.getsockname()[1]}/d", "me", PASSWORD)
        clock = ManualClock()
        sink = JdbcSink(UPSERT, PAIR, options, batches(retries=3), clock)
        with pytest.raises(DatabaseError, match="cannot connect at jdbc:postgresql:") as caught:
            sink.open(None)  # type: ignore[arg-type]
    assert clock.now_ms() == 3000, "at once, after 1 s, after 2 s"
    assert PASSWORD not in str(caught.value)


def test_a_password_is_in_no_log_error_or_repr_of_a_job(postgresql, caplog, capsys):
    wrong = "canary-wrong-password"
    options = options_of(postgresql.options.get_db_url(), USER, wrong)
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.from_collection([(1, "x")], PAIR).add_sink(JdbcSink.sink(UPSERT, PAIR, options, batches(retries=0)))
    with caplog.at_level(logging.DEBUG), on_local_engine(), pytest.raises(JobExecutionError) as caught:
        env.execute()
    shown = [str(caught.value), caught.value.user_traceback or "", repr(JdbcSink.sink(UPSERT, PAIR, options))]
    shown += [caplog.text, *capsys.readouterr()]
    assert "password authentication failed" in str(caught.value)
    assert not [text for text in shown if wrong in text]


def environment(parallelism=1):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    env.set_parallelism(parallelism)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 0))
    return env


def numbers(env, run=2):
    return env.from_source(ScriptedSource([RECORDS], [run]), WatermarkStrategy.no_watermarks(), "numbers")
