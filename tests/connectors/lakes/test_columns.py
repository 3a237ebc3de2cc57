"""Tables of Delta and Iceberg in columns: the rows, positions and files are those of rows."""

import pytest

from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.common import Configuration, RestartStrategies, Row, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.delta import DeltaSink, DeltaSource
from ekorn.datastream.connectors.iceberg import IcebergSink, IcebergSource
from ekorn.errors import ConfigurationError, JobExecutionError
from ekorn.table import DataTypes
from ekorn.testing import collect_locally
from ekorn.testing.local_run import on_local_engine
from ekorn.testing.scripted import ScriptedSource, run_scripted
from tests.connectors.lakes.visits import EXPECTED, KILLED, RECORDS, VISIT, read, visit


def catalog(folder):
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}


def delta(folder, partition_by=None):
    sink = DeltaSink(folder / "t", VISIT, partition_by=partition_by)
    return sink, lambda **more: DeltaSource(folder / "t", **more)


def iceberg(folder, partition_by=None):
    sink = IcebergSink("main", catalog(folder), "shop.visits", VISIT, partition_by=partition_by)
    return sink, lambda **more: IcebergSource("main", catalog(folder), "shop.visits", **more)


TABLES = pytest.mark.parametrize(
    ("table", "partition_by"),
    [(delta, None), (delta, ["country", "day"]), (iceberg, None), (iceberg, ["country", "day(at)"])],
    ids=["delta", "partitioned delta", "iceberg", "partitioned iceberg"],
)


@TABLES
def test_columns_are_written_and_read_once_although_the_job_is_killed(table, partition_by, tmp_path):
    sink, source = table(tmp_path, partition_by)
    env = StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)
    env.enable_checkpointing(10)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(20, 0))
    numbers = env.from_source(ScriptedSource([RECORDS], [4]), WatermarkStrategy.no_watermarks(), "numbers")
    visits = numbers.set_parallelism(1).rebalance().map(visit).to_columns(VISIT, max_rows=3)
    visits.sink_to(sink)
    assert "To Rows" not in env.explain()
    run_scripted(env, KILLED)
    assert read(source()) == EXPECTED
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    stream = env.from_source(source(as_columns=True), WatermarkStrategy.no_watermarks(), "visits")
    assert stream.row_type.field_names() == VISIT.field_names()
    found = sorted((list(row) for row in collect_locally(stream)), key=lambda row: row[1])
    assert found == EXPECTED


@TABLES
def test_a_reader_of_columns_goes_on_at_the_position_of_one_of_rows(table, partition_by, tmp_path):
    sink, source = table(tmp_path, partition_by)
    write_all(sink, [visit(n) for n in range(9)])
    by_rows, by_columns = source(columns=["id", "country"]), source(columns=["id", "country"], as_columns=True)
    columns = RowColumns(row_type_of_arrow(by_columns.get_produced_type().schema, exact=True))
    found = []
    for split in by_rows.discover_splits(1):
        first = by_rows.create_reader(split, None)
        found += first.read(2).values
        second = by_columns.create_reader(split, first.position())
        while not second.finished:
            found += [row for batch in second.read(2).values for row in columns.rows(batch.data)]
        assert by_rows.create_reader(split, second.position()).read(10).values == []
    assert sorted(found, key=lambda row: row.id) == [Row(id=n, country=visit(n)[0]) for n in range(9)]


def write_all(sink, rows):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.from_collection(rows).to_columns(VISIT).sink_to(sink)
    with on_local_engine():
        env.execute()


def test_a_column_that_the_table_lacks_is_refused(tmp_path):
    _, source = delta(tmp_path)
    with pytest.raises(ConfigurationError, match="the table has no column 'nobody'; it has country, id, day, at"):
        source(columns=["id", "nobody"])
    with pytest.raises(TypeError, match="takes the names of columns, got 'id'"):
        source(columns="id")


STRICT = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.INT().not_null())])
LOOSE = DataTypes.ROW([DataTypes.FIELD("k", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.BIGINT())])


@pytest.mark.parametrize("bad", [("b", 2**40), ("b", None), ("", 5)])
def test_a_row_that_does_not_fit_is_refused_before_any_partition_is_written(bad, tmp_path):
    sink = DeltaSink(tmp_path / "t", STRICT, partition_by=["k"])
    rows = [Row(k="a", n=1), Row(k="b", n=2), Row(*bad), Row(k="a", n=4)]
    for skips in (False, True):
        env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        written = env.from_collection(rows).to_columns(LOOSE).sink_to(sink)
        if skips:
            written.on_record_error("skip")
        with on_local_engine():
            if not skips:
                with pytest.raises(JobExecutionError):
                    env.execute()
            else:
                env.execute()
    import deltalake

    found = deltalake.DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    assert sorted((row["k"], row["n"]) for row in found) == [("a", 1), ("a", 4), ("b", 2)]
