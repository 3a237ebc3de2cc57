"""Rows and row types from and to DataFrames of pandas, through Arrow. pandas is imported by its caller alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ekorn.columns.arrow_columns import load_arrow
from ekorn.columns.columns_type import ColumnsTypeInfo
from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.errors import ConfigurationError
from ekorn.extras import load
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.types.data_types import RowType
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

__all__ = [
    "ColumnsOfFrame",
    "TypedRows",
    "columns_of_pandas",
    "frame_of",
    "frame_of_batches",
    "load_pandas",
    "rows_of_pandas",
]

_CHUNK_ROWS = 65536


class TypedRows(NamedTuple):
    """Rows with their columns."""

    rows: list[Row]
    row_type: RowType


def load_pandas(what: str) -> Any:
    """Return the package pandas.

    Raises:
        ConfigurationError: It is not installed.
    """
    return load("pandas", what)


def rows_of_pandas(frame: Any) -> TypedRows:
    """Return the rows of a DataFrame, without its index. Missing values, NaN included, are None.

    Raises:
        ConfigurationError: A column has no type that a stream has, or values that would be changed.
    """
    table, row_type = _typed_table(frame)
    columns = RowColumns(row_type)
    with _unchanged():
        return TypedRows([row for batch in table.to_batches() for row in columns.rows(batch)], row_type)


def columns_of_pandas(frame: Any) -> ColumnsOfFrame:
    """Return a source of the columns of a DataFrame, without its index. Missing values, NaN included, are null.

    Raises:
        ConfigurationError: A column has no type that a stream has, or values that would be changed.
    """
    table, row_type = _typed_table(frame)
    with _unchanged():
        return ColumnsOfFrame(
            table.cast(RowColumns(row_type).schema).combine_chunks().to_batches(_CHUNK_ROWS), row_type
        )


def _typed_table(frame: Any) -> tuple[Any, RowType]:
    pa = load_arrow("a DataFrame of pandas", "pandas")
    if odd := [name for name in frame.columns if not isinstance(name, str)]:
        raise ConfigurationError(
            f"from_pandas(): the name of column {odd[0]!r} is not text; rename it: df.rename(columns=str)"
        )
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ConfigurationError(f"from_pandas(): a column has values without a common type: {error}") from None
    return table, row_type_of_arrow(table.schema)


@contextmanager
def _unchanged() -> Iterator[None]:
    pa = load_arrow("a DataFrame of pandas", "pandas")
    try:
        yield
    except pa.ArrowInvalid as error:
        raise ConfigurationError(
            f"from_pandas(): a column would be changed: {error}; times have microsecond precision: round them first, "
            "as in df['t'].dt.floor('us')"
        ) from None


class ColumnsOfFrame(Source):
    """Reads record batches that the program holds in memory, in their order; the position is the number of rows."""

    def __init__(self, batches: Sequence[Any], row_type: RowType) -> None:
        from ekorn.columns.column_batch import ColumnBatch

        self._batches = [ColumnBatch(batch) for batch in batches]  # each is pickled without the buffers of the others
        self._row_type = row_type

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation:
        """Return the columns."""
        return ColumnsTypeInfo(RowColumns(self._row_type).schema)

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return one split, so that the order is kept."""
        return [Split("all")]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open the columns behind the rows that an earlier reader has read."""
        return _FrameReader(self._batches, position or 0)

    def __repr__(self) -> str:
        return f"ColumnsOfFrame({sum(map(len, self._batches))} rows)"


class _FrameReader(SplitReader):
    def __init__(self, batches: list[Any], position: int) -> None:
        self._batches = batches
        self._position = position
        self._count = sum(map(len, batches))

    def read(self, max_records: int) -> Batch:
        from ekorn.columns.column_batch import ColumnBatch
        from ekorn.columns.origin import Origin

        if self.finished:
            return Batch([])
        number, offset = divmod(self._position, _CHUNK_ROWS)
        data = self._batches[number].data.slice(offset, max_records)
        origin = Origin("the DataFrame", self._position, data.num_rows)
        self._position += data.num_rows
        return Batch([ColumnBatch(data, origin=origin)])

    def position(self) -> int:
        return self._position

    @property
    def finished(self) -> bool:
        return self._position >= self._count


def frame_of(records: Sequence[Any], row_type: RowType | None) -> Any:
    """Return records as a DataFrame of pandas.

    Args:
        records: The records.
        row_type: Their columns; None if they have none declared. Rows and dicts then give their own names, tuples the
            names f0, f1 and so on, and anything else a column named value.
    """
    pandas = load_pandas("to_pandas()")
    if row_type is not None:
        columns = RowColumns(row_type)
        table = load_arrow("a DataFrame of pandas", "pandas").Table.from_batches(
            [columns.batch(records)], schema=columns.schema
        )
        return table.to_pandas()
    if all(isinstance(record, Row) for record in records):
        return pandas.DataFrame([dict(zip(_names(record), record, strict=True)) for record in records])
    if all(isinstance(record, dict) for record in records):
        return pandas.DataFrame(list(records))
    if all(isinstance(record, tuple) for record in records):
        return pandas.DataFrame([{f"f{i}": value for i, value in enumerate(record)} for record in records])
    return pandas.DataFrame({"value": list(records)})


def frame_of_batches(batches: Sequence[Any], row_type: RowType) -> Any:
    """Return batches of columns as a DataFrame of pandas."""
    load_pandas("to_pandas()")
    schema = RowColumns(row_type).schema
    table = load_arrow("a DataFrame of pandas", "pandas").Table.from_batches([each.data for each in batches], schema)
    return table.to_pandas()


def _names(row: Row) -> list[str]:
    return getattr(row, "_fields", None) or [f"f{i}" for i in range(len(row))]
