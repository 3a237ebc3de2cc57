"""Columns for the keys and values of state: their types, and the values in the form of these types.

A declared type of the program decides the type of its column. Without a declared type, the values decide: if all of
them fit one type, that is the type of the column; otherwise the column is text.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from collections.abc import Iterable, Mapping
from typing import Any

from ekorn.state.evolution.pickled_classes import ClassFields
from ekorn.state.evolution.type_descriptions import Schema
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_types import DataTypes, RowField, RowType
from ekorn.types.row import Row
from ekorn.types.time import Instant

__all__ = ["declared_column", "fitted", "inferred_column"]

_TEXT = DataTypes.STRING()
_LONG_LIMIT = 1 << 63

_WORDS: dict[str, DataType] = {
    "STRING": _TEXT,
    "CHAR": _TEXT,
    "BOOLEAN": DataTypes.BOOLEAN(),
    "BYTE": DataTypes.TINYINT(),
    "SHORT": DataTypes.SMALLINT(),
    "INT": DataTypes.INT(),
    "LONG": DataTypes.BIGINT(),
    "FLOAT": DataTypes.FLOAT(),
    "DOUBLE": DataTypes.DOUBLE(),
    "BIG_INT": DataTypes.DECIMAL(38, 0),
    "BIG_DEC": DataTypes.DECIMAL(38, 18),
    "INSTANT": DataTypes.TIMESTAMP_LTZ(6),
    "SQL_DATE": DataTypes.DATE(),
    "SQL_TIMESTAMP": DataTypes.TIMESTAMP(6),
    # The columns for the annotations of the fields of classes.
    "int": DataTypes.BIGINT(),
    "float": DataTypes.DOUBLE(),
    "str": _TEXT,
    "bool": DataTypes.BOOLEAN(),
    "bytes": DataTypes.BYTES(),
}


def declared_column(schema: Schema, classes: ClassFields) -> DataType | None:
    """Return the column of a type as a savepoint describes it; None if it says too little.

    >>> declared_column({"row": [["id", "LONG"], ["tags", {"list": "STRING"}]]}, {}) == DataTypes.ROW(
    ...     [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("tags", DataTypes.ARRAY(DataTypes.STRING()))]
    ... )
    True
    """
    match schema:
        case str() if schema in _WORDS:
            return _WORDS[schema]
        case str() if classes.get(schema):
            return _row([(name, each) for name, each in classes[schema] or ()], classes)
        case {"class": name} if classes.get(name):
            return _row([(field, each) for field, each in classes[name] or ()], classes)
        case {"row": fields}:
            return _row([(name, each) for name, each in fields], classes)
        case {"tuple": fields} if fields:
            return _row([(f"f{number}", each) for number, each in enumerate(fields)], classes)
        case {"primitive-array": "BYTE"}:
            return DataTypes.BYTES()
        case {"list": each} | {"array": each} | {"primitive-array": each}:
            element = declared_column(each, classes)
            return None if element is None else DataTypes.ARRAY(element)
        case {"map": [key, value]}:
            parts = declared_column(key, classes), declared_column(value, classes)
            return None if parts[0] is None or parts[1] is None else DataTypes.MAP(parts[0].not_null(), parts[1])
        case {"optional": each}:
            return declared_column(each, classes)
        case _:
            return None


def _row(fields: Iterable[tuple[str, Schema]], classes: ClassFields) -> DataType | None:
    columns = [(name, declared_column(each, classes)) for name, each in fields]
    known = [RowField(name, column) for name, column in columns if column is not None]
    return RowType(known) if known and len(known) == len(columns) else None


# ---------------------------------------------------------------------------------------------------------- inference


def inferred_column(values: Iterable[Any]) -> DataType:
    """Return the one type that all values fit, or text.

    >>> inferred_column([1, 2]) == DataTypes.BIGINT(), inferred_column([1, 2.5]) == DataTypes.DOUBLE()
    (True, True)
    >>> inferred_column([1, "a"]) == DataTypes.STRING()
    True
    """
    found = [value for value in values if value is not None]
    kinds = {_kind(value) for value in found}
    if len(kinds) != 1:
        return DataTypes.DOUBLE() if kinds == {"int", "float"} else _TEXT
    match kinds.pop():
        case "bool":
            return DataTypes.BOOLEAN()
        case "int":
            return DataTypes.BIGINT()
        case "large":
            return DataTypes.DECIMAL(38, 0)
        case "float":
            return DataTypes.DOUBLE()
        case "bytes":
            return DataTypes.BYTES()
        case "decimal":
            return DataTypes.DECIMAL(38, 18)
        case "instant":
            return DataTypes.TIMESTAMP_LTZ(6)
        case "timestamp":
            return DataTypes.TIMESTAMP(6)
        case "date":
            return DataTypes.DATE()
        case "array":
            return DataTypes.ARRAY(inferred_column(each for value in found for each in value))
        case "map":
            keys = inferred_column(key for value in found for key in value)
            return DataTypes.MAP(keys.not_null(), inferred_column(each for value in found for each in value.values()))
        case "row":
            return _inferred_row([fields_of(value) for value in found])
        case _:
            return _TEXT


def _inferred_row(rows: list[dict[str, Any]]) -> DataType:
    names = list(rows[0])
    if not names or any(list(row) != names for row in rows):
        return _TEXT
    return RowType([RowField(name, inferred_column(row[name] for row in rows)) for name in names])


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "int" if -_LONG_LIMIT <= value < _LONG_LIMIT else "large"
        case float():
            return "float"
        case str():
            return "text"
        case bytes() | bytearray():
            return "bytes"
        case decimal.Decimal():
            return "decimal"
        case Instant():
            return "instant"
        case datetime.datetime():
            return "timestamp" if value.tzinfo is None else "other"
        case datetime.date():
            return "date"
        case list() | set() | frozenset():
            return "array"
        case dict():
            return "map"
        case _:
            return "row" if fields_of(value) else "other"


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a tuple, a row, a named tuple or a dataclass by name; empty for anything else."""
    if isinstance(value, Row):
        names = list(value._names or [f"f{number}" for number in range(len(value))])
        return dict(zip(names, value, strict=True))
    if isinstance(value, tuple):
        names = list(getattr(value, "_fields", [f"f{number}" for number in range(len(value))]))
        return dict(zip(names, value, strict=True))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    return {}


# ------------------------------------------------------------------------------------------------------------- values


def fitted(value: Any, column: DataType) -> Any:
    """Return a value in the form in which a column of the type takes it.

    Raises:
        ValueError: The value does not fit.
    """
    if value is None:
        return None
    match column:
        case dt.VarCharType() | dt.CharType():
            return value if isinstance(value, str) else repr(value)
        case dt.ArrayType() if isinstance(value, list | tuple | set | frozenset):
            return [fitted(each, column.element_type) for each in value]
        case dt.MapType() if isinstance(value, Mapping):
            return {fitted(k, column.key_type): fitted(v, column.value_type) for k, v in value.items()}
        case dt.RowType():
            fields = fields_of(value)
            if len(fields) == len(column.field_names()):
                types = column.field_types()
                return tuple(fitted(each, t) for each, t in zip(fields.values(), types, strict=True))
        case dt.BooleanType() if isinstance(value, bool):
            return value
        case dt.IntegralType() if isinstance(value, int) and not isinstance(value, bool):
            return value
        case dt.FloatType() | dt.DoubleType() if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case dt.VarBinaryType() | dt.BinaryType() if isinstance(value, bytes | bytearray):
            return bytes(value)
        case dt.DecimalType() if isinstance(value, int | decimal.Decimal):
            return decimal.Decimal(value)
        case dt.LocalZonedTimestampType() if isinstance(value, Instant):
            return value
        case dt.TimestampType() if isinstance(value, datetime.datetime):
            return value
        case dt.DateType() if isinstance(value, datetime.date):
            return value
    raise ValueError(f"{value!r} does not fit {column}")
