"""Rows and row types from and to DataFrames of pandas, through Arrow. pandas is imported by its caller alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ekorn.connectors.data_frames.parquet_rows import RowColumns
from ekorn.connectors.formats.arrow_columns import load_arrow
from ekorn.errors import ConfigurationError
from ekorn.extras import load
from ekorn.types.data_type import DataType
from ekorn.types.data_types import DataTypes, RowField, RowType
from ekorn.types.row import Row

__all__ = ["TypedRows", "frame_of", "load_pandas", "row_type_of_arrow", "rows_of_pandas"]


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


def row_type_of_arrow(schema: Any) -> RowType:
    """Return the row type of a schema of Arrow; every column is nullable.

    Raises:
        ConfigurationError: A column has a type that no stream has, or two columns have one name.
    """
    fields: list[RowField] = []
    for field in schema:
        if any(field.name == known.name for known in fields):
            raise ConfigurationError(f"two columns have the name {field.name!r}; rename one of them")
        fields.append(RowField(field.name, _data_type(field.type, field.name)))
    return RowType(fields)


def _data_type(arrow_type: Any, name: str) -> DataType:
    pa = load_arrow("a DataFrame of pandas", "pandas")
    t = pa.types
    plain = {
        pa.bool_(): DataTypes.BOOLEAN(),
        pa.int8(): DataTypes.TINYINT(),
        pa.uint8(): DataTypes.SMALLINT(),
        pa.int16(): DataTypes.SMALLINT(),
        pa.uint16(): DataTypes.INT(),
        pa.int32(): DataTypes.INT(),
        pa.uint32(): DataTypes.BIGINT(),
        pa.int64(): DataTypes.BIGINT(),
        pa.uint64(): DataTypes.DECIMAL(20, 0),
        pa.float16(): DataTypes.FLOAT(),
        pa.float32(): DataTypes.FLOAT(),
        pa.float64(): DataTypes.DOUBLE(),
        pa.null(): DataTypes.STRING(),  # a column with only missing values
    }
    if arrow_type in plain:
        return plain[arrow_type]
    if t.is_string(arrow_type) or t.is_large_string(arrow_type):
        return DataTypes.STRING()
    if t.is_binary(arrow_type) or t.is_large_binary(arrow_type) or t.is_fixed_size_binary(arrow_type):
        return DataTypes.BYTES()
    if t.is_decimal(arrow_type) and arrow_type.precision <= 38 and 0 <= arrow_type.scale <= arrow_type.precision:
        return DataTypes.DECIMAL(arrow_type.precision, arrow_type.scale)
    if t.is_date(arrow_type):
        return DataTypes.DATE()
    if t.is_time(arrow_type):
        return DataTypes.TIME(6)
    if t.is_timestamp(arrow_type):
        return DataTypes.TIMESTAMP(6) if arrow_type.tz is None else DataTypes.TIMESTAMP_LTZ(6)
    if t.is_dictionary(arrow_type):
        return _data_type(arrow_type.value_type, name)
    if t.is_list(arrow_type) or t.is_large_list(arrow_type) or t.is_fixed_size_list(arrow_type):
        return DataTypes.ARRAY(_data_type(arrow_type.value_type, name))
    if t.is_map(arrow_type):
        return DataTypes.MAP(_data_type(arrow_type.key_type, name).not_null(), _data_type(arrow_type.item_type, name))
    if t.is_struct(arrow_type):
        return RowType([RowField(field.name, _data_type(field.type, f"{name}.{field.name}")) for field in arrow_type])
    raise ConfigurationError(
        f"column {name!r} has Arrow's type {arrow_type}, which streams do not support; convert it first, for example "
        "to text"
    )
