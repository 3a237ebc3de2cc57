"""Partitioned tables of Delta and Iceberg: rows in the files of their partition, every row once."""

import datetime
from decimal import Decimal

import pytest

from ekorn.connectors.lakes.data_files import DataFileWriter, PartitionedWriter
from ekorn.connectors.lakes.table_partitions import DeltaPartitions
from ekorn.datastream.connectors.delta import DeltaSink, DeltaSource
from ekorn.datastream.connectors.iceberg import IcebergSink, IcebergSource
from ekorn.errors import ConfigurationError
from ekorn.functions.sink_contract import CommitId, WriterContext
from ekorn.testing.kits import SourceJob
from ekorn.types.data_types import DataTypes
from tests.connectors.lakes.visits import COUNTRIES, EXPECTED, KILLED, RECORDS, VISIT, read, write


def test_a_delta_table_by_two_columns_although_the_job_is_killed(tmp_path):
    import deltalake

    write(DeltaSink(tmp_path / "t", VISIT, partition_by=["country", "day"]), KILLED)
    assert read(DeltaSource(tmp_path / "t")) == EXPECTED
    table = deltalake.DeltaTable(tmp_path / "t")
    assert table.metadata().partition_columns == ["country", "day"]
    in_finland = table.to_pyarrow_table(filters=[("country", "=", "fi")], columns=["id"]).to_pydict()["id"]
    assert sorted(in_finland) == RECORDS[::4]
    assert {row["country"] for row in table.to_pyarrow_table().to_pylist()} == set(COUNTRIES)


def iceberg(folder):
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}


def test_an_iceberg_table_by_a_column_and_a_day_although_the_job_is_killed(tmp_path):
    from pyiceberg.catalog import load_catalog

    sink = IcebergSink("main", iceberg(tmp_path), "shop.visits", VISIT, partition_by=["country", "day(at)"])
    write(sink, KILLED)
    assert read(IcebergSource("main", iceberg(tmp_path), "shop.visits")) == EXPECTED
    table = load_catalog("main", **iceberg(tmp_path)).load_table("shop.visits")
    files = table.inspect.files().to_pylist()
    partitions = {tuple(each["partition"].values()) for each in table.inspect.partitions().to_pylist()}
    assert partitions == {(COUNTRIES[n % 4], datetime.date(2026, 1, 1 + n % 3)) for n in RECORDS}
    assert sum(each["record_count"] for each in files) == len(RECORDS)
    pruned = list(table.scan(row_filter="country == 'fi'").plan_files())
    assert 0 < len(pruned) < len(files)


def test_a_table_that_exists_keeps_its_partitioning(tmp_path):
    DeltaSink(tmp_path / "t", VISIT, partition_by=["day"])
    write(DeltaSink(tmp_path / "t", VISIT))
    assert read(DeltaSource(tmp_path / "t")) == EXPECTED
    with pytest.raises(ConfigurationError, match=r"the table is partitioned by \['day'\], not by \['id'\]"):
        DeltaSink(tmp_path / "t", VISIT, partition_by=["id"])
    IcebergSink("main", iceberg(tmp_path), "shop.visits", VISIT, partition_by=["day"])
    with pytest.raises(ConfigurationError, match=r"partitioned by \[\('identity', 'day'\)\], not by \['id'\]"):
        IcebergSink("main", iceberg(tmp_path), "shop.visits", VISIT, partition_by=["id"])


@pytest.mark.parametrize(
    ("column", "says"),
    [
        ("nothing", r"cannot partition by 'nothing': the row type has \['country', 'id'"),
        ("at", r"by text, whole numbers"),
    ],
)
def test_a_column_that_no_partition_of_delta_can_have_is_refused(tmp_path, column, says):
    with pytest.raises(ConfigurationError, match=says):
        DeltaSink(tmp_path / "t", VISIT, partition_by=[column])
    assert not (tmp_path / "t").exists()


def test_a_transform_that_loses_the_order_is_refused(tmp_path):
    from pyiceberg.catalog import load_catalog
    from pyiceberg.transforms import BucketTransform

    with pytest.raises(ConfigurationError, match=r"cannot partition by 'bucket\(id\)': give the name of a column"):
        IcebergSink("main", iceberg(tmp_path), "shop.visits", VISIT, partition_by=["bucket(id)"])
    IcebergSink("main", iceberg(tmp_path), "shop.visits", VISIT)
    with load_catalog("main", **iceberg(tmp_path)).load_table("shop.visits").update_spec() as spec:
        spec.add_field("id", BucketTransform(4), "by_id")
    with pytest.raises(ConfigurationError, match=r"partitions by bucket\[4\]\(id\): partition by a column, or by year"):
        IcebergSink("main", iceberg(tmp_path), "shop.visits", VISIT)


def test_more_partitions_than_open_files_are_written(tmp_path):
    row_type = DataTypes.ROW([DataTypes.FIELD("part", DataTypes.INT()), DataTypes.FIELD("id", DataTypes.BIGINT())])
    sink = DeltaSink(tmp_path / "t", row_type, partition_by=["part"])
    writer = sink.create_writer(WriterContext(0, 1, 0, "job", "operator"), ())
    for number in range(500):
        writer.write((number % 250, number), None)
    writer.write((7, 500), None)
    prepared = writer.prepare_commit()
    sink.create_global_committer().commit(CommitId("lineage", 1), prepared)
    found = sorted((row.part, row.id) for row in SourceJob(DeltaSource(tmp_path / "t"), 1).read_all())
    assert found == sorted([*((number % 250, number) for number in range(500)), (7, 500)])


def test_empty_text_is_refused_since_delta_reads_it_as_none():
    partitions = DeltaPartitions(VISIT, ["country"])
    with pytest.raises(ValueError, match="partition column 'country' is an empty string"):
        partitions.split(("", 1, None, None))


def test_nan_is_refused_since_the_statistics_of_iceberg_s_files_leave_it_out(tmp_path):
    row_type = DataTypes.ROW([DataTypes.FIELD("ratio", DataTypes.DOUBLE()), DataTypes.FIELD("id", DataTypes.BIGINT())])
    sink = IcebergSink("main", iceberg(tmp_path), "shop.ratios", row_type, partition_by=["ratio"])
    writer = sink.create_writer(WriterContext(0, 1, 0, "job", "operator"), ())
    writer.write((0.5, 1), None)
    writer.write((None, 2), None)
    with pytest.raises(ValueError, match="partition column 'ratio' is NaN, which Iceberg would read as None"):
        writer.write((float("nan"), 3), None)
    writer.close()


class Unremovable(DataFileWriter):
    """A writer that has no file, and whose file may be impossible to remove."""

    def __init__(self, closed, fails):
        self._closed = closed
        self._fails = fails

    def write(self, value, timestamp):
        pass

    def close(self):
        self._closed.append(self._fails)
        if self._fails:
            raise OSError("read-only file system")


def test_all_files_are_closed_although_one_cannot_be_removed():
    closed = []
    writers = iter([Unremovable(closed, fails) for fails in (False, True, False)])
    writer = PartitionedWriter(DeltaPartitions(VISIT, ["country"]), lambda: next(writers))
    for country in ("fi", "se", "no"):
        writer.write((country, 1, None, None), None)
    with pytest.raises(OSError, match="read-only file system"):
        writer.close()
    assert sorted(closed) == [False, False, True]


def test_values_are_written_as_delta_s_protocol_says():
    row_type = DataTypes.ROW(
        [
            DataTypes.FIELD("yes", DataTypes.BOOLEAN()),
            DataTypes.FIELD("sum", DataTypes.DECIMAL(10, 2)),
            DataTypes.FIELD("day", DataTypes.DATE()),
            DataTypes.FIELD("rest", DataTypes.INT()),
        ]
    )
    partitions = DeltaPartitions(row_type, ["yes", "sum", "day"])
    key, row = partitions.split((True, Decimal("1E+2"), datetime.date(2026, 2, 3), 4))
    assert (key, row) == (("true", "100", "2026-02-03"), (4,))


def test_a_date_with_a_time_and_a_whole_decimal_are_written_as_their_columns_hold_them():
    row_type = DataTypes.ROW(
        [
            DataTypes.FIELD("sum", DataTypes.DECIMAL(10, 2)),
            DataTypes.FIELD("day", DataTypes.DATE()),
            DataTypes.FIELD("rest", DataTypes.INT()),
        ]
    )
    key, _ = DeltaPartitions(row_type, ["sum", "day"]).split((5, datetime.datetime(2026, 2, 3, 4, 5), 6))
    assert key == ("5", "2026-02-03")


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (DataTypes.BOOLEAN(), "false"),
        (DataTypes.INT(), "many"),
        (DataTypes.TINYINT(), 1000),
        (DataTypes.STRING(), 5),
        (DataTypes.DATE(), "soon"),
        (DataTypes.DECIMAL(5, 2), Decimal("1.234")),
    ],
)
def test_a_value_that_a_partition_column_cannot_hold_is_refused(data_type, value):
    row_type = DataTypes.ROW([DataTypes.FIELD("part", data_type), DataTypes.FIELD("rest", DataTypes.INT())])
    with pytest.raises(ValueError, match="partition column 'part': "):
        DeltaPartitions(row_type, ["part"]).split((value, 1))
