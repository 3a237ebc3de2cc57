"""The type of the records that a data type describes."""

from __future__ import annotations

from tamias.errors import ConfigurationError
from tamias.types import data_types as dt
from tamias.types.composite_types import RowTypeInfo
from tamias.types.data_type import DataType
from tamias.types.factory import Types
from tamias.types.type_information import TypeInformation

__all__ = ["checked_row_type", "row_type_info", "type_info_of"]


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
        case dt.DecimalType():
            return Types.BIG_DEC()
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
    raise ConfigurationError(f"a stream has no records of the data type {data_type!r}; use one of DataTypes")


def checked_row_type(row_type: object, taken_by: str) -> dt.RowType:
    """Return a row type, or raise a TypeError that shows how one is written."""
    if not isinstance(row_type, dt.RowType):
        raise TypeError(
            f"{taken_by} takes a row type such as DataTypes.ROW([DataTypes.FIELD('id', DataTypes.INT())]), "
            f"got {row_type!r}"
        )
    return row_type
