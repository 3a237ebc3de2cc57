"""The types of records that data types describe, and back."""

from __future__ import annotations

from ekorn.errors import ConfigurationError
from ekorn.types import data_types as dt
from ekorn.types.basic_types import BasicTypeInfo
from ekorn.types.composite_types import ListTypeInfo, MapTypeInfo, RowTypeInfo
from ekorn.types.data_type import DataType, FractionalType, NumericType
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["AnyDecimalType", "AnyIntegerType", "checked_row_type", "data_type_of", "row_type_info", "type_info_of"]


class AnyIntegerType(NumericType):
    """Integers of any size, as `Types.BIG_INT()` declares; no column of a table has them."""


class AnyDecimalType(FractionalType):
    """Decimal numbers of any precision, as `Types.BIG_DEC()` declares; no column of a table has them."""


_BASIC: dict[TypeInformation, DataType] = {
    Types.STRING(): dt.DataTypes.STRING(),
    Types.CHAR(): dt.DataTypes.STRING(),
    Types.BOOLEAN(): dt.DataTypes.BOOLEAN(),
    Types.BYTE(): dt.DataTypes.TINYINT(),
    Types.SHORT(): dt.DataTypes.SMALLINT(),
    Types.INT(): dt.DataTypes.INT(),
    Types.LONG(): dt.DataTypes.BIGINT(),
    Types.FLOAT(): dt.DataTypes.FLOAT(),
    Types.DOUBLE(): dt.DataTypes.DOUBLE(),
    Types.BIG_INT(): AnyIntegerType(),
    Types.BIG_DEC(): AnyDecimalType(),
    Types.SQL_DATE(): dt.DataTypes.DATE(),
    Types.SQL_TIME(): dt.DataTypes.TIME(3),
    Types.SQL_TIMESTAMP(): dt.DataTypes.TIMESTAMP(3),
    Types.INSTANT(): dt.DataTypes.TIMESTAMP_LTZ(9),
}


def row_type_info(row_type: dt.RowType) -> RowTypeInfo:
    """Return the type of rows with the fields of a row type."""
    return Types.ROW_NAMED(row_type.field_names(), [type_info_of(each) for each in row_type.field_types()])


def type_info_of(data_type: DataType) -> TypeInformation:
    """Return the type of the values of a data type.

    Raises:
        ConfigurationError: No stream has records of this data type.
    """
    match data_type:
        case dt.RowType():
            return row_type_info(data_type)
        case dt.ArrayType():
            return Types.OBJECT_ARRAY(type_info_of(data_type.element_type))
        case dt.MapType():
            return Types.MAP(type_info_of(data_type.key_type), type_info_of(data_type.value_type))
        case dt.MultisetType():
            return Types.MAP(type_info_of(data_type.element_type), Types.INT())
        case dt.CharType() | dt.VarCharType():
            return Types.STRING()
        case dt.BinaryType() | dt.VarBinaryType():
            return Types.PRIMITIVE_ARRAY(Types.BYTE())
        case dt.BooleanType():
            return Types.BOOLEAN()
        case dt.IntegralType():
            return {8: Types.BYTE, 16: Types.SHORT, 32: Types.INT, 64: Types.LONG}[data_type.bits]()
        case dt.FloatType():
            return Types.FLOAT()
        case dt.DoubleType():
            return Types.DOUBLE()
        case dt.DecimalType() | AnyDecimalType():
            return Types.BIG_DEC()
        case AnyIntegerType():
            return Types.BIG_INT()
        case dt.DateType():
            return Types.SQL_DATE()
        case dt.LocalZonedTimestampType():
            return Types.INSTANT()
        # SQL_TIME and SQL_TIMESTAMP end at the millisecond; finer times travel as they are.
        case dt.TimeType():
            return Types.SQL_TIME() if data_type.precision <= 3 else Types.PICKLED_BYTE_ARRAY()
        case dt.TimestampType():
            return Types.SQL_TIMESTAMP() if data_type.precision <= 3 else Types.PICKLED_BYTE_ARRAY()
        case dt.YearMonthIntervalType():
            return Types.INT()
        case dt.DayTimeIntervalType() | dt.NullType():
            return Types.PICKLED_BYTE_ARRAY()
    raise ConfigurationError(f"records of a stream cannot have the data type {data_type!r}; use one of DataTypes")


def data_type_of(type_info: TypeInformation, taken_by: str) -> DataType:
    """Return the data type of the values of a type.

    Args:
        type_info: The type that the program gave.
        taken_by: The call that received the type, for error messages.

    Raises:
        ConfigurationError: Text formats have no form for values of this type.
    """
    match type_info:
        case RowTypeInfo():
            fields = zip(type_info.get_field_names(), type_info.get_field_types(), strict=True)
            return dt.RowType([dt.RowField(name, data_type_of(each, taken_by)) for name, each in fields])
        case MapTypeInfo():
            return dt.MapType(data_type_of(type_info.key_type, taken_by), data_type_of(type_info.value_type, taken_by))
        case ListTypeInfo():
            if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE()):
                return dt.DataTypes.BYTES()
            return dt.ArrayType(data_type_of(type_info.elem_type, taken_by))
        case BasicTypeInfo() if type_info in _BASIC:
            return _BASIC[type_info]
    raise ConfigurationError(
        f"{taken_by} cannot represent values of the type {type_info}; use rows, arrays, maps, numbers, strings and "
        "times"
    )


def checked_row_type(row_type: object, taken_by: str) -> dt.RowType:
    """Return a row type, or raise a TypeError that shows how one is written."""
    if not isinstance(row_type, dt.RowType):
        raise TypeError(
            f"{taken_by} takes a row type such as DataTypes.ROW([DataTypes.FIELD('id', DataTypes.INT())]), "
            f"got {row_type!r}"
        )
    return row_type
