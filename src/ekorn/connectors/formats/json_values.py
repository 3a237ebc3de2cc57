"""JSON values and typed values, by data type."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from json.encoder import encode_basestring as _quoted
from typing import Any

from ekorn.connectors.formats.text_values import TimestampFormat, text_parser, text_writer
from ekorn.types import data_types as dt
from ekorn.types.data_type import DataType
from ekorn.types.data_type_info import AnyDecimalType, AnyIntegerType
from ekorn.types.row import Row, make_row

__all__ = ["JsonReader", "JsonWriter"]

Read = Callable[[Any], Any]
Write = Callable[[Any], str]


class JsonReader:
    """Makes converters from JSON values to typed values.

    Args:
        fail_on_missing_field: Whether an absent field is an error; otherwise it becomes None.
        lenient: Whether a field that cannot be read becomes None.
        timestamps: The standard for the text of timestamps.
    """

    def __init__(self, *, fail_on_missing_field: bool, lenient: bool, timestamps: TimestampFormat) -> None:
        self._fail_on_missing_field = fail_on_missing_field
        self._lenient = lenient
        self._timestamps = timestamps

    def of(self, data_type: DataType) -> Read:
        """Return the converter of a data type. It raises a ValueError for a value that does not fit."""
        read = self._of(data_type)
        return lambda value: None if value is None else read(value)

    def _of(self, data_type: DataType) -> Read:
        match data_type:
            case dt.RowType():
                return self._row(data_type)
            case dt.ArrayType():
                return self._array(self.of(data_type.element_type))
            case dt.MapType():
                return self._map(data_type.key_type, self.of(data_type.value_type))
            case dt.MultisetType():
                return self._map(data_type.element_type, self.of(dt.DataTypes.INT()))
            case dt.CharType() | dt.VarCharType():
                return lambda value: value if type(value) is str else text_of(value)
            case dt.BooleanType():
                return _boolean(text_parser(data_type))
            case dt.IntegralType() | AnyIntegerType():
                return _number(int, text_parser(data_type))
            case dt.DoubleType() | dt.FloatType() | dt.DecimalType() | AnyDecimalType():
                return _number(None, text_parser(data_type))
            case dt.TimestampType() | dt.TimeType():
                return _zoned_text(text_parser(data_type, self._timestamps))
            case dt.NullType():
                return lambda value: None
        return _text(text_parser(data_type, self._timestamps))

    def _row(self, row_type: dt.RowType) -> Read:
        fields = [(field.name, self.of(field.data_type)) for field in row_type]
        names = row_type.field_names()

        def read(value: Any) -> Row:
            if type(value) is not dict:
                raise ValueError(f"expected an object, found {_shown(value)}")
            values = []
            for name, read_field in fields:  # hot
                if name in value:
                    try:
                        values.append(read_field(value[name]))
                    except ValueError as error:
                        if not self._lenient:
                            raise ValueError(f"field {name!r}: {error}") from None
                        values.append(None)
                elif self._fail_on_missing_field:
                    raise ValueError(f"there is no field {name!r}")
                else:
                    values.append(None)
            return make_row(values, names)

        return read

    @staticmethod
    def _array(read: Read) -> Read:
        def read_all(value: Any) -> list[Any]:
            if type(value) is not list:
                raise ValueError(f"expected an array, found {_shown(value)}")
            return [read(each) for each in value]

        return read_all

    def _map(self, key_type: DataType, read: Read) -> Read:
        read_key = text_parser(key_type, self._timestamps)

        def read_all(value: Any) -> dict[Any, Any]:
            if type(value) is not dict:
                raise ValueError(f"expected an object, found {_shown(value)}")
            return {read_key(key): read(each) for key, each in value.items()}

        return read_all


def _boolean(parse: Callable[[str], bool]) -> Read:
    def read(value: Any) -> bool:
        return value if type(value) is bool else parse(_as_text(value))

    return read


def _number(kind: type | None, parse: Callable[[str], Any]) -> Read:
    def read(value: Any) -> Any:
        if type(value) is bool or not isinstance(value, str | int | float | Decimal):
            raise ValueError(f"expected a number, found {_shown(value)}")
        if kind is int and isinstance(value, float | Decimal):
            # Flink: the JVM's conversion drops the fraction of a number that fits.
            raise ValueError(f"expected a whole number, found {value}")
        return parse(value if type(value) is str else str(value))

    return read


def _text(parse: Callable[[str], Any]) -> Read:
    return lambda value: parse(_as_text(value))


def _zoned_text(parse: Callable[[str], Any]) -> Read:
    """Read times with or without the Z of RFC 3339; other zones are refused."""
    return lambda value: parse(_as_text(value).strip().removesuffix("Z"))


def _as_text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"expected text, found {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    text = text_of(value)
    return text if len(text) <= 60 else text[:57] + "..."


def text_of(value: Any) -> str:
    """Return the compact JSON text of a value that was read from JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=float)


# -------------------------------------------------------------------------------------------------------------- writing


class JsonWriter:
    """Makes converters from typed values to JSON text. Numbers have the digits that the JVM writes."""

    def __init__(self, timestamps: TimestampFormat) -> None:
        self._timestamps = timestamps

    def of(self, data_type: DataType) -> Write:
        """Return the converter of a data type. It raises a ValueError for a value that JSON cannot represent.

        Raises:
            ConfigurationError: JSON cannot represent the type.
        """
        write = self._of(data_type)
        return lambda value: "null" if value is None else write(value)

    def _of(self, data_type: DataType) -> Write:
        match data_type:
            case dt.RowType():
                return self._row(data_type)
            case dt.ArrayType():
                write = self.of(data_type.element_type)
                return lambda value: f"[{','.join(map(write, value))}]"
            case dt.MapType() | dt.MultisetType():
                return self._map(data_type)
            case dt.CharType() | dt.VarCharType():
                return _quoted
            case dt.BooleanType():
                return lambda value: "true" if value else "false"
            case dt.FloatType() | dt.DoubleType():
                return _finite(text_writer(data_type))
            case dt.NumericType():
                return text_writer(data_type)
            case dt.TimeType() | dt.TimestampType():
                to_text = text_writer(data_type, self._timestamps)
                # Flink: JSON has the times of RFC 3339, which are in UTC.
                end = "Z" if self._timestamps is TimestampFormat.ISO_8601 else ""
                return lambda value: f'"{to_text(value)}{end}"'
        other = text_writer(data_type, self._timestamps)
        return lambda value: f'"{other(value)}"'

    def _row(self, row_type: dt.RowType) -> Write:
        names = row_type.field_names()
        fields = [(f"{_quoted(field.name)}:", self.of(field.data_type)) for field in row_type]

        def write(value: Any) -> str:
            values = value.get_fields_by_names(names) if isinstance(value, Row) else value
            if len(values) != len(fields):
                raise ValueError(f"expected {len(fields)} fields, found {len(values)}")
            parts = []
            for (start, write_field), each in zip(fields, values, strict=True):  # hot
                try:
                    parts.append(start + write_field(each))
                except (AttributeError, TypeError, ValueError) as error:
                    raise ValueError(f"field {start[:-1]}: {error}") from None
            return f"{{{','.join(parts)}}}"

        return write

    def _map(self, data_type: dt.MapType | dt.MultisetType) -> Write:
        if isinstance(data_type, dt.MapType):
            write_key, write = text_writer(data_type.key_type, self._timestamps), self.of(data_type.value_type)
        else:
            write_key, write = text_writer(data_type.element_type, self._timestamps), str
        return lambda value: f"{{{','.join(f'{_quoted(write_key(k))}:{write(v)}' for k, v in value.items())}}}"


def _finite(to_text: Write) -> Write:
    def write(value: Any) -> str:
        if not math.isfinite(value):
            raise ValueError(f"JSON cannot represent {value}")
        return to_text(value)

    return write
