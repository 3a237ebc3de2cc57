"""Writes records to files through columns of Arrow: collects records, then writes them as one table.

Parquet and ORC differ only in the writer of tables, which is created when the first table is written.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Sequence
from typing import IO, Any, Protocol

from ekorn.columns.arrow_columns import ArrowColumn, load_arrow, nullable
from ekorn.config.configuration import Configuration
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.connectors.formats.written_columns import written_columns
from ekorn.errors import ConfigurationError, RecordFormatError, preview
from ekorn.extras import need
from ekorn.types.data_types import RowType
from ekorn.types.row import Row

__all__ = ["ArrowWriterFactory", "TableWriter", "fields_of_dict", "fields_of_row", "file_properties"]

_BATCH_RECORDS = 1024
Fields = Callable[[Any, Sequence[str]], Sequence[Any]]


class TableWriter(Protocol):
    """Writes tables to one file."""

    def write_table(self, table: Any) -> None:
        """Write a table."""

    def close(self) -> None:
        """Write the end of the file."""


class ArrowWriterFactory(BulkWriterFactory):
    """Creates a writer for each file.

    Args:
        format_name: The format, for messages.
        make_columns: Returns the columns by name. Called in the process that writes.
        fields: Returns the fields of a record in the order of names.
        make_writer: Opens a stream for tables of a schema.
        group_bytes: How many bytes of Arrow are collected before they are written, as a row group or stripe.
        metadata: Texts to store with the schema.
        not_null: The columns that hold no None.
        row_type: The columns as a row type, for files of rows; None if records are dicts.
        utc: Whether timestamps without a zone are stored as they read.
    """

    bytes_can_be_joined = False

    def __init__(
        self,
        format_name: str,
        make_columns: Callable[[], dict[str, ArrowColumn]],
        fields: Fields,
        make_writer: Callable[[Any, Any], TableWriter],
        *,
        group_bytes: int,
        metadata: dict[str, str] | None = None,
        not_null: frozenset[str] = frozenset(),
        row_type: RowType | None = None,
        utc: bool = True,
    ) -> None:
        need("parquet" if format_name == "Parquet" else "orc", format_name)
        self._format_name = format_name
        self._make_columns = make_columns
        self._fields = fields
        self._make_writer = make_writer
        self._group_bytes = group_bytes
        self._metadata = metadata
        self._not_null = not_null
        self._row_type = row_type
        self._utc = utc
        self._found: RowType | None = None  # the columns of the batches that the writers are given

    def for_columns(self, row_type: RowType) -> ArrowWriterFactory | None:
        """Return a factory whose writers are given batches of a row type; None if they are to be given rows."""
        if self._row_type is None or written_columns(row_type, self._row_type, utc=self._utc) is None:
            return None
        factory = copy.copy(self)
        factory._found = row_type
        return factory

    def column_check(self) -> Callable[[Any], Any]:
        """Return the function that raises a `RecordFormatError` if a row of a batch cannot be written."""
        return self.create(io.BytesIO()).converted

    def create(self, stream: IO[bytes]) -> _ArrowWriter:
        """Create the writer of one file."""
        pa = load_arrow(self._format_name)
        columns = self._make_columns()
        schema = pa.schema(
            [pa.field(name, column.type, nullable=name not in self._not_null) for name, column in columns.items()],
            metadata=self._metadata,
        )
        writer = self._make_writer(pa.PythonFile(stream, mode="w"), schema)
        return _ArrowWriter(
            self._format_name,
            columns,
            schema,
            fields=self._fields,
            writer=writer,
            group_bytes=self._group_bytes,
            converted=None if self._found is None else _Converted(self._found, self._row_type, utc=self._utc),
        )

    def __repr__(self) -> str:
        return f"{self._format_name} writers"


class _Converted:
    """Converts batches of a stream to the columns of a file."""

    def __init__(self, found: RowType, wanted: RowType | None, *, utc: bool) -> None:
        from ekorn.columns.row_columns import RowColumns

        convert = None if wanted is None else written_columns(found, wanted, utc=utc)
        assert convert is not None, "`for_columns` has asked for the same"
        self.arrays = convert
        self.rows = RowColumns(found).rows


class _ArrowWriter:
    def __init__(
        self,
        format_name: str,
        columns: dict[str, ArrowColumn],
        schema: Any,
        *,
        fields: Fields,
        writer: TableWriter,
        group_bytes: int,
        converted: _Converted | None,
    ) -> None:
        self._converted = converted
        self._format_name = format_name
        self._names = list(columns)
        self._columns = list(columns.values())
        self._schema = schema
        self._fields = fields
        self._writer = writer
        self._group_bytes = group_bytes
        self._records: list[Any] = []
        self._batches: list[Any] = []
        self._bytes = 0

    def add_element(self, element: Any) -> None:
        self._records.append(element)
        if len(self._records) >= _BATCH_RECORDS:
            self._convert()

    def add_columns(self, data: Any) -> None:
        """Add the rows of a batch, after the records that were added before."""
        self._convert()
        self._keep(self.converted(data))

    def converted(self, data: Any) -> Any:
        """Return a batch with the columns of the file."""
        assert self._converted is not None, "`for_columns` said so"
        pa = load_arrow(self._format_name)
        try:
            return self._checked(pa.RecordBatch.from_arrays(self._converted.arrays(data), schema=self._schema))
        except ValueError:  # Arrow's errors too; the row at fault is found below
            for row in self._converted.rows(data):
                self._check(row)
            raise

    def flush(self) -> None:
        """Convert collected records; a table is written when it is large enough."""
        self._convert()

    def finish(self) -> None:
        self._convert()
        self._write()
        self._writer.close()

    def _convert(self) -> None:
        if not self._records:
            return
        records, self._records = self._records, []
        try:
            batch = self._batch(records)
        except Exception:  # pyarrow raises errors of several classes; the record at fault is found below
            for record in records:
                self._check(record)
            raise
        self._keep(batch)

    def _keep(self, batch: Any) -> None:
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= self._group_bytes:
            self._write()

    def _batch(self, records: list[Any]) -> Any:
        pa = load_arrow(self._format_name)
        rows = [self._fields(record, self._names) for record in records]
        arrays = []
        for index, column in enumerate(self._columns):
            values = [row[index] for row in rows]
            if column.to_arrow is not None:
                values = list(map(nullable(column.to_arrow), values))
            arrays.append(pa.array(values, type=column.type))
        return self._checked(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def _checked(self, batch: Any) -> Any:
        for field, array in zip(self._schema, batch.columns, strict=True):
            if not field.nullable and array.null_count:
                raise ValueError(f"column {field.name!r} holds no None")
        return batch

    def _check(self, record: Any) -> None:
        try:
            self._batch([record])
        except Exception as error:  # pyarrow raises errors of several classes
            raise RecordFormatError(self._format_name, str(error), preview(record)) from None

    def _write(self) -> None:
        if self._batches:
            pa = load_arrow(self._format_name)
            self._writer.write_table(pa.Table.from_batches(self._batches, schema=self._schema))
            self._batches, self._bytes = [], 0


def fields_of_row(record: Any, names: Sequence[str]) -> Sequence[Any]:
    """Return the fields of a row, a tuple or a list."""
    if isinstance(record, Row):
        record = record.get_fields_by_names(list(names))
    if len(record) != len(names):
        raise ValueError(f"expected {len(names)} fields, found {len(record)}")
    return record  # type: ignore[no-any-return]


def fields_of_dict(record: Any, names: Sequence[str]) -> Sequence[Any]:
    """Return the fields of a generic record, which is a dict."""
    if not isinstance(record, dict):
        raise TypeError(f"expected a record as a dict, found {type(record).__name__}")
    return [record[name] for name in names]


def file_properties(taken_by: str, given: Configuration | None, known: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a format: those given, and the defaults of the others.

    Raises:
        ConfigurationError: A setting is given that the format does not know.
    """
    settings = given.to_dict() if given is not None else {}
    unknown = sorted(settings.keys() - known.keys())
    if unknown:
        offered = f"; it knows {', '.join(sorted(known))}" if known else ""
        raise ConfigurationError(f"{taken_by} does not know the setting {unknown[0]!r}{offered}; leave it out")
    return known | settings
