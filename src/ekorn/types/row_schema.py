"""The row type of a stream's type: the columns that a table of its records has.

`data_type_info.row_type_info` goes the other way. A type says less than a column: a decimal number of `Types.BIG_DEC()`
has any precision, a column has one. Where a stream's type leaves something open, the widest column is taken.
"""

from __future__ import annotations

from ekorn.errors import ConfigurationError
from ekorn.types import data_types as dt
from ekorn.types.composite_types import ListTypeInfo, MapTypeInfo, RowTypeInfo, TupleTypeInfo
from ekorn.types.data_type import DataType
from ekorn.types.data_types import DataTypes
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["row_type_of"]

_BASIC: dict[TypeInformation, DataType] = {
    Types.STRING(): DataTypes.STRING(),
    Types.CHAR(): DataTypes.STRING(),
    Types.BOOLEAN(): DataTypes.BOOLEAN(),
    Types.BYTE(): DataTypes.TINYINT(),
    Types.SHORT(): DataTypes.SMALLINT(),
    Types.INT(): DataTypes.INT(),
    Types.LONG(): DataTypes.BIGINT(),
    Types.FLOAT(): DataTypes.FLOAT(),
    Types.DOUBLE(): DataTypes.DOUBLE(),
    Types.BIG_INT(): DataTypes.DECIMAL(38, 0),
    Types.BIG_DEC(): DataTypes.DECIMAL(38, 18),
    Types.SQL_DATE(): DataTypes.DATE(),
    Types.SQL_TIMESTAMP(): DataTypes.TIMESTAMP(3),
    Types.INSTANT(): DataTypes.TIMESTAMP_LTZ(6),
}


def row_type_of(type_info: TypeInformation | None, taken_by: str) -> dt.RowType:
    """Return the columns of a stream's records.

    Args:
        type_info: The type of the records, or None if none was declared.
        taken_by: The call that needs the columns, for error messages.

    Raises:
        ConfigurationError: The records have no columns, or a column cannot be in a table.

    >>> row_type_of(Types.ROW_NAMED(["id", "tags"], [Types.LONG(), Types.LIST(Types.STRING())]), "f()").field_names()
    ['id', 'tags']
    """
    if not isinstance(type_info, RowTypeInfo | TupleTypeInfo):
        declared = "no declared type" if type_info is None else f"the type {type_info}"
        raise ConfigurationError(
            f"{taken_by} needs the columns of the records, and the stream has {declared}: pass a schema, or declare "
            "rows, as in map(f, output_type=Types.ROW_NAMED(['id'], [Types.LONG()]))"
        )
    return _row(type_info, taken_by)


def _row(type_info: RowTypeInfo | TupleTypeInfo, taken_by: str) -> dt.RowType:
    types = type_info.get_field_types()
    names = type_info.get_field_names() if isinstance(type_info, RowTypeInfo) else [f"f{i}" for i in range(len(types))]
    fields = zip(names, types, strict=True)
    return dt.RowType([dt.RowField(name, _column(each, name, taken_by)) for name, each in fields])


def _column(type_info: TypeInformation, name: str, taken_by: str) -> DataType:
    match type_info:
        case RowTypeInfo() | TupleTypeInfo():
            return _row(type_info, taken_by)
        case MapTypeInfo():
            return DataTypes.MAP(
                _column(type_info.key_type, name, taken_by).not_null(), _column(type_info.value_type, name, taken_by)
            )
        case ListTypeInfo():
            if type_info == Types.PRIMITIVE_ARRAY(Types.BYTE()):
                return DataTypes.BYTES()
            return DataTypes.ARRAY(_column(type_info.elem_type, name, taken_by))
    if type_info in _BASIC:
        return _BASIC[type_info]
    raise ConfigurationError(
        f"{taken_by}: column {name!r} has the type {type_info}, which tables do not support; map it to another type, "
        "or pass a schema"
    )
