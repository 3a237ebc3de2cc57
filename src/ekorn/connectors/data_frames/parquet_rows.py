"""The rows of one Parquet file, by row type: as rows, or as batches of columns."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from ekorn.columns.row_columns import RowColumns
from ekorn.errors import RowFilesDamaged, RowFilesGone
from ekorn.storage.input_files import open_input
from ekorn.storage.locations import shown

__all__ = ["ParquetRows"]

_BATCH_ROWS = 2048
_COLUMN_BATCH_ROWS = 65536


class ParquetRows:
    """Reads the rows of one file from a row number on, in the form of a stream.

    Attributes:
        count: The number of rows in the file.
    """

    def __init__(
        self, address: str, columns: RowColumns, start: int, *, size_bytes: int, as_columns: bool = False
    ) -> None:
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
        self._as_columns = as_columns
        self._place = repr(shown(address))
        self._next_row = start
        self._batches = self._from(start)
        self._rows: Any = []  # a list of rows, or a batch of columns
        self._offset = 0

    def _from(self, start: int) -> Iterator[Any]:
        metadata = self._file.metadata
        first = 0
        while first < metadata.num_row_groups and start >= metadata.row_group(first).num_rows:
            start -= metadata.row_group(first).num_rows
            first += 1
        groups = list(range(first, metadata.num_row_groups))
        if not groups:
            return
        rows = _COLUMN_BATCH_ROWS if self._as_columns else _BATCH_ROWS
        for batch in self._file.iter_batches(rows, row_groups=groups):
            if start >= batch.num_rows:
                start -= batch.num_rows
                continue
            part = batch.slice(start)
            yield self._batch(part) if self._as_columns else self._columns.rows(part)
            start = 0

    def _batch(self, data: Any) -> Any:
        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.origin import Origin

        batch = ColumnBatch(data, origin=Origin(self._place, self._next_row, data.num_rows))
        self._next_row += data.num_rows
        return batch

    def read_records(self, max_rows: int) -> tuple[list[Any], int]:
        """Return the next records, which are rows or a batch of columns, and the number of their rows."""
        rows = self.read(max_rows)
        return [rows] if self._as_columns and len(rows) else rows, len(rows)

    def read(self, max_rows: int) -> Any:
        """Return the next rows, at most `max_rows`; empty at the end of the file."""
        while self._offset >= len(self._rows):
            following = next(self._batches, None)
            if following is None:
                return []
            self._rows, self._offset = following, 0
        if self._as_columns:
            rows = self._rows.slice(self._offset, max_rows)
        else:
            rows = self._rows[self._offset : self._offset + max_rows]
        self._offset += len(rows)
        return rows

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
