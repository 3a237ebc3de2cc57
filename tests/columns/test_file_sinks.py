"""Sinks of files that take columns: the files are those that rows would give."""

import datetime
import io
import time

import pyarrow as pa
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Row, Types
from ekorn.connectors.formats.csv_dialect import CsvDialect
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import (
    BucketAssigner,
    CheckpointRollingPolicy,
    FileCompactStrategy,
    FileSink,
    RecordWiseFileCompactor,
)
from ekorn.datastream.formats.csv import CsvBulkWriters, CsvSchema
from ekorn.datastream.formats.json import JsonBulkWriters
from ekorn.datastream.formats.orc import OrcBulkWriters
from ekorn.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from ekorn.errors import JobExecutionError, RecordFormatError
from ekorn.table import DataTypes
from ekorn.testing.local_run import on_local_engine
from tests.columns.written_files import CSV_ROWS, CSV_TYPE, ROWS, written
from tests.connectors.formats.values_of_types import TEXTS, WITH_MAP
from tests.connectors.writing import visible_files, visible_lines
from tests.examples_by_profile import examples

MODERN = st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2100, 1, 1))


def parquet(content):
    return pa.parquet.read_table(pa.BufferReader(content))


def orc(content):
    return pa.orc.read_table(pa.BufferReader(content))


CUTS = st.lists(st.integers(0, 12), max_size=3)


@pytest.mark.parametrize("standard", ["SQL", "ISO-8601"])
@settings(max_examples=examples(30))
@given(rows=ROWS, cuts=CUTS)
def test_json_lines_of_columns_are_those_of_rows(standard, rows, cuts):
    factory = JsonBulkWriters.for_row_type(WITH_MAP, standard)
    assert written(factory, rows, WITH_MAP, cuts) == written(factory, rows)


DIALECTS = st.builds(
    CsvDialect,
    separator=st.sampled_from(",;|\t"),
    quote=st.sampled_from(['"', "'", None]),
    escape=st.sampled_from([None, "\\", "^"]),
    null_literal=st.sampled_from([None, "", "NULL"]),
    line_end=st.sampled_from(["\n", "\r\n", ""]),
)


@settings(max_examples=examples(60))
@given(rows=CSV_ROWS, cuts=CUTS, dialect=DIALECTS)
def test_csv_records_of_columns_are_those_of_rows(rows, cuts, dialect):
    factory = CsvBulkWriters.for_schema(CsvSchema(CSV_TYPE, dialect, use_header=True))
    assert written(factory, rows, CSV_TYPE, cuts) == written(factory, rows)


@pytest.mark.parametrize("utc", [False, True])
@settings(max_examples=examples(20))
@given(rows=ROWS, cuts=CUTS)
def test_parquet_files_of_columns_hold_what_those_of_rows_hold(utc, rows, cuts):
    flat = DataTypes.ROW([field for field in WITH_MAP if field.name != "inner"])  # which has local times inside
    row_type = WITH_MAP if utc else flat
    factory = ParquetBulkWriters.for_row_type(row_type, utc_timestamp=utc)
    assert parquet(written(factory, rows, WITH_MAP, cuts)) == parquet(written(factory, rows))


@settings(max_examples=examples(10))
@given(rows=ROWS.filter(bool), cuts=CUTS)
def test_orc_files_of_columns_hold_what_those_of_rows_hold(rows, cuts):
    modern = [Row(**{**row.as_dict(), "at": None, "fine": None, "instant": None}) for row in rows]
    no_times = DataTypes.ROW([field for field in WITH_MAP if field.name not in ("clock", "inner")])
    factory = OrcBulkWriters.for_row_type(no_times)
    assert orc(written(factory, modern, WITH_MAP, cuts)) == orc(written(factory, modern))


@pytest.fixture
def in_berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


LOCAL = DataTypes.ROW([DataTypes.FIELD("at", DataTypes.TIMESTAMP(6)), DataTypes.FIELD("ms", DataTypes.TIMESTAMP(3))])
SWITCHES = [datetime.datetime(2023, 3, 26, hour, minute, 59) for hour in (1, 2, 3) for minute in (0, 59)] + [
    datetime.datetime(2023, 10, 29, hour, 30) for hour in (1, 2, 3)
]


def test_local_times_of_columns_are_stored_as_those_of_rows_are(in_berlin):
    old = [datetime.datetime(1893, 4, 1, 0, minute) for minute in (0, 6, 7)] + [datetime.datetime(1945, 5, 24, 2)]
    rows = [Row(at=at, ms=at) for at in [*SWITCHES, *old, None]]
    factory = ParquetBulkWriters.for_row_type(LOCAL)
    found = parquet(written(factory, rows, LOCAL))
    assert found == parquet(written(factory, rows))
    assert found["at"][0].as_py() == datetime.datetime(2023, 3, 26, 0, 0, 59)


NARROW = DataTypes.ROW(
    [
        DataTypes.FIELD("number", DataTypes.INT()),
        DataTypes.FIELD("real", DataTypes.FLOAT()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(3)),
    ]
)
BROAD = DataTypes.ROW(
    [
        DataTypes.FIELD("more", DataTypes.STRING()),
        DataTypes.FIELD("at", DataTypes.TIMESTAMP(6)),
        DataTypes.FIELD("number", DataTypes.BIGINT()),
        DataTypes.FIELD("real", DataTypes.DOUBLE()),
    ]
)


@settings(max_examples=examples(60))
@given(
    rows=st.lists(
        st.builds(Row, more=TEXTS, at=st.datetimes(), number=st.integers(-(2**31), 2**31 - 1), real=st.floats()),
        max_size=4,
    )
)
def test_columns_in_another_order_and_of_another_width_are_written_as_rows_are(rows):
    factory = ParquetBulkWriters.for_row_type(NARROW, utc_timestamp=True)
    found, expected = parquet(written(factory, rows, BROAD)), parquet(written(factory, rows))
    assert found.schema == expected.schema
    assert repr(found.to_pylist()) == repr(expected.to_pylist())  # NaN is not equal to itself
    without_real = DataTypes.ROW([field for field in NARROW if field.name != "real"])
    schema = CsvBulkWriters.for_schema(CsvSchema(without_real))
    assert written(schema, rows, BROAD) == written(schema, rows)


STRICT = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT().not_null())])
LONGS = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())])
DOUBLES = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.DOUBLE())])


@pytest.mark.parametrize(
    ("factory", "row_type", "bad", "message"),
    [
        (ParquetBulkWriters.for_row_type(STRICT), LONGS, None, r"Row\(n=None\) is not a record in Parquet.*holds no"),
        (ParquetBulkWriters.for_row_type(STRICT), LONGS, 2**31, r"Row\(n=2147483648\) is not a record in Parquet"),
        (OrcBulkWriters.for_row_type(STRICT), LONGS, 2**31, r"Row\(n=2147483648\) is not a record in ORC"),
        (CsvBulkWriters.for_schema(CsvSchema(STRICT)), LONGS, 2**31, r"in CSV: column 'n': 2147483648 is outside"),
        (JsonBulkWriters.for_row_type(DOUBLES), DOUBLES, float("nan"), r"in JSON: .*JSON cannot represent nan"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_before_any_row_of_its_batch_is_written(factory, row_type, bad, message):
    stream = io.BytesIO()
    writer = factory.for_columns(row_type).create(stream)
    columns = RowColumns(row_type)
    with pytest.raises(RecordFormatError, match=message):
        writer.add_columns(columns.batch([Row(n=1), Row(n=bad), Row(n=3)]))
    writer.add_columns(columns.batch([Row(n=7)]))
    stream.close = lambda: None  # type: ignore[method-assign]
    writer.finish()
    content = stream.getvalue()
    if content[:4] == b"PAR1":
        assert parquet(content)["n"].to_pylist() == [7]
    elif content[:3] == b"ORC":
        assert orc(content)["n"].to_pylist() == [7]
    else:
        assert content in (b"7\n", b'{"n":7.0}\n')


# ------------------------------------------------------------------------------------------------------------ programs

ORDER = Types.ROW_NAMED(["name", "n"], [Types.STRING(), Types.INT()])
ORDER_TYPE = DataTypes.ROW([DataTypes.FIELD("name", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.INT())])
ORDERS = [Row(name=f"n{n % 3}", n=n) for n in range(40)]
CSV = CsvSchema(ORDER_TYPE)


def orders(parallelism=2):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    return env, env.from_collection(ORDERS, ORDER).to_columns(max_rows=7)


def drawn(env):
    return [operator.name for vertex in env.job_graph("job").vertices for operator in vertex.operators]


def run(env, *, continuous=False):
    with on_local_engine(continuous=continuous):
        env.execute()


@pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
@pytest.mark.parametrize(
    "factory",
    [
        ParquetBulkWriters.for_row_type(ORDER_TYPE),
        OrcBulkWriters.for_row_type(ORDER_TYPE),
        CsvBulkWriters.for_schema(CSV),
        JsonBulkWriters.for_row_type(ORDER_TYPE),
    ],
    ids=["parquet", "orc", "csv", "json"],
)
def test_a_program_writes_files_without_rows(factory, continuous, tmp_path):
    env, stream = orders()
    stream.sink_to(FileSink.for_bulk_format(str(tmp_path), factory).build())
    assert "To Rows" not in drawn(env)
    run(env, continuous=continuous)
    found = []
    for path in visible_files(tmp_path):
        content = path.read_bytes()
        if content[:4] == b"PAR1":
            found += parquet(content)["n"].to_pylist()
        elif content[:3] == b"ORC":
            found += orc(content)["n"].to_pylist()
        elif content[:1] == b"{":
            found += pa.json.read_json(pa.BufferReader(content))["n"].to_pylist()
        else:
            found += [int(line.split(",")[1]) for line in content.decode().splitlines()]
    assert sorted(found) == list(range(40))


class ByName(BucketAssigner):
    def get_bucket_id(self, element, context):
        return element.name


def test_an_assigner_of_the_program_gets_rows(tmp_path):
    env, stream = orders()
    sink = FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(CSV)).with_bucket_assigner(ByName())
    stream.sink_to(sink.build())
    assert "To Rows" in drawn(env)
    run(env)
    assert sorted(path.parent.name for path in visible_files(tmp_path)) != []
    assert len(visible_lines(tmp_path / "n0")) == 14


class OfTenBytes(CheckpointRollingPolicy):
    def should_roll_on_event(self, part_file_state, element):
        assert element.n >= 0
        return part_file_state.get_size() > 10

    def should_roll_on_processing_time(self, part_file_state, current_time):
        return False


def test_a_rolling_policy_is_asked_for_each_batch(tmp_path):
    env, stream = orders(1)
    builder = FileSink.for_bulk_format(str(tmp_path), CsvBulkWriters.for_schema(CSV))
    stream.sink_to(builder.with_rolling_policy(OfTenBytes()).build())
    run(env)
    assert len(visible_files(tmp_path)) == 6  # a batch of 7 in each
    assert len(visible_lines(tmp_path)) == 40


def test_files_of_columns_are_merged(tmp_path):
    env, stream = orders()
    strategy = FileCompactStrategy.builder().set_size_threshold(1 << 20).build()
    builder = FileSink.for_bulk_format(str(tmp_path), ParquetBulkWriters.for_row_type(ORDER_TYPE, utc_timestamp=True))
    reader = ParquetColumnarRowInputFormat(ORDER_TYPE, is_utc_timestamp=True)
    builder.with_rolling_policy(OfTenBytes()).enable_compact(strategy, RecordWiseFileCompactor(reader))
    stream.sink_to(builder.build())
    assert "To Rows" not in drawn(env)
    run(env)
    files = visible_files(tmp_path)
    assert 1 <= len(files) <= 2
    assert sorted(n for path in files for n in parquet(path.read_bytes())["n"].to_pylist()) == list(range(40))


def test_a_row_that_does_not_fit_is_a_dead_letter_alone(tmp_path):
    wide = Types.ROW_NAMED(["n"], [Types.LONG()])
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    numbers = env.from_collection([Row(n=n) for n in (1, 2, 2**40, 4)], wide).to_columns()
    factory = CsvBulkWriters.for_schema(CsvSchema(STRICT))
    sink = FileSink.for_bulk_format(str(tmp_path), factory).build()
    numbers.sink_to(sink)
    with pytest.raises(JobExecutionError, match="1099511627776 is outside the range of INT"):
        run(env)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    numbers = env.from_collection([Row(n=n) for n in (1, 2, 2**40, 4)], wide).to_columns()
    numbers.sink_to(sink).on_record_error("skip")
    run(env)
    assert visible_lines(tmp_path) == ["1", "2", "4"]
