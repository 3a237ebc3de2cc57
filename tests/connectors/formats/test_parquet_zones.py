"""Instants in Parquet files are the same in every zone: that of the file, and that of the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from ekorn.common import Instant, Row
from ekorn.datastream.formats.avro import AvroSchema
from ekorn.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from ekorn.errors import RecordFormatError
from ekorn.table import DataTypes
from tests.connectors.formats.files import read_file, write_file

AT = Instant(1_700_000_000, 123_456_000)
NANOS = 1_700_000_000_123_456_789
PER_SECOND = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}  # nanoseconds of a unit
ZONES = [None, "UTC", "America/New_York", "Asia/Shanghai", "+05:30"]
LTZ = DataTypes.TIMESTAMP_LTZ(6)
COLUMNS = DataTypes.ROW(
    [
        DataTypes.FIELD("at", LTZ),
        DataTypes.FIELD("all", DataTypes.ARRAY(LTZ)),
        DataTypes.FIELD("named", DataTypes.MAP(DataTypes.STRING(), LTZ)),
        DataTypes.FIELD("inner", DataTypes.ROW([DataTypes.FIELD("at", LTZ)])),
    ]
)
LONG = '{"type": "long", "logicalType": "%s"}'
RECORD = """{"type": "record", "name": "T", "fields": [
    {"name": "at", "type": ["null", LONG]}, {"name": "all", "type": {"type": "array", "items": LONG}},
    {"name": "named", "type": {"type": "map", "values": LONG}},
    {"name": "inner", "type": {"type": "record", "name": "I", "fields": [{"name": "at", "type": LONG}]}}]}"""


@pytest.fixture(autouse=True, params=["America/New_York", "Asia/Shanghai"])
def machine(request: pytest.FixtureRequest) -> Iterator[None]:
    """Put the machine into a zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


def schema(logical: str) -> AvroSchema:
    return AvroSchema.parse_string(RECORD.replace("LONG", LONG % logical))


def file_of_another_program(folder: Path, unit: str, zone: str | None) -> Path:
    at, value = pa.timestamp(unit, zone), NANOS // PER_SECOND[unit]
    arrays = {
        "at": pa.array([value, None], at),
        "all": pa.array([[value], []], pa.list_(at)),
        "named": pa.array([[("k", value)], []], pa.map_(pa.string(), at)),
        "inner": pa.array([{"at": value}, {"at": 0}], pa.struct([("at", at)])),
    }
    path = folder / "x.parquet"
    pyarrow.parquet.write_table(pa.table(arrays), path)
    return path


@pytest.mark.parametrize("utc", [True, False])
@pytest.mark.parametrize("unit", list(PER_SECOND))
@pytest.mark.parametrize("zone", ZONES)
def test_rows_keep_the_instants_of_a_file_in_any_zone(tmp_path: Path, zone: str | None, unit: str, utc: bool) -> None:
    path = file_of_another_program(tmp_path, unit, zone)
    first, last = read_file(ParquetColumnarRowInputFormat(COLUMNS, is_utc_timestamp=utc), path)[0]
    at = Instant(AT.seconds, min(AT.nanos, NANOS) // PER_SECOND[unit] * PER_SECOND[unit])
    assert first == Row(at=at, all=[at], named={"k": at}, inner=Row(at=at))
    assert last["at"] is None


@pytest.mark.parametrize(("logical", "nanos"), [("timestamp-millis", 10**6), ("timestamp-micros", 1000)])
@pytest.mark.parametrize("unit", list(PER_SECOND))
@pytest.mark.parametrize("zone", ZONES)
def test_generic_records_count_the_units_of_their_schema(
    tmp_path: Path, zone: str | None, unit: str, logical: str, nanos: int
) -> None:
    path = file_of_another_program(tmp_path, unit, zone)
    first, last = read_file(AvroParquetReaders.for_generic_record(schema(logical)), path)[0]
    at = NANOS // PER_SECOND[unit] * PER_SECOND[unit] // nanos
    assert first == {"at": at, "all": [at], "named": {"k": at}, "inner": {"at": at}}
    assert last["at"] is None


@pytest.mark.parametrize("utc", [True, False])
def test_rows_are_written_as_instants(tmp_path: Path, utc: bool) -> None:
    row = Row(at=AT, all=[AT], named={"k": AT}, inner=Row(at=AT))
    path = write_file(tmp_path / "x.parquet", ParquetBulkWriters.for_row_type(COLUMNS, utc_timestamp=utc), [row])
    assert read_file(ParquetColumnarRowInputFormat(COLUMNS, is_utc_timestamp=utc), path)[0] == [row]
    stored = pyarrow.parquet.read_table(path).column("at")
    assert stored.type == pa.timestamp("us", "UTC")
    assert stored.cast(pa.int64()).to_pylist() == [NANOS // 1000]


@pytest.mark.parametrize(
    ("logical", "stored_as"),
    [
        ("timestamp-millis", pa.timestamp("ms", "UTC")),
        ("timestamp-micros", pa.timestamp("us", "UTC")),
        ("local-timestamp-millis", pa.timestamp("ms")),
        ("local-timestamp-micros", pa.timestamp("us")),
    ],
)
def test_generic_records_are_written_as_the_timestamps_of_their_schema(
    tmp_path: Path, logical: str, stored_as: pa.DataType
) -> None:
    record = {"at": 2**60, "all": [1], "named": {"k": 2}, "inner": {"at": -3}}  # 2**60 ms: beyond Python's dates
    path = write_file(tmp_path / "x.parquet", AvroParquetWriters.for_generic_record(schema(logical)), [record])
    table = pyarrow.parquet.read_table(path)
    assert table.schema.field("at").type == table.schema.field("inner").type.field("at").type == stored_as
    assert read_file(AvroParquetReaders.for_generic_record(schema(logical)), path)[0] == [record]


def test_numbers_without_a_unit_in_the_file_have_that_of_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    text = '{"type": "record", "name": "T", "fields": [{"name": "at", "type": %s}]}' % (LONG % "timestamp-millis")
    pyarrow.parquet.write_table(pa.table({"at": [NANOS // 10**6]}), path)
    assert read_file(AvroParquetReaders.for_generic_record(AvroSchema.parse_string(text)), path)[0] == [
        {"at": NANOS // 10**6}
    ]


def test_a_generic_record_with_something_else_is_an_error_that_shows_it(tmp_path: Path) -> None:
    record = {"at": "noon", "all": [], "named": {}, "inner": {"at": 0}}
    factory = AvroParquetWriters.for_generic_record(schema("timestamp-millis"))
    with pytest.raises(RecordFormatError, match="noon"):
        write_file(tmp_path / "x.parquet", factory, [record])
