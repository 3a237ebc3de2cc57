"""Every format of files under the contract of sources."""

import gzip
from abc import abstractmethod
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ekorn.common import Row
from ekorn.connectors.files.stream_formats import FileFormat
from ekorn.datastream.connectors.file_system import FileEnumeratorProvider, FileSource
from ekorn.datastream.formats.avro import AvroBulkWriters, AvroReaderFormat, AvroSchema
from ekorn.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from ekorn.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from ekorn.errors import ConfigurationError
from ekorn.table import DataTypes
from ekorn.testing.kits import FindsNewInput, RefusesBadInput, SourceCase
from tests.connectors.formats.files import write_file

CSV = (
    CsvSchema.builder()
    .add_number_column("id")
    .add_string_column("name")
    .add_array_column("tags")
    .set_use_header()
    .build()
)
ROW_TYPE = DataTypes.ROW(
    [
        DataTypes.FIELD("id", DataTypes.INT().not_null()),
        DataTypes.FIELD("name", DataTypes.STRING()),
        DataTypes.FIELD("price", DataTypes.DECIMAL(10, 2)),
        DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING())),
        DataTypes.FIELD("sizes", DataTypes.MAP(DataTypes.STRING(), DataTypes.BIGINT())),
        DataTypes.FIELD("at", DataTypes.ROW([DataTypes.FIELD("x", DataTypes.DOUBLE())])),
    ]
)
AVRO = AvroSchema.parse_string(
    """{"type": "record", "name": "Item", "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "value", "type": ["int", "double", "null"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "sizes", "type": {"type": "map", "values": "long"}}]}"""
)


def row(number):
    return Row(
        id=number,
        name=None if number % 5 == 3 else f"n{number}",
        price=(Decimal(number) / 4).quantize(Decimal("0.01")),
        tags=["a", None][: number % 3],
        sizes={"k": number},
        at=Row(x=number / 2),
    )


def record(number):
    values = [number, number / 2, None]
    return {
        "id": number,
        "name": None if number % 5 == 3 else f"n{number}",
        "value": values[number % 3],
        "tags": ["a", "b"][: number % 3],
        "sizes": {"k": number},
    }


class FilesCase(SourceCase):
    """Files of one format in a folder. Records of new files have numbers from 1000 on."""

    suffix = ""
    name = ""
    bulk = True

    @abstractmethod
    def format(self) -> FileFormat: ...

    @abstractmethod
    def record(self, number: int) -> Any: ...

    @abstractmethod
    def write(self, path: Path, records: list[Any]) -> None: ...

    def __init__(self, folder, range_bytes):
        self.folder = folder
        self.range_bytes = range_bytes
        self._records = []
        for number, count in enumerate((7, 0, 12)):
            self._add(f"{number}{self.suffix}", range(number * 100, number * 100 + count))

    def _add(self, name, numbers):
        records = [self.record(number) for number in numbers]
        self.write(self.folder / name, records)
        self._records += records
        return records

    @property
    def records(self):
        return self._records

    def _builder(self):
        begin: Any = FileSource.for_bulk_file_format if self.bulk else FileSource.for_record_stream_format
        return begin(self.format(), str(self.folder)).set_file_enumerator(FileEnumeratorProvider(self.range_bytes))

    def bounded(self):
        return self._builder().build()

    def unbounded(self):
        return self._builder().monitor_continuously(1000).build()

    def add_input(self):
        return self._add(f"new{self.suffix}", range(1000, 1003))

    def spoil(self):
        (self.folder / f"bad{self.suffix}").write_bytes(b"no file of this format")
        return ConfigurationError, f"cannot read '.*bad{self.suffix}' as {self.name}"


class CsvCase(FilesCase):
    suffix = ".csv"
    bulk = False

    def format(self):
        return CsvReaderFormat.for_schema(CSV)

    def record(self, number):
        return Row(id=number, name=f'a "name",\n{number} €', tags=["x", "y"][: number % 3])

    def write(self, path, records):
        write_file(path, CsvBulkWriters.for_schema(CSV), records)


class SingleLineCsvCase(CsvCase):
    def format(self):
        return CsvReaderFormat.for_schema(CSV).with_single_line_records()

    def record(self, number):
        return Row(id=number, name=f'a "name", {number} €', tags=["x", "y"][: number % 3])


class PackedCsvCase(CsvCase):
    suffix = ".csv.gz"

    def write(self, path, records):
        super().write(path, records)
        path.write_bytes(gzip.compress(path.read_bytes()))


class AvroCase(FilesCase):
    suffix = ".avro"
    name = "Avro"

    def format(self):
        return AvroReaderFormat.for_generic_record(AVRO)

    def record(self, number):
        return record(number)

    def write(self, path, records):
        write_file(path, AvroBulkWriters.for_generic_record(AVRO), records, flush_every=3)


class ParquetCase(FilesCase):
    suffix = ".parquet"
    name = "Parquet"

    def format(self):
        return ParquetColumnarRowInputFormat(ROW_TYPE, batch_size=2)

    def record(self, number):
        return row(number)

    def write(self, path, records):
        from ekorn.common import Configuration

        small_groups = Configuration().set_integer("parquet.block.size", 1)
        write_file(path, ParquetBulkWriters.for_row_type(ROW_TYPE, small_groups), records, flush_every=3)


class AvroParquetCase(FilesCase):
    suffix = ".parquet"
    name = "Parquet"
    bulk = False

    def format(self):
        return AvroParquetReaders.for_generic_record(AVRO)

    def record(self, number):
        return record(number)

    def write(self, path, records):
        write_file(path, AvroParquetWriters.for_generic_record(AVRO), records)


CASES = {
    "csv": (CsvCase, None),
    "csv-ranges": (SingleLineCsvCase, 40),
    "csv-gzip": (PackedCsvCase, None),
    "avro": (AvroCase, None),
    "avro-ranges": (AvroCase, 60),
    "parquet": (ParquetCase, None),
    "parquet-ranges": (ParquetCase, 700),
    "avro-parquet": (AvroParquetCase, None),
}


@pytest.mark.parametrize("name", CASES)
class TestFormats(FindsNewInput):
    @pytest.fixture
    def case(self, name, tmp_path):
        kind, range_bytes = CASES[name]
        return kind(tmp_path, range_bytes)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("csv")])
class TestBinaryFormats(RefusesBadInput):
    """Files of another format are refused. A malformed line of CSV is no error of the reader."""

    @pytest.fixture
    def case(self, name, tmp_path):
        kind, range_bytes = CASES[name]
        return kind(tmp_path, range_bytes)
