"""`ParquetColumns`, `OrcColumns` and `ArrowColumns`: files of columns, read as streams of columns.

The rows of such a file lie in groups, at which files are divided.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ekorn.columns.arrow_columns import load_arrow
from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.connectors.files.stream_formats import BulkFormat
from ekorn.connectors.formats.parquet_files import ParquetReader
from ekorn.connectors.formats.stored_columns import StoredColumns
from ekorn.errors import ConfigurationError
from ekorn.extras import need
from ekorn.functions.source_contract import Batch, SplitReader
from ekorn.storage.input_files import open_input
from ekorn.storage.locations import shown
from ekorn.types.data_type_info import checked_row_type
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowColumns", "OrcColumns", "ParquetColumns"]


class _GroupFormat(BulkFormat):
    def __init__(self, row_type: RowType, batch_size: int = 65536, is_case_sensitive: bool = True) -> None:
        """Set the columns.

        Args:
            row_type: The columns and their types. A column that a file lacks is null. Timestamps are read as stored.
            batch_size: The most rows of a batch.
            is_case_sensitive: Whether names of columns differ by the case of their letters.
        """
        name = type(self).__name__
        need("columns", name)
        self._row_type = checked_row_type(row_type, name)
        if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(f"{name} takes a batch_size above 0, got {batch_size!r}")
        self._batch_size = batch_size
        self._case_sensitive = is_case_sensitive

    def can_split(self, path: str) -> bool:
        """Return True: files are divided at their groups of rows."""
        return True

    def get_produced_type(self) -> TypeInformation:
        """Return the columns."""
        from ekorn.columns.row_columns import RowColumns

        return ColumnsTypeInfo(RowColumns(self._row_type).schema)

    def _stored(self, path: str) -> StoredColumns:
        return StoredColumns(path, self._row_type, case_sensitive=self._case_sensitive)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._row_type!r})"


class ParquetColumns(_GroupFormat):
    """Reads the columns of Parquet files as a stream of columns: no row becomes a Python object.

    FileSource.for_bulk_file_format(ParquetColumns(row_type), "/data/in").build()
    """

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the row groups that begin in a range of bytes."""
        return _ParquetColumnsReader(
            self._stored(path),
            path,
            {},
            lambda values: values,
            start=start,
            end=end,
            position=position,
            batch_size=self._batch_size,
            case_sensitive=self._case_sensitive,
        )


class _ParquetColumnsReader(ParquetReader):
    """Reads batches of columns. Its positions are those of rows."""

    def __init__(self, stored: StoredColumns, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._columns_of_file = stored

    def _stored_columns(self, found: list[str]) -> list[str]:
        self._columns_of_file.find(found)
        return self._columns_of_file.found

    def _decoded(self, batch: Any) -> Any:
        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.origin import Origin

        metadata = self._file.metadata
        before = sum(metadata.row_group(number).num_rows for number in range(self._group or 0))
        origin = Origin(repr(shown(self._path)), before + self._row, batch.num_rows)
        return ColumnBatch(self._columns_of_file.batch(batch), origin=origin)

    def _part(self, first: int, most: int) -> tuple[list[Any], int]:
        if first >= len(self._records):
            return [], 0
        part = self._records.slice(first, most)
        return [part], len(part)


class OrcColumns(_GroupFormat):
    """Reads the columns of ORC files as a stream of columns. A stripe is decoded at a time.

    FileSource.for_bulk_file_format(OrcColumns(row_type), "/data/in").build()
    """

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the stripes of a range of bytes."""
        return _OrcReader(self._stored(path), path, start, end, position=position, batch_size=self._batch_size)


class ArrowColumns(_GroupFormat):
    """Reads the columns of files in Arrow's IPC format as a stream of columns. A record batch is read at a time.

    FileSource.for_bulk_file_format(ArrowColumns(row_type), "/data/in").build()

    Files have the file format, also called Feather, or the streaming format, which one reader reads from its beginning.
    """

    def create_reader(self, path: str, start: int, end: int | None, position: Any | None) -> SplitReader:
        """Open the record batches of a range of bytes."""
        return _IpcReader(self._stored(path), path, start, end, position=position, batch_size=self._batch_size)


class _GroupReader(SplitReader):
    """Reads the groups of a range. The position is a group, and the number of its rows that were read.

    The libraries do not tell where a group begins. Number n of m groups belongs to the range that has the byte at n/m
    of the file.
    """

    holds_file = True
    group_name: str

    def __init__(
        self,
        stored: StoredColumns,
        path: str,
        start: int,
        end: int | None,
        *,
        position: Any | None,
        batch_size: int,
    ) -> None:
        self._stored = stored
        self._path = path
        self._start = start
        self._end = end
        self._group: int | None = None
        self._row = 0
        if position is not None:
            self._group, self._row = position
        self._batch_size = batch_size
        self._stream: Any = None
        self._last = 0  # the group behind the range
        self._rows: pa.RecordBatch | None = None
        self._ended = False

    @abstractmethod
    def open_file(self, stream: Any) -> int | None:
        """Open the file; return the number of groups, or None if it is known at the end only."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of the columns of the file."""

    @abstractmethod
    def read_group(self, group: int, names: Sequence[str]) -> pa.RecordBatch | None:
        """Return a group, with at least these columns; None behind the last one."""

    def read(self, max_records: int) -> Batch:
        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.origin import Origin

        while self._rows is None and not self._ended:
            self._load()
        if self._rows is None:
            return Batch([])
        part = self._rows.slice(self._row, min(max_records, self._batch_size))
        data = self._stored.batch(part)
        place = f"{self.group_name} {self._group} of {shown(self._path)!r}"
        origin = Origin(place, self._row, part.num_rows)
        self._row += part.num_rows
        if self._row >= self._rows.num_rows:
            self._go_on()
        return Batch([ColumnBatch(data, origin=origin)])

    def _load(self) -> None:
        if self._stream is None:
            self._open()
            if self._ended:
                return
        assert self._group is not None, "the file is open"
        rows = self.read_group(self._group, self._stored.found)
        if rows is None:
            self._ended = True
        elif self._row >= rows.num_rows:
            self._go_on()
        else:
            self._rows = rows

    def _go_on(self) -> None:
        self._rows, self._row = None, 0
        assert self._group is not None, "a group was read"
        self._group += 1
        self._ended = self._group >= self._last

    def _open(self) -> None:
        pa = load_arrow(type(self).__name__)
        self._stream = open_input(self._path)
        try:
            size = self._stream.seek(0, io.SEEK_END)
            self._stream.seek(0)
            count = self.open_file(self._stream)
        except (pa.ArrowInvalid, OSError) as error:
            raise ConfigurationError(f"cannot read {shown(self._path)!r}: {error}") from None
        self._stored.find(self.names())
        first, self._last = 0, 1 << 62
        if count is not None:
            first = _first_group(self._start, size, count)
            self._last = count if self._end is None else _first_group(self._end, size, count)
        elif self._start:
            self._last = 0  # the reader of the first range reads all groups
        if self._group is None:
            self._group = first
        self._ended = self._group >= self._last

    def position(self) -> tuple[int, int] | None:
        return None if self._group is None else (self._group, self._row)

    @property
    def finished(self) -> bool:
        return self._ended

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = self._rows = None


def _first_group(byte: int, size: int, count: int) -> int:
    """Return the first group at or behind a byte.

    >>> [_first_group(byte, 100, 3) for byte in (0, 1, 33, 34, 66, 67, 100)]
    [0, 1, 1, 2, 2, 3, 3]
    """
    return min(count, -(-byte * count // size)) if size else 0


class _OrcReader(_GroupReader):
    group_name = "stripe"

    def open_file(self, stream: Any) -> int:
        load_arrow("ORC", "orc")
        import pyarrow.orc

        self._file = pyarrow.orc.ORCFile(stream)
        return int(self._file.nstripes)

    def names(self) -> list[str]:
        return list(self._file.schema.names)

    def read_group(self, group: int, names: Sequence[str]) -> pa.RecordBatch | None:
        # A stripe of no columns has no rows, and their number is needed.
        return self._file.read_stripe(group, columns=list(names) or self.names()[:1])


class _IpcReader(_GroupReader):
    group_name = "batch"

    def open_file(self, stream: Any) -> int | None:
        import pyarrow as pa

        self._next = 0
        self._file: Any = None
        is_file = stream.read(6) == b"ARROW1"
        stream.seek(0)
        if is_file:
            self._file = pa.ipc.open_file(stream)
            self._schema = self._file.schema
            return int(self._file.num_record_batches)
        self._batches = pa.ipc.open_stream(stream)
        self._schema = self._batches.schema
        return None

    def names(self) -> list[str]:
        return list(self._schema.names)

    def read_group(self, group: int, names: Sequence[str]) -> pa.RecordBatch | None:
        if self._file is not None:
            return self._file.get_batch(group)
        batch = None
        while self._next <= group:
            batch = next(self._batches, None)
            self._next += 1
        return batch
