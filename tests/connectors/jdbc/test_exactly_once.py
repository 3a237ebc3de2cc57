"""`JdbcSink.exactly_once_sink`: a crash at any step loses no row and writes none twice, at any parallelism."""

import pytest

from ekorn import faults
from ekorn.clock import ManualClock
from ekorn.common import Configuration, Row, Types, WatermarkStrategy
from ekorn.connectors.jdbc.exactly_once import JdbcExactlyOnceSink
from ekorn.datastream import CheckpointingMode, StreamExecutionEnvironment
from ekorn.datastream.connectors.jdbc import JdbcExecutionOptions, JdbcSink
from ekorn.errors import DatabaseError, LedgerRowExpired
from ekorn.testing import on_local_engine
from ekorn.testing.scripted import Crash, DriverDied, Script, ScriptedSource, run_scripted, start_scripted
from tests.connectors.jdbc.stores import Store
from tests.operators.committing import POINTS, environment, retaining, run_at_two_parallelisms
from tests.servers.postgres import PASSWORD

RECORDS = list(range(12))
NUMBER = Types.ROW([Types.INT()])
INSERT = "INSERT INTO log VALUES (?)"
FAULTS = ["sink-commit", "jdbc-ledger", "jdbc-rows", "sink-committed", "sink-recover"]


@pytest.fixture
def log(store: Store) -> Store:
    store.run("CREATE TABLE log (id INT)")
    return store


def draw(env, store, run=2):
    source = env.from_source(ScriptedSource([RECORDS], [run]), WatermarkStrategy.no_watermarks(), "numbers")
    stream = source.uid("numbers").set_parallelism(1).rebalance().map(Row, NUMBER)
    stream.add_sink(JdbcSink.exactly_once_sink(INSERT, NUMBER, store.options)).uid("sink")


def written(store):
    return sorted(number for (number,) in store.run("SELECT id FROM log"))


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_step_loses_no_row_and_writes_none_twice(log, point):
    env = environment(parallelism=2)
    draw(env, log)
    run_scripted(env, Script(crashes=[Crash(point, 1), Crash(point, 3)], kill=True))
    assert written(log) == RECORDS


@pytest.mark.parametrize("point", ["in-epoch", "before-notify", "in-notify"])
def test_a_failure_after_which_the_sink_is_closed_loses_no_row_and_writes_none_twice(log, point):
    env = environment(parallelism=2)
    draw(env, log)
    run_scripted(env, Script(crashes=[Crash(point, 1), Crash(point, 3)], kill=False))
    assert written(log) == RECORDS


@pytest.mark.parametrize("fault", FAULTS)
def test_a_failure_at_any_step_of_a_commit_is_made_good(log, fault, monkeypatch):
    monkeypatch.setenv("EKORN_FAULT", f"{fault}:*:1:error")
    faults.reset_counts()
    env = environment(parallelism=2)
    draw(env, log)
    run = run_scripted(env, Script(crashes=[Crash("after-notify", 2)]))
    assert run.handle.progress().restarts >= 1
    assert written(log) == RECORDS


@pytest.mark.parametrize("point", ["before-notify", "in-notify", "after-notify"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_another_parallelism_commits_what_was_prepared(log, tmp_path, point, before, after):
    run_at_two_parallelisms(lambda env: draw(env, log), tmp_path / "checkpoints", point, before, after)
    assert written(log) == RECORDS


def test_a_checkpoint_holds_the_rows_and_no_password(postgresql, tmp_path):
    postgresql.run("CREATE TABLE log (id INT)")
    env = retaining(environment(), tmp_path)
    env.configure(Configuration().set_string("execution.checkpointing.data-inline-threshold", "0"))
    draw(env, postgresql)
    with pytest.raises(DriverDied):
        start_scripted(env, Script(crashes=[Crash("before-notify", 1)], driver_dies=True))
    found = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"chunks" in found, "the rows are in a file of the checkpoint"
    assert PASSWORD.encode() not in found


def test_rows_appear_when_their_checkpoint_is_complete(log):
    env = environment()
    env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(10)
    draw(env, log)
    run_scripted(env, Script(failed_snapshots=[1, 2]))
    assert written(log) == RECORDS
    committed = log.run("SELECT row_count FROM ekorn_ledger ORDER BY committed_ms, row_count")
    assert sum(count for (count,) in committed) == len(RECORDS)


def test_without_checkpoints_rows_appear_at_the_end_of_the_input(log):
    env = StreamExecutionEnvironment.get_execution_environment(Configuration())
    draw(env, log)
    with on_local_engine():
        env.execute()
    assert written(log) == RECORDS


def test_at_least_once_checkpoints_lose_no_row(log):
    env = environment(mode=CheckpointingMode.AT_LEAST_ONCE)
    draw(env, log)
    run_scripted(env, Script(crashes=[Crash("after-epoch", 2)]))
    assert sorted(set(written(log))) == RECORDS


# ------------------------------------------------------------------------------------------------------- the ledger


def transaction(sink, *numbers):
    begun = sink.begin_transaction()
    for number in numbers:
        sink.invoke(begun, Row(number), None)
    sink.pre_commit(begun)
    return begun


def sink_of(store, clock):
    options = JdbcExecutionOptions.defaults()
    return JdbcExactlyOnceSink(INSERT, NUMBER, store.options, options, clock=clock)


def test_a_transaction_of_many_chunks_is_written_at_once(log):
    sink = sink_of(log, ManualClock())
    begun = transaction(sink, *range(2500))
    sink.commit(begun)
    sink.commit(begun)
    sink.close()
    assert written(log) == list(range(2500))


def test_rows_of_the_ledger_are_deleted_when_they_are_old(log):
    clock = ManualClock(now_ms=10**12)
    sink = sink_of(log, clock)
    sink.commit(transaction(sink, 1))
    clock.advance(8 * 86_400_000)
    sink.commit(transaction(sink, 2))
    ids = log.run("SELECT transaction_id, row_count FROM ekorn_ledger ORDER BY row_count")
    assert [(name == "(pruned)", count) for name, count in ids] == [(True, 0), (False, 1)]
    sink.close()


def test_a_transaction_that_may_have_been_committed_long_ago_is_refused(log):
    clock = ManualClock(now_ms=10**12)
    sink = sink_of(log, clock)
    old = transaction(sink, 1)
    sink.commit(old)
    clock.advance(8 * 86_400_000)
    sink.commit(transaction(sink, 2))
    with pytest.raises(LedgerRowExpired, match="unknown whether the rows were written"):
        sink.commit(old)
    assert written(log) == [1, 2]
    sink.close()


def test_an_old_transaction_is_committed_if_the_ledger_shows_that_it_was_not(log):
    clock = ManualClock(now_ms=10**12)
    sink = sink_of(log, clock)
    sink.commit(transaction(sink, 1))
    old = transaction(sink, 2)
    clock.advance(30 * 86_400_000)  # the job was stopped; nothing was deleted meanwhile
    sink.commit(old)
    assert written(log) == [1, 2]
    sink.close()


def test_rows_that_the_database_refuses_leave_no_row_of_the_ledger(log):
    log.run("CREATE UNIQUE INDEX once ON log (id)")
    sink = sink_of(log, ManualClock())
    with pytest.raises(DatabaseError, match="commit 3 rows"):
        sink.commit(transaction(sink, 1, 2, 1))
    sink.close()
    assert written(log) == []
    assert log.run("SELECT * FROM ekorn_ledger") == []


def test_an_interval_is_refused(store):
    options = JdbcExecutionOptions.builder().with_batch_interval_ms(5).build()
    with pytest.raises(ValueError, match="checkpoint interval"):
        JdbcSink.exactly_once_sink(INSERT, NUMBER, store.options, options)
