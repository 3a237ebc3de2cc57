"""Rows from and to one Parquet file, by row type."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from ekorn.connectors.formats.arrow_columns import ArrowColumn, arrow_column, load_arrow, nullable
from ekorn.errors import RecordTypeError, RowFilesDamaged, RowFilesGone, preview
from ekorn.storage.input_files import open_input
from ekorn.storage.locations import shown
from ekorn.types.data_types import RowType
from ekorn.types.row import Row, make_row

__all__ = ["ParquetRows", "RowColumns"]

_BATCH_ROWS = 2048


class RowColumns:
    """The columns of a row type, with the conversions between rows and Arrow."""

    def __init__(self, row_type: RowType) -> None:
        self._pa = load_arrow("a DataFrame", "pyarrow")
        self._text = f"ROW<{', '.join(f'{field.name} {field.data_type}' for field in row_type)}>"
        self.names = row_type.field_names()
        self._columns: list[ArrowColumn] = [arrow_column(each, utc=True) for each in row_type.field_types()]
        self.schema = self._pa.schema(
            [
                self._pa.field(field.name, column.type, nullable=field.data_type.is_nullable)
                for field, column in zip(row_type, self._columns, strict=True)
            ]
        )

    def rows(self, batch: Any) -> list[Row]:
        """Return the rows of a record batch, whose columns may lie in another order."""
        names = self.names
        columns = [self._values(batch, name, column) for name, column in zip(names, self._columns, strict=True)]
        return [make_row(list(values), names) for values in zip(*columns, strict=True)]  # hot

    def _values(self, batch: Any, name: str, column: ArrowColumn) -> list[Any]:
        array = batch.column(name)
        if array.type != column.type:
            array = array.cast(column.type)
        values: list[Any] = array.to_pylist()
        return values if column.from_arrow is None else list(map(nullable(column.from_arrow), values))

    def batch(self, records: Sequence[Any]) -> Any:
        """Return records as a record batch.

        Raises:
            RecordTypeError: A record does not fit the columns.
        """
        try:
            return self._batch(records)
        except Exception:  # pyarrow and conversions raise errors of many classes; the record at fault is found below
            for record in records:
                try:
                    self._batch([record])
                except Exception as error:
                    raise RecordTypeError(self._text, preview(record), str(error)) from None
            raise

    def _batch(self, records: Sequence[Any]) -> Any:
        pa = self._pa
        rows = [self._fields(record) for record in records]
        arrays = []
        for index, (field, column) in enumerate(zip(self.schema, self._columns, strict=True)):
            values = [row[index] for row in rows]
            try:
                if column.to_arrow is not None:
                    values = list(map(nullable(column.to_arrow), values))
                array = pa.array(values, type=column.type)
            except Exception as error:  # errors of many classes, none of which names the column
                raise ValueError(f"column {field.name!r}: {error}") from None
            if not field.nullable and array.null_count:
                raise ValueError(f"column {field.name!r} is not nullable and is None")
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _fields(self, record: Any) -> Sequence[Any]:
        if isinstance(record, Row):
            record = record.get_fields_by_names(self.names)
        elif isinstance(record, dict):
            if missing := [name for name in self.names if name not in record]:
                raise ValueError(f"the record has no field {missing[0]!r}")
            return [record[name] for name in self.names]
        if not isinstance(record, tuple | list):
            raise TypeError(f"expected a row, a tuple or a dict, found {type(record).__name__}")
        if len(record) != len(self.names):
            raise ValueError(f"expected {len(self.names)} fields, found {len(record)}")
        return record


class ParquetRows:
    """Reads the rows of one file from a row number on.

    Attributes:
        count: The number of rows in the file.
    """

    def __init__(self, address: str, columns: RowColumns, start: int, *, size_bytes: int) -> None:
        """Open a file that was written with this size.

        Raises:
            RowFilesGone: There is no such file.
            RowFilesDamaged: The file is not the one that was written.
        """
        import pyarrow.parquet

        try:
            self._stream = open_input(address)
        except FileNotFoundError:
            raise RowFilesGone(shown(address)) from None
        try:
            found = self._stream.seek(0, io.SEEK_END)
            if found != size_bytes:
                raise RowFilesDamaged(shown(address), f"{found} bytes", f"{size_bytes} bytes")
            # Spark writes points in time as INT96 by default; read as nanoseconds, they end in 2262.
            self._file = pyarrow.parquet.ParquetFile(self._stream, coerce_int96_timestamp_unit="us")
        except BaseException as error:
            self._stream.close()
            if isinstance(error, pyarrow.ArrowInvalid):
                raise RowFilesDamaged(shown(address), str(error), "a Parquet file") from None
            raise
        self.count: int = self._file.metadata.num_rows
        self._columns = columns
        self._batches = self._from(start)
        self._rows: list[Row] = []
        self._offset = 0

    def _from(self, start: int) -> Iterator[list[Row]]:
        metadata = self._file.metadata
        first = 0
        while first < metadata.num_row_groups and start >= metadata.row_group(first).num_rows:
            start -= metadata.row_group(first).num_rows
            first += 1
        groups = list(range(first, metadata.num_row_groups))
        if not groups:
            return
        for batch in self._file.iter_batches(_BATCH_ROWS, row_groups=groups):
            if start >= batch.num_rows:
                start -= batch.num_rows
                continue
            yield self._columns.rows(batch.slice(start))
            start = 0

    def read(self, max_rows: int) -> list[Row]:
        """Return the next rows, at most `max_rows`; empty at the end of the file."""
        while self._offset >= len(self._rows):
            following = next(self._batches, None)
            if following is None:
                return []
            self._rows, self._offset = following, 0
        rows = self._rows[self._offset : self._offset + max_rows]
        self._offset += len(rows)
        return rows

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
