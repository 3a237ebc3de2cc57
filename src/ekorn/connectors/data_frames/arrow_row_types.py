"""Row types of tables of Arrow, for DataFrames of pandas."""

from __future__ import annotations

from typing import Any

from ekorn.connectors.formats.arrow_columns import load_arrow
from ekorn.errors import ConfigurationError
from ekorn.types.data_type import DataType
from ekorn.types.data_types import DataTypes, RowField, RowType

__all__ = ["row_type_of_arrow"]


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
    pa = load_arrow("a DataFrame")
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
        pa.null(): DataTypes.STRING(),  # a column of missing values alone
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
        f"column {name!r} has Arrow's type {arrow_type}, which no stream has; convert it first, for example to text"
    )
