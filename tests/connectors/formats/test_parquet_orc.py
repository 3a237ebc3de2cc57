"""Parquet and ORC: values of every type, columns by name, settings, damage, and files of other writers."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from ekorn.common import Configuration, Instant, Row
from ekorn.connectors.files.file_source import OpenFiles
from ekorn.datastream.connectors.file_system import FileEnumeratorProvider, FileSource
from ekorn.datastream.formats.avro import AvroSchema
from ekorn.datastream.formats.orc import OrcBulkWriters
from ekorn.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from ekorn.errors import ConfigurationError, RecordFormatError
from ekorn.functions.source_contract import Batch, SplitReader
from ekorn.table import DataTypes
from tests.connectors.formats.files import read_file, read_source, write_file

FIELDS = {
    "char": (DataTypes.CHAR(10), "char"),
    "varchar": (DataTypes.VARCHAR(10), "varchar"),
    "binary": (DataTypes.BINARY(10), b"binary"),
    "varbinary": (DataTypes.VARBINARY(10), b"varbinary"),
    "boolean": (DataTypes.BOOLEAN(), True),
    "tinyint": (DataTypes.TINYINT(), -7),
    "smallint": (DataTypes.SMALLINT(), 300),
    "int": (DataTypes.INT(), 5),
    "bigint": (DataTypes.BIGINT(), 2**40),
    "float": (DataTypes.FLOAT(), 0.5),
    "double": (DataTypes.DOUBLE(), 0.05),
    "decimal": (DataTypes.DECIMAL(4, 2), Decimal("1.50")),
    "date": (DataTypes.DATE(), datetime.date(1970, 2, 3)),
    "time": (DataTypes.TIME(), datetime.time(4, 5, 6)),
    "timestamp": (DataTypes.TIMESTAMP(3), datetime.datetime(1970, 2, 3, 4, 5, 6, 700_000)),
    "timestamp_ltz": (DataTypes.TIMESTAMP_LTZ(3), Instant(2_873_106, 700_000_000)),
    "array": (DataTypes.ARRAY(DataTypes.STRING()), ["a", None]),
    "map": (DataTypes.MAP(DataTypes.STRING(), DataTypes.TIMESTAMP_LTZ(3)), {"k": Instant(1, 0), "n": None}),
    "row": (DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())]), Row(x=1)),
}
ROW_TYPE = DataTypes.ROW([DataTypes.FIELD(name, data_type) for name, (data_type, _) in FIELDS.items()])
FULL = Row(**{name: value for name, (_, value) in FIELDS.items()})
EMPTY = Row(**dict.fromkeys(FIELDS))
SMALL = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("s", DataTypes.STRING())])


def read_rows(path, row_type=ROW_TYPE, **settings):
    return read_file(ParquetColumnarRowInputFormat(row_type, **settings), path)[0]


@pytest.mark.parametrize("utc", [True, False])
def test_values_of_every_type_are_written_and_read(tmp_path, utc, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    import time

    time.tzset()
    try:
        path = write_file(
            tmp_path / "x.parquet", ParquetBulkWriters.for_row_type(ROW_TYPE, utc_timestamp=utc), [FULL, EMPTY]
        )
        assert read_rows(path, is_utc_timestamp=utc) == [FULL, EMPTY]
        stored = pyarrow.parquet.read_table(path).column("timestamp")[0].as_py()
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    assert stored == FULL["timestamp"] - datetime.timedelta(hours=0 if utc else 8)


def test_columns_are_found_by_name_and_a_missing_one_is_none(tmp_path):
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pa.table({"S": ["a"], "other": [1], "n": [7]}), path)
    assert read_rows(path, SMALL) == [Row(n=7, s=None)]
    assert read_rows(path, SMALL, is_case_sensitive=False) == [Row(n=7, s="a")]


def test_nanoseconds_of_older_writers_are_read(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"at": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns"))})
    pyarrow.parquet.write_table(table, path, use_deprecated_int96_timestamps=True)
    row_type = DataTypes.ROW([DataTypes.FIELD("at", DataTypes.TIMESTAMP(6))])
    (row,) = read_rows(path, row_type, is_utc_timestamp=True)
    assert row["at"] == datetime.datetime(2023, 11, 14, 22, 13, 20, 123_456)


def test_a_column_of_another_type_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pa.table({"n": ["a"], "s": ["b"]}), path)
    with pytest.raises(
        ConfigurationError, match=r"column 'n' of '.*x\.parquet' is string, but the schema declares int32"
    ):
        read_rows(path, SMALL)


def test_a_number_that_does_not_fit_the_declared_type_is_an_error(tmp_path):
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pa.table({"n": [2**40], "s": ["b"]}), path)
    with pytest.raises(ConfigurationError, match="column 'n'"):
        read_rows(path, SMALL)


def test_a_file_that_is_not_parquet_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(ConfigurationError, match=r"cannot read '.*x\.parquet' as Parquet"):
        read_rows(path, SMALL)


def test_each_row_group_is_read_by_the_range_in_which_it_begins(tmp_path):
    path = tmp_path / "x.parquet"
    table = pa.table({"n": list(range(1000)), "s": [f"text {n}" for n in range(1000)]})
    pyarrow.parquet.write_table(table, path, row_group_size=100)
    builder = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(SMALL), str(path))
    source = builder.set_file_enumerator(FileEnumeratorProvider(2000)).build()
    assert len(source.discover_splits(1)) > 3
    assert sorted(row["n"] for row in read_source(source, 3)) == list(range(1000))


def test_settings_of_the_writer(tmp_path):
    settings = Configuration().set_string("parquet.compression", "GZIP").set_integer("parquet.block.size", 1)
    factory = ParquetBulkWriters.for_row_type(SMALL, settings)
    path = write_file(tmp_path / "x.parquet", factory, [Row(n=n, s="a") for n in range(4)], flush_every=2)
    metadata = pyarrow.parquet.ParquetFile(path).metadata
    assert (metadata.num_row_groups, metadata.row_group(0).column(0).compression) == (2, "GZIP")


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [("parquet.page.size", "1", "does not know the setting"), ("parquet.compression", "RAR", "is one of")],
)
def test_settings_that_are_not_known_are_refused(key, value, says):
    with pytest.raises(ConfigurationError, match=says):
        ParquetBulkWriters.for_row_type(SMALL, Configuration().set_string(key, value))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (Row(n="x", s="a"), "x"),
        (Row(n=2**40, s="a"), "int32|large"),
        (Row(n=1, s=7), "str|bytes"),
        (Row(1), "expected 2 fields"),
    ],
)
def test_a_row_that_does_not_fit_is_an_error_that_shows_it(tmp_path, row, says):
    with pytest.raises(RecordFormatError, match=says) as refused:
        write_file(tmp_path / "x.parquet", ParquetBulkWriters.for_row_type(SMALL), [Row(n=0, s="good"), row])
    assert "Row" in str(refused.value)


def test_a_column_that_holds_no_none_refuses_it(tmp_path):
    row_type = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT().not_null())])
    with pytest.raises(RecordFormatError, match="column 'n' holds no None"):
        write_file(tmp_path / "x.parquet", ParquetBulkWriters.for_row_type(row_type), [Row(n=None)])


def test_generic_records_keep_their_schema_in_the_file(tmp_path):
    schema = AvroSchema.parse_string('{"type": "record", "name": "T", "fields": [{"name": "n", "type": "int"}]}')
    path = write_file(tmp_path / "x.parquet", AvroParquetWriters.for_generic_record(schema), [{"n": 1}])
    assert read_file(AvroParquetReaders.for_generic_record(schema), path)[0] == [{"n": 1}]
    assert b"parquet.avro.schema" in pyarrow.parquet.read_schema(path).metadata


def test_orc_files_are_written(tmp_path):
    row_type = DataTypes.ROW([field for field in ROW_TYPE if field.name != "time"])  # ORC has no times of day
    rows = [Row(**{name: row[name] for name in row_type.field_names()}) for row in (FULL, EMPTY)]
    settings = Configuration().set_string("orc.compress", "ZLIB")
    path = write_file(tmp_path / "x.orc", OrcBulkWriters.for_row_type(row_type, settings), rows)
    table = pyarrow.orc.read_table(path)
    assert table.column("decimal").to_pylist() == [Decimal("1.50"), None]
    assert table.column("array").to_pylist() == [["a", None], None]
    assert pyarrow.orc.ORCFile(path).compression == "ZLIB"


def test_orc_refuses_codecs_it_does_not_know():
    with pytest.raises(ConfigurationError, match=r"orc\.compress is one of"):
        OrcBulkWriters.for_row_type(SMALL, Configuration().set_string("orc.compress", "RAR"))


class Holding(SplitReader):
    """Holds a file for three reads."""

    holds_file = True

    def __init__(self):
        self.left = 3

    def read(self, max_records):
        self.left -= 1
        return Batch([self.left])

    def position(self):
        return self.left

    @property
    def finished(self):
        return self.left == 0


def test_only_some_files_are_open_at_a_time_and_all_are_read():
    open_files = OpenFiles(most=2)
    readers = [open_files.limited(Holding()) for _ in range(5)]
    most_open, turns = 0, 0
    while not all(reader.finished for reader in readers):
        readers[turns % 5].read(1)
        most_open = max(most_open, sum(0 < reader.position() < 3 for reader in readers))
        turns += 1
        assert turns < 100
    assert most_open == 2
