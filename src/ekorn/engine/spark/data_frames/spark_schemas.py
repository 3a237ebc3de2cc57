"""Runs in the driver: row types from Spark's schemas and back.

| Spark | row type | values in a stream |
|---|---|---|
| byte, short, int, long | TINYINT, SMALLINT, INT, BIGINT | int |
| float, double | FLOAT, DOUBLE | float |
| decimal(p,s) | DECIMAL(p, s) | Decimal |
| string, char, varchar | STRING | str |
| binary | BYTES | bytes |
| date | DATE | datetime.date |
| timestamp | TIMESTAMP_LTZ(6) | Instant |
| timestamp_ntz | TIMESTAMP(6) | datetime.datetime |
| array, map, struct | ARRAY, MAP, ROW | list, dict, Row |

A column that may be null in one is nullable in the other. Types that are not listed are refused with what to do.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as st

from ekorn.errors import ConfigurationError
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_types import DataTypes

__all__ = ["row_type_from_spark", "spark_schema"]

_ATOMIC: dict[type, DataType] = {
    st.ByteType: DataTypes.TINYINT(),
    st.ShortType: DataTypes.SMALLINT(),
    st.IntegerType: DataTypes.INT(),
    st.LongType: DataTypes.BIGINT(),
    st.FloatType: DataTypes.FLOAT(),
    st.DoubleType: DataTypes.DOUBLE(),
    st.BooleanType: DataTypes.BOOLEAN(),
    st.StringType: DataTypes.STRING(),
    st.CharType: DataTypes.STRING(),
    st.VarcharType: DataTypes.STRING(),
    st.BinaryType: DataTypes.BYTES(),
    st.DateType: DataTypes.DATE(),
    st.TimestampType: DataTypes.TIMESTAMP_LTZ(6),
    st.TimestampNTZType: DataTypes.TIMESTAMP(6),
}


def row_type_from_spark(schema: Any) -> dt.RowType:
    """Return the row type of a `StructType`.

    Raises:
        ConfigurationError: A column has a type that no stream has, or two columns have one name.
    """
    return _row(schema, ())


def _row(struct: Any, path: tuple[str, ...]) -> dt.RowType:
    fields: list[dt.RowField] = []
    for field in struct.fields:
        if any(field.name == known.name for known in fields):
            raise ConfigurationError(
                f"the DataFrame has two columns named {'.'.join((*path, field.name))!r}; rename one of them"
            )
        data_type = _data_type(field.dataType, (*path, field.name))
        fields.append(dt.RowField(field.name, data_type if field.nullable else data_type.not_null()))
    return dt.RowType(fields)


def _data_type(spark_type: Any, path: tuple[str, ...]) -> DataType:
    match spark_type:
        case st.DecimalType():
            return DataTypes.DECIMAL(spark_type.precision, spark_type.scale)
        case st.ArrayType():
            element = _data_type(spark_type.elementType, (*path, "element"))
            return DataTypes.ARRAY(element if spark_type.containsNull else element.not_null())
        case st.MapType():
            value = _data_type(spark_type.valueType, (*path, "value"))
            return DataTypes.MAP(
                _data_type(spark_type.keyType, (*path, "key")).not_null(),
                value if spark_type.valueContainsNull else value.not_null(),
            )
        case st.StructType():
            return _row(spark_type, path)
    known = _ATOMIC.get(type(spark_type))
    if known is None:
        raise ConfigurationError(
            f"column {'.'.join(path)!r} has Spark's type {spark_type.simpleString()}, which streams do not support; "
            "cast it first, for example to string or long"
        )
    return known


def spark_schema(row_type: dt.RowType) -> Any:
    """Return the `StructType` of a row type.

    Raises:
        ConfigurationError: Spark has no type for a column.
    """
    return st.StructType(
        [st.StructField(f.name, _spark_type(f.data_type, f.name), f.data_type.is_nullable) for f in row_type]
    )


def _spark_type(data_type: DataType, name: str) -> Any:
    match data_type:
        case dt.RowType():
            return spark_schema(data_type)
        case dt.ArrayType():
            return st.ArrayType(_spark_type(data_type.element_type, name), data_type.element_type.is_nullable)
        case dt.MapType():
            return st.MapType(
                _spark_type(data_type.key_type, name),
                _spark_type(data_type.value_type, name),
                data_type.value_type.is_nullable,
            )
        case dt.MultisetType():
            return st.MapType(_spark_type(data_type.element_type, name), st.IntegerType(), False)
        case dt.DecimalType():
            return st.DecimalType(data_type.precision, data_type.scale)
        case dt.CharType() | dt.VarCharType():
            return st.StringType()
        case dt.BinaryType() | dt.VarBinaryType():
            return st.BinaryType()
        case dt.TimestampType():
            return st.TimestampNTZType()
        case dt.LocalZonedTimestampType():
            return st.TimestampType()
    for spark_type, known in _ATOMIC.items():
        if type(known) is type(data_type):
            return spark_type()
    raise ConfigurationError(f"column {name!r}: Spark has no type for {data_type}; declare another type")
