"""`LakeSource`: the base of the sources that read the files of one version of a lake table as Arrow columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from ekorn.columns.arrow_columns import load_arrow
from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.errors import ConfigurationError
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.factory import Types
from ekorn.types.row import make_row
from ekorn.types.type_information import TypeInformation

__all__ = ["ArrowRowReader", "LakeSource", "checked_names", "row_type_of"]


class LakeSource(Source):
    """Reads the files of a version of a table once. Files are read at the same time."""

    def __init__(self, schema: Any, files: Sequence[str], *, as_columns: bool) -> None:
        """Take the columns and the files of the version."""
        self._type_info = columns_of_lake(schema) if as_columns else row_type_of(schema)
        self._files = files

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation:
        """Return rows, or columns, with the names and types of the table."""
        return self._type_info

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return one split for each file of the version."""
        return [Split(path, path) for path in self._files]


class ArrowRowReader(SplitReader):
    """Reads one file of a table, as rows or as columns; its position is the number of rows that were read."""

    def __init__(self, file: str, position: Any | None, *, as_columns: bool) -> None:
        self._name = file
        self._as_columns = as_columns
        self._batch: Any = None
        self._read_rows = position or 0
        self._batches: Iterator[Any] | None = None
        self._rows: Sequence[Any] = []  # of the batch: rows, or their positions if columns are read
        self._names: list[str] = []
        self._next = 0
        self._ended = False

    @abstractmethod
    def open_batches(self) -> Iterator[Any]:
        """Return the record batches of the file, in an order that is the same in every run."""

    def read(self, max_records: int) -> Batch:
        if self._batches is None:
            self._batches = self.open_batches()
            self._skip(self._read_rows)
        while self._next >= len(self._rows) and not self._ended:
            self._load(next(self._batches, None))
        if self._as_columns:
            return self._part(max_records)
        found = self._rows[self._next : self._next + max_records]
        self._next += len(found)
        self._read_rows += len(found)
        names = self._names
        return Batch([make_row(values, names) for values in found])  # hot

    def _part(self, max_records: int) -> Batch:
        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.origin import Origin

        if self._next >= len(self._rows):
            return Batch([])
        data = self._batch.slice(self._next, max_records)
        origin = Origin(repr(self._name), self._read_rows, data.num_rows)
        self._next += data.num_rows
        self._read_rows += data.num_rows
        return Batch([ColumnBatch(data, origin=origin)])

    def _skip(self, count: int) -> None:
        assert self._batches is not None
        while count > 0:
            batch = next(self._batches, None)
            if batch is None:
                self._ended = True
                return
            if batch.num_rows > count:
                self._load(batch.slice(count))
            count -= min(count, batch.num_rows)

    def _load(self, batch: Any) -> None:
        self._next = 0
        if batch is None:
            self._rows, self._ended = [], True
            return
        if self._as_columns:
            self._batch, self._rows = batch, range(batch.num_rows)
            return
        self._names = list(batch.schema.names)
        self._rows = list(map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True)))

    def position(self) -> int:
        return self._read_rows

    @property
    def finished(self) -> bool:
        return self._ended and self._next >= len(self._rows)

    def close(self) -> None:
        self._batches, self._batch, self._rows, self._ended, self._next = None, None, [], True, 0


def checked_names(given: Sequence[str] | None, found: Sequence[str], taken_by: str) -> list[str]:
    """Return the columns that are read: those given, or all.

    Raises:
        ConfigurationError: The table has no such column, or none is given.
    """
    if given is None:
        return list(found)
    if isinstance(given, str) or not given:
        raise TypeError(f"{taken_by} takes the names of columns, got {given!r}")
    unknown = [name for name in given if name not in found]
    if unknown:
        raise ConfigurationError(f"{taken_by}: the table has no column {unknown[0]!r}; it has {', '.join(found)}")
    return list(given)


def columns_of_lake(schema: Any) -> TypeInformation:
    """Return columns with the names and types of an Arrow schema."""
    from ekorn.columns.row_columns import RowColumns, row_type_of_arrow

    return ColumnsTypeInfo(RowColumns(row_type_of_arrow(schema, exact=True)).schema)


def row_type_of(schema: Any) -> RowTypeInfo:
    """Return rows with the names of an Arrow schema, and with its types where there is one for them."""
    return Types.ROW_NAMED(list(schema.names), [_type_of(field.type) for field in schema])


def _type_of(arrow_type: Any) -> TypeInformation:
    pa = load_arrow("a table")
    known: dict[Any, TypeInformation] = {
        pa.bool_(): Types.BOOLEAN(),
        pa.int8(): Types.BYTE(),
        pa.int16(): Types.SHORT(),
        pa.int32(): Types.INT(),
        pa.int64(): Types.LONG(),
        pa.float32(): Types.FLOAT(),
        pa.float64(): Types.DOUBLE(),
        pa.string(): Types.STRING(),
        pa.large_string(): Types.STRING(),
        pa.date32(): Types.SQL_DATE(),
    }
    return known.get(arrow_type, Types.PICKLED_BYTE_ARRAY())
