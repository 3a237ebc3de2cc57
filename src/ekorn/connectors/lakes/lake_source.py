"""`LakeSource`: the base of the sources that read the files of one version of a lake table as Arrow columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from ekorn.columns.arrow_columns import load_arrow
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.factory import Types
from ekorn.types.row import make_row
from ekorn.types.type_information import TypeInformation

__all__ = ["ArrowRowReader", "LakeSource", "row_type_of"]


class LakeSource(Source):
    """Reads the files of a version of a table once. Files are read at the same time."""

    def __init__(self, type_info: RowTypeInfo, files: Sequence[str]) -> None:
        """Take the columns and the files of the version."""
        self._type_info = type_info
        self._files = files

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def get_produced_type(self) -> RowTypeInfo:
        """Return rows with the names and types of the columns."""
        return self._type_info

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return one split for each file of the version."""
        return [Split(path, path) for path in self._files]


class ArrowRowReader(SplitReader):
    """Reads the rows of one file of a table; its position is the number of rows that were read."""

    def __init__(self, position: Any | None) -> None:
        self._read_rows = position or 0
        self._batches: Iterator[Any] | None = None
        self._rows: list[list[Any]] = []
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
        found = self._rows[self._next : self._next + max_records]
        self._next += len(found)
        self._read_rows += len(found)
        names = self._names
        return Batch([make_row(values, names) for values in found])  # hot

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
        self._names = list(batch.schema.names)
        self._rows = list(map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True)))

    def position(self) -> int:
        return self._read_rows

    @property
    def finished(self) -> bool:
        return self._ended and self._next >= len(self._rows)

    def close(self) -> None:
        self._batches, self._rows, self._ended, self._next = None, [], True, 0


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
