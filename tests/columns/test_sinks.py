"""Sinks that take columns: their writers get batches, and sinks that take rows get rows."""

import uuid
from collections import defaultdict

import pytest

from ekorn.columns.columns_type import has_columns
from ekorn.common import Row, Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.base import (
    Committer,
    GlobalCommitter,
    GloballyCommittedSink,
    Sink,
    SinkWriter,
    StreamTransformer,
    SupportsPreprocessing,
)
from ekorn.errors import InvalidProgramError, JobExecutionError, RecordFormatError
from ekorn.testing.local_run import on_local_engine

NUMBER = Types.ROW_NAMED(["n"], [Types.LONG()])
ENGINES = pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
SEEN = defaultdict(list)  # what each destination holds: rows, and the form that they came in


class Destination(Sink):
    """Refuses negative numbers, and breaks at 13 after it has written some of the rows."""

    def __init__(self, takes_columns=True):
        self.name, self.takes_columns = uuid.uuid4().hex, takes_columns

    @property
    def seen(self):
        return SEEN[self.name]

    def with_columns(self, row_type):
        return self if self.takes_columns else None

    def create_writer(self, context, restored):
        return Writer(self)

    def create_committer(self):
        return Published(self)


class Writer(SinkWriter):
    def __init__(self, sink):
        self.sink, self.waiting = sink, []

    def write(self, value, timestamp):
        if value.n < 0:
            raise RecordFormatError("positive numbers", "it is negative", str(value.n))
        self.waiting.append((value.n, "row"))

    def write_batch(self, batch):
        numbers = batch.data.column("n").to_pylist()
        if bad := [n for n in numbers if n < 0]:
            raise RecordFormatError("positive numbers", "it is negative", str(bad[0]))
        for n in numbers:
            if n == 13:
                raise OSError("the disk is full")
            self.waiting.append((n, "columns"))

    def prepare_commit(self):
        waiting, self.waiting = self.waiting, []
        return waiting


class Published(Committer):
    def __init__(self, sink):
        self.sink = sink

    def commit(self, committables):
        SEEN[self.sink.name] += committables


class AtOnce(Destination, GloballyCommittedSink):
    def create_committer(self):
        return None

    def create_global_committer(self):
        return OneCommitter(self)


class OneCommitter(GlobalCommitter):
    def __init__(self, sink):
        self.sink = sink

    def commit(self, commit_id, committables):
        SEEN[self.sink.name] += committables


class BigOnes(StreamTransformer):
    def __init__(self, as_rows):
        self.as_rows = as_rows

    def apply(self, ds):
        import pyarrow.compute as pc

        return ds.filter(lambda row: row.n > 4) if self.as_rows else ds.filter(pc.field("n") > 4)


class Prepared(Destination, SupportsPreprocessing):
    as_rows = False

    def get_transformer(self):
        return BigOnes(self.as_rows)


def environment(parallelism=2):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def columns(env, numbers):
    return env.from_collection([Row(n=n) for n in numbers], NUMBER).to_columns(max_rows=7)


def run(env, *, continuous=False):
    with on_local_engine(continuous=continuous):
        env.execute()


@ENGINES
@pytest.mark.parametrize("kind", [Destination, AtOnce])
def test_a_sink_that_takes_columns_gets_batches_and_others_get_rows(continuous, kind):
    env, by_columns, by_rows = environment(), kind(), kind(takes_columns=False)
    stream = columns(env, range(12))
    stream.sink_to(by_columns)
    stream.sink_to(by_rows)
    names = [operator.name for vertex in env.job_graph("job").vertices for operator in vertex.operators]
    assert names.count("To Rows") == 1  # for the second one
    run(env, continuous=continuous)
    assert sorted(by_columns.seen) == [(n, "columns") for n in range(12)]
    assert sorted(by_rows.seen) == [(n, "row") for n in range(12)]


def test_a_sink_behind_keys_gets_batches():
    env, sink = environment(), Destination()
    columns(env, range(12)).key_by("n").sink_to(sink)
    run(env)
    assert sorted(sink.seen) == [(n, "columns") for n in range(12)]


@pytest.mark.parametrize("as_rows", [False, True])
def test_the_form_of_a_transformed_stream_decides_what_its_sink_gets(as_rows):
    env, sink = environment(), Prepared()
    sink.as_rows = as_rows
    columns(env, range(8)).sink_to(sink)
    run(env)
    assert sorted(sink.seen) == [(n, "row" if as_rows else "columns") for n in (5, 6, 7)]


@ENGINES
def test_rows_that_a_writer_refuses_are_skipped_alone_and_become_dead_letters(continuous):
    env, sink, letters = environment(1), Destination(), Destination(takes_columns=False)
    numbers = [1, 2, -3, 4, 5, 6, -7, 8, 9]
    columns(env, numbers).sink_to(sink).on_record_error("dead-letter")
    env.get_dead_letters().map(lambda letter: Row(n=-letter.record.n), NUMBER).sink_to(letters)
    run(env, continuous=continuous)
    assert sink.seen == [(n, "columns") for n in numbers if n > 0]
    assert letters.seen == [(3, "row"), (7, "row")]


def test_a_refused_row_fails_the_job_unless_records_are_skipped():
    env, sink = environment(1), Destination()
    columns(env, [1, -2]).sink_to(sink)
    with pytest.raises(JobExecutionError, match="-2 is not a record in positive numbers"):
        run(env)


def test_an_error_in_the_middle_of_a_batch_fails_the_job_also_where_records_are_skipped():
    env, sink = environment(1), Destination()
    columns(env, [11, 12, 13]).sink_to(sink).on_record_error("skip")
    with pytest.raises(JobExecutionError, match="the disk is full"):
        run(env)
    assert sink.seen == []


def test_a_sink_has_the_same_id_in_both_forms():
    def ids(sink):
        env = environment()
        columns(env, [1]).sink_to(sink)
        operators = [operator for vertex in env.job_graph("job").vertices for operator in vertex.operators]
        return operators[-1].id, has_columns(operators[-1].input_type)

    for kind in (Destination, AtOnce):
        (by_columns, _), (by_rows, _) = ids(kind()), ids(kind(takes_columns=False))
        assert by_columns == by_rows
    assert ids(Destination())[1]
    assert not ids(Destination(takes_columns=False))[1]


def test_a_sink_that_would_commit_in_another_way_on_columns_is_refused():
    with pytest.raises(InvalidProgramError, match="commits in another way"):
        columns(environment(), [1]).sink_to(Confused())


class Confused(AtOnce):
    def with_columns(self, row_type):
        return Destination()
