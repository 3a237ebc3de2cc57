"""The rows of one Parquet file, by row type."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ekorn.columns.row_columns import RowColumns
from ekorn.errors import RowFilesDamaged, RowFilesGone
from ekorn.storage.input_files import open_input
from ekorn.storage.locations import shown
from ekorn.types.row import Row

__all__ = ["ParquetRows"]

_BATCH_ROWS = 2048


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
