"""DataFrames in columns: the rows, positions and files are those of rows."""

import pandas
import pyarrow.compute as pc
import pytest

from ekorn.columns.row_columns import RowColumns
from ekorn.common import Row, Types
from ekorn.connectors.data_frames.row_batches_source import RowBatchesSource
from ekorn.connectors.data_frames.row_files_sink import RowFilesSink
from ekorn.connectors.data_frames.written_rows import WrittenRows, row_files_in
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.errors import ConfigurationError, JobExecutionError
from ekorn.storage.file_store import open_files
from ekorn.table import DataTypes
from ekorn.testing.local_run import on_local_engine
from tests.connectors.data_frames.row_files import ROW_TYPE, Query, committed_rows, rows, write_part

NUMBER = Types.ROW_NAMED(["n", "word"], [Types.LONG(), Types.STRING()])
NUMBERS = [Row(n=n, word=None if n % 3 == 0 else f"w{n}") for n in range(40)]
NUMBER_TYPE = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT()), DataTypes.FIELD("word", DataTypes.STRING())])


def environment(parallelism=2):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def rows_of(batches, row_type):
    return [row for batch in batches for row in RowColumns(row_type).rows(batch.data)]


def test_files_of_spark_are_read_as_columns_from_the_positions_of_rows(tmp_path):
    write_part(tmp_path, 0, rows(0, 11))
    write_part(tmp_path, 1, [])
    write_part(tmp_path, 2, rows(100, 3))
    files = row_files_in(open_files(str(tmp_path)))
    by_rows = WrittenRows(str(tmp_path), ROW_TYPE, files)
    by_columns = WrittenRows(str(tmp_path), ROW_TYPE, files, as_columns=True)
    found = []
    for split in by_rows.discover_splits(1):
        first = by_rows.create_reader(split, None)
        found += first.read(2).values
        second = by_columns.create_reader(split, first.position())
        while not second.finished:
            found += rows_of(second.read(3).values, ROW_TYPE)
        assert by_rows.create_reader(split, second.position()).read(9).values == []
    assert found == rows(0, 11) + rows(100, 3)


def test_batches_of_a_streaming_query_are_read_as_columns(tmp_path):
    query = Query(tmp_path)
    query.batch(0, rows(0, 5), rows(50, 2))
    query.batch(1, rows(100, 3))
    query.batches.end("clicks", None)
    source = RowBatchesSource(str(tmp_path), ROW_TYPE, lanes=1, bounded=True, as_columns=True, look_interval_ms=0)
    (split,) = source.discover_splits(1)
    reader = source.create_reader(split, None)
    found, position = [], None
    while not reader.finished:
        found += rows_of(reader.read(3).values, ROW_TYPE)
        if reader.position() != position:
            position = reader.position()
            reader = source.create_reader(split, position)  # a new reader goes on there
    assert sorted(found, key=str) == sorted(rows(0, 5) + rows(50, 2) + rows(100, 3), key=str)


@pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
def test_columns_of_pandas_go_in_and_out_without_rows(continuous, caplog):
    frame = pandas.DataFrame({"n": range(200_000), "word": ["a", None] * 100_000}, index=range(5, 200_005))
    env = environment()
    stream = env.from_pandas(frame, as_columns=True).filter(pc.field("n") >= 100_000)
    assert stream.row_type == NUMBER_TYPE
    with on_local_engine(continuous=continuous):
        found = stream.to_pandas()
    assert "To Rows" not in caplog.text  # where an operator is warned of whose results go nowhere
    assert found.sort_values("n").reset_index(drop=True).equals(frame[100_000:].reset_index(drop=True))


def test_a_reader_of_pandas_goes_on_at_its_row():
    from ekorn.connectors.data_frames.pandas_rows import columns_of_pandas

    source = columns_of_pandas(pandas.DataFrame({"n": range(70_000)}))
    (split,) = source.discover_splits(2)
    position, found = None, []
    while True:
        reader = source.create_reader(split, position)
        for batch in reader.read(30_001).values:
            found += batch.data.column("n").to_pylist()
        position = reader.position()
        if reader.finished:
            break
    assert found == list(range(70_000))


def test_a_column_of_pandas_that_would_be_changed_is_refused():
    frame = pandas.DataFrame({"at": pandas.to_datetime(["2024-01-01 00:00:00.000000001"])})
    with pytest.raises(ConfigurationError, match="a column would be changed"):
        environment().from_pandas(frame, as_columns=True)


def test_an_empty_result_has_the_columns():
    stream = environment().from_collection(NUMBERS, NUMBER).to_columns().filter(pc.field("n") > 1000)
    with on_local_engine():
        assert list(stream.to_pandas().columns) == ["n", "word"]


def write_rows(folder, rows_in, row_type, *, skips=False):
    env = environment(1)
    sink = env.from_collection(rows_in).to_columns(NUMBER_TYPE).sink_to(RowFilesSink(str(folder), row_type))
    assert "To Rows" not in env.explain()
    if skips:
        sink.on_record_error("skip")
    with on_local_engine():
        env.execute()


def test_files_for_spark_hold_what_rows_would_give(tmp_path):
    reversed_columns = DataTypes.ROW(
        [DataTypes.FIELD("word", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.INT())]
    )
    write_rows(tmp_path, NUMBERS, reversed_columns)
    expected = [Row(word=row.word, n=row.n) for row in NUMBERS]
    assert sorted(committed_rows(tmp_path, reversed_columns), key=lambda row: row.n) == expected


def test_a_row_that_files_for_spark_cannot_hold_is_skipped_alone(tmp_path):
    ints = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT())])
    rows_in = [Row(n=1, word="a"), Row(n=2**40, word="b"), Row(n=3, word="c")]
    with pytest.raises(JobExecutionError, match="1099511627776"):
        write_rows(tmp_path, rows_in, ints)
    write_rows(tmp_path, rows_in, ints, skips=True)
    assert [row.n for row in committed_rows(tmp_path, ints)] == [1, 3]
