"""Runs in Spark's Python processes: converts the values of Spark's rows to those that a program uses."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_types import RowType
from ekorn.types.row import Row, make_row
from ekorn.types.time import Instant

__all__ = ["PlainValues", "as_key"]

Convert = Callable[[Any], Any]
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class PlainValues:
    """Gives the values of a row by the names of their columns.

    Rows are rows of Ekorn, arrays are lists, binary is bytes, and a timestamp is an `Instant`.
    """

    def __init__(self, row_type: RowType) -> None:
        conversions = ((field.name, _conversion(field.data_type)) for field in row_type)
        self._conversions = [(name, convert) for name, convert in conversions if convert is not None]

    def __call__(self, row: Any) -> dict[str, Any]:
        """Return the values of a row of Spark."""
        values = dict(zip(row.__fields__, row, strict=True))
        for name, convert in self._conversions:
            if values[name] is not None:
                values[name] = convert(values[name])
        return values


def as_key(value: Any) -> Any:
    """Return a value as a key of a stream: structs are tuples, also inside of others."""
    if isinstance(value, Row):
        return tuple(as_key(field) for field in value)
    return [as_key(each) for each in value] if isinstance(value, list) else value


def _conversion(data_type: DataType) -> Convert | None:
    """Return the conversion of values that are not None; None for values that stay as they are."""
    match data_type:
        case dt.BinaryType() | dt.VarBinaryType():
            return bytes
        case dt.LocalZonedTimestampType():
            return _instant
        case dt.ArrayType():
            element = _nullable(_conversion(data_type.element_type))
            return list if element is None else lambda values: [element(value) for value in values]
        case dt.MapType():
            key, value = _nullable(_conversion(data_type.key_type)), _nullable(_conversion(data_type.value_type))
            of_key, of_value = key or _itself, value or _itself
            return lambda entries: {of_key(k): of_value(v) for k, v in entries.items()}
        case dt.RowType():
            names = data_type.field_names()
            fields = [_nullable(_conversion(each)) or _itself for each in data_type.field_types()]
            return lambda row: make_row([field(value) for field, value in zip(fields, row, strict=True)], names)
        case _:
            return None


def _nullable(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _itself(value: Any) -> Any:
    return value


def _instant(value: datetime.datetime) -> Instant:
    """Return the instant of a timestamp, which Spark gives in the time zone of the process."""
    micros = (value.astimezone(datetime.UTC) - _EPOCH) // datetime.timedelta(microseconds=1)
    return Instant(micros // 1_000_000, micros % 1_000_000 * 1000)
