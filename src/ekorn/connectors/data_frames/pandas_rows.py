"""Rows and row types from and to DataFrames of pandas, through Arrow. pandas is imported by its caller alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ekorn.columns.arrow_columns import load_arrow
from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.errors import ConfigurationError
from ekorn.extras import load
from ekorn.types.data_types import RowType
from ekorn.types.row import Row

__all__ = ["TypedRows", "frame_of", "load_pandas", "rows_of_pandas"]


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
    pa = load_arrow("a DataFrame of pandas", "pandas")
    if odd := [name for name in frame.columns if not isinstance(name, str)]:
        raise ConfigurationError(
            f"from_pandas(): the name of column {odd[0]!r} is not text; rename it: df.rename(columns=str)"
        )
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ConfigurationError(f"from_pandas(): a column has values without a common type: {error}") from None
    row_type = row_type_of_arrow(table.schema)
    columns = RowColumns(row_type)
    try:
        return TypedRows([row for batch in table.to_batches() for row in columns.rows(batch)], row_type)
    except pa.ArrowInvalid as error:
        raise ConfigurationError(
            f"from_pandas(): a column would be changed: {error}; times have microsecond precision: round them first, "
            "as in df['t'].dt.floor('us')"
        ) from None


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


def _names(row: Row) -> list[str]:
    return getattr(row, "_fields", None) or [f"f{i}" for i in range(len(row))]
