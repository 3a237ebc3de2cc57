"""Parquet files: read in batches of rows, divided at row groups, and written row group by row group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ekorn.columns.arrow_columns import ArrowColumn, arrow_column, load_arrow, nullable
from ekorn.config.configuration import Configuration
from ekorn.connectors.files.stream_formats import BulkFormat, StreamFormat
from ekorn.connectors.formats.arrow_avro import avro_columns, with_counts
from ekorn.connectors.formats.arrow_writer import (
    ArrowWriterFactory,
    TableWriter,
    fields_of_dict,
    fields_of_row,
    file_properties,
)
from ekorn.connectors.formats.avro_files import checked_avro_schema
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.errors import ConfigurationError
from ekorn.extras import need
from ekorn.functions.source_contract import Batch, SplitReader
from ekorn.storage.input_files import open_input
from ekorn.storage.locations import shown
from ekorn.types.avro_schema import AvroSchema, GenericRecordAvroTypeInfo
from ekorn.types.data_type_info import checked_row_type, row_type_info
from ekorn.types.data_types import RowType
from ekorn.types.row import make_row
from ekorn.types.type_information import TypeInformation

__all__ = [
    "AvroParquetReaders",
    "AvroParquetWriters",
    "ParquetBulkWriters",
    "ParquetColumnarRowInputFormat",
    "ParquetReader",
]

_GROUP_BYTES = 16 << 20
_DECODED_BYTES = 32 << 20  # about the most bytes of the rows that are decoded at a time
_CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4")
_AVRO_SCHEMA = "parquet.avro.schema"
MakeRecord = Callable[[list[Any]], Any]


class ParquetColumnarRowInputFormat(BulkFormat):
    """Reads rows from Parquet files: the columns of a row type, by name. A column that a file lacks is None.

    FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(row_type), "/data/in").build()
    """

    def __init__(
        self,
        row_type: RowType,
        hadoop_config: Configuration | None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        """Set the columns.

        Args:
            row_type: The columns and their types.
            hadoop_config: Settings of Hadoop; none applies here, so it must be empty.
            batch_size: How many rows are decoded at a time.
            is_utc_timestamp: Whether a timestamp without a zone is read as it is stored. Otherwise it is taken for UTC
                and read as the local time of the machine.
            is_case_sensitive: Whether names of columns differ by the case of their letters.
        """
        need("parquet", "Parquet")
        self._row_type = checked_row_type(row_type, "ParquetColumnarRowInputFormat")
        file_properties("ParquetColumnarRowInputFormat", hadoop_config, {})
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"ParquetColumnarRowInputFormat takes a batch_size above 0, got {batch_size!r}")
        self._batch_size = batch_size
        self._utc = is_utc_timestamp
        self._case_sensitive = is_case_sensitive

    def can_split(self, path: str) -> bool:
        """Return True: files are divided at row groups."""
        return True

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the row groups that begin in a range of bytes."""
        columns = {field.name: arrow_column(field.data_type, utc=self._utc) for field in self._row_type}
        names = list(columns)
        return ParquetReader(
            path,
            columns,
            lambda values: make_row(values, names),
            start=start,
            end=end,
            position=position,
            batch_size=self._batch_size,
            case_sensitive=self._case_sensitive,
        )

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the rows."""
        return row_type_info(self._row_type)

    def __repr__(self) -> str:
        return f"ParquetColumnarRowInputFormat({self._row_type!r})"


class AvroParquetReaders:
    """Reads generic records, which are dicts, from Parquet files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Read the columns of an Avro schema."""
        need("parquet", "Parquet")
        return _AvroParquetFormat(checked_avro_schema(schema, "for_generic_record()"))


class _AvroParquetFormat(StreamFormat):
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def can_split(self, path: str) -> bool:
        return True

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        columns = avro_columns(self._schema)
        names = list(columns)
        return _AvroParquetReader(
            path,
            columns,
            lambda values: dict(zip(names, values, strict=True)),
            start=start,
            end=end,
            position=position,
            batch_size=2048,
            case_sensitive=True,
        )

    def get_produced_type(self) -> TypeInformation:
        return GenericRecordAvroTypeInfo(self._schema)

    def __repr__(self) -> str:
        return "AvroParquetReaders.for_generic_record(...)"


class ParquetReader(SplitReader):
    """The position is a row group, and the number of its rows that were read."""

    holds_file = True

    def __init__(
        self,
        path: str,
        columns: dict[str, ArrowColumn],
        make_record: MakeRecord,
        *,
        start: int,
        end: int | None,
        position: Any | None,
        batch_size: int,
        case_sensitive: bool,
    ) -> None:
        self._path = path
        self._columns = columns
        self._make_record = make_record
        self._start = start
        self._end = end
        self._group: int | None
        self._row: int
        self._group, self._row = position if position is not None else (None, 0)
        self._batch_size = batch_size
        self._case_sensitive = case_sensitive
        self._stream: Any = None
        self._file: Any = None
        self._batches: Iterator[Any] | None = None
        self._records: Any = []
        self._next = 0
        self._ended = False

    def read(self, max_records: int) -> Batch:
        while self._next >= len(self._records) and not self._ended:
            self._load()
        values, count = self._part(self._next, max_records)
        self._next += count
        self._row += count
        if self._next >= len(self._records) and not self._ended:
            self._move_on()
        return Batch(values)

    def _part(self, first: int, most: int) -> tuple[list[Any], int]:
        """Return some of the records that were decoded, and the number of rows that they are."""
        values = self._records[first : first + most]
        return values, len(values)

    def _load(self) -> None:
        if self._file is None:
            self._open()
        if self._ended:
            return
        if self._batches is None:
            rows = self._rows_at_a_time(self._file.metadata.row_group(self._group))
            self._batches = self._file.iter_batches(rows, row_groups=[self._group], columns=self._stored)
            self._skip = self._row
        batch = next(self._batches, None)
        if batch is None:
            self._row = self._file.metadata.row_group(self._group).num_rows
            self._move_on()
            return
        if self._skip:  # rows of the group that an earlier reader has read
            skipped = min(self._skip, batch.num_rows)
            batch, self._skip = batch.slice(skipped), self._skip - skipped
        self._records, self._next = self._decoded(batch), 0

    def _rows_at_a_time(self, group: Any) -> int:
        """Return how many rows of a row group are decoded at a time: fewer, if they are large."""
        row_bytes = group.total_byte_size // max(1, group.num_rows)
        return int(max(1, min(self._batch_size, _DECODED_BYTES // max(1, row_bytes))))

    def _move_on(self) -> None:
        """Go to the next row group of the range if this one is read."""
        if self._group is not None and self._row >= self._file.metadata.row_group(self._group).num_rows:
            self._batches, self._records, self._next = None, [], 0
            self._go_to(self._group + 1)

    def _go_to(self, group: int) -> None:
        """Begin the first row group at or behind a number that belongs to the range."""
        metadata = self._file.metadata
        self._row = 0
        for number in range(group, metadata.num_row_groups):
            begin = _first_byte(metadata.row_group(number))
            if self._end is not None and begin >= self._end:
                break
            if begin >= self._start and metadata.row_group(number).num_rows:
                self._group = number
                return
        self._group, self._ended = metadata.num_row_groups, True

    def _open(self) -> None:
        pa = load_arrow("Parquet")
        import pyarrow.parquet

        self._stream = open_input(self._path)
        try:
            self._file = pyarrow.parquet.ParquetFile(self._stream)
        except (pa.ArrowInvalid, OSError) as error:
            raise ConfigurationError(f"cannot read {shown(self._path)!r} as Parquet: {error}") from None
        self._stored = self._stored_columns([field.name for field in self._file.schema_arrow])
        if self._group is None:
            self._go_to(0)
        elif self._group >= self._file.metadata.num_row_groups:
            self._ended = True

    def _stored_columns(self, found: list[str]) -> list[str]:
        """Return the names of the wanted columns in the file."""
        by_name = {name if self._case_sensitive else name.lower(): name for name in found}
        wanted = [name if self._case_sensitive else name.lower() for name in self._columns]
        self._stored_name = {name: by_name.get(key) for name, key in zip(self._columns, wanted, strict=True)}
        return [name for name in self._stored_name.values() if name is not None]

    def _decoded(self, batch: Any) -> Any:
        """Return the records of a batch."""
        columns = [self._values(batch, name, column) for name, column in self._columns.items()]
        return [self._make_record(list(values)) for values in zip(*columns, strict=True)]  # hot

    def _values(self, batch: Any, name: str, column: ArrowColumn) -> list[Any]:
        if self._stored_name[name] is None:
            return [None] * batch.num_rows
        values: list[Any] = self._array(batch, name, column).to_pylist()
        return values if column.from_arrow is None else list(map(nullable(column.from_arrow), values))

    def _array(self, batch: Any, name: str, column: ArrowColumn) -> Any:
        """Return a column of a batch in its declared type."""
        pa = load_arrow("Parquet")
        from pyarrow.compute import CastOptions

        stored = self._stored_name[name]
        if stored is None:
            return pa.nulls(batch.num_rows, column.type)
        array = batch.column(stored)
        if array.type != column.type:
            try:
                # Nanoseconds of older writers end at the column's precision; every other loss is an error.
                array = array.cast(options=CastOptions(column.type, allow_time_truncate=True))
            except pa.ArrowInvalid as error:
                raise self._misfit(name, array, column, error) from None
            except pa.ArrowNotImplementedError as error:
                raise self._misfit(name, array, column, error) from None
        return array

    def _misfit(self, name: str, array: Any, column: ArrowColumn, error: Exception) -> ConfigurationError:
        return ConfigurationError(
            f"column {name!r} of {shown(self._path)!r} is {array.type}, but the schema declares {column.type}: {error}"
        )

    def position(self) -> tuple[int, int] | None:
        return None if self._group is None else (self._group, self._row)

    @property
    def finished(self) -> bool:
        return self._ended and self._next >= len(self._records)

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = self._file = self._batches = None


class _AvroParquetReader(ParquetReader):
    """Reads generic records. Their timestamps are numbers in the unit of the schema, whatever the file has."""

    def _array(self, batch: Any, name: str, column: ArrowColumn) -> Any:
        array = super()._array(batch, name, column)
        return array.cast(with_counts(column.type))


def _first_byte(row_group: Any) -> int:
    column = row_group.column(0)
    return int(column.dictionary_page_offset or column.data_page_offset) if row_group.num_columns else 0


# -------------------------------------------------------------------------------------------------------------- writing


class ParquetBulkWriters:
    """Writes rows to Parquet files.

    FileSink.for_bulk_format("/data/out", ParquetBulkWriters.for_row_type(row_type)).build()
    """

    @staticmethod
    def for_row_type(
        row_type: RowType, hadoop_config: Configuration | None = None, utc_timestamp: bool = False
    ) -> ArrowWriterFactory:
        """Write the columns of a row type.

        Args:
            row_type: The columns and their types.
            hadoop_config: `parquet.compression` (SNAPPY by default) and `parquet.block.size`, the bytes of a row group.
            utc_timestamp: Whether a timestamp without a zone is stored as it reads. Otherwise it is taken for the
                local time of the machine, and stored as UTC.
        """
        # Flink: writes timestamps as INT96. These are INT64 with their unit, which all current readers know.
        fields = checked_row_type(row_type, "for_row_type()")
        settings = file_properties(
            "ParquetBulkWriters", hadoop_config, {"parquet.compression": "SNAPPY", "parquet.block.size": _GROUP_BYTES}
        )
        return ArrowWriterFactory(
            "Parquet",
            partial(_row_columns, fields, utc=utc_timestamp),
            fields_of_row,
            partial(_open_writer, codec=_codec(settings["parquet.compression"])),
            group_bytes=int(settings["parquet.block.size"]),
            not_null=frozenset(field.name for field in fields if not field.data_type.is_nullable),
            row_type=fields,
            utc=utc_timestamp,
        )


class AvroParquetWriters:
    """Writes generic records, which are dicts, to Parquet files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Write the columns of an Avro schema."""
        checked = checked_avro_schema(schema, "for_generic_record()")
        return ArrowWriterFactory(
            "Parquet",
            partial(avro_columns, checked),
            fields_of_dict,
            partial(_open_writer, codec="none"),
            group_bytes=_GROUP_BYTES,
            metadata={_AVRO_SCHEMA: str(checked)},
        )


def _row_columns(row_type: RowType, *, utc: bool) -> dict[str, ArrowColumn]:
    return {field.name: arrow_column(field.data_type, utc=utc) for field in row_type}


def _open_writer(stream: Any, schema: Any, *, codec: str) -> TableWriter:
    import pyarrow.parquet

    return pyarrow.parquet.ParquetWriter(stream, schema, compression=codec)  # type: ignore[no-any-return]


def _codec(name: str) -> str:
    if name.upper() not in _CODECS:
        raise ConfigurationError(f"parquet.compression is one of {', '.join(_CODECS)}, got {name!r}")
    return "none" if name.upper() == "UNCOMPRESSED" else name.lower()
