"""Values as text and back, by data type: the columns of CSV, and dates, times and numbers in JSON.

A parser takes the text of one value and returns the value, or raises a `ValueError` that says what is wrong with the
text. Both standards for timestamps are Flink's: `SQL` (`2020-01-02 03:04:05.123`) and `ISO-8601`
(`2020-01-02T03:04:05.123`).
"""

from __future__ import annotations

import base64
import datetime
import re
import struct
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any

from ekorn.errors import ConfigurationError
from ekorn.types import data_types as dt
from ekorn.types.data_type_info import AnyDecimalType, AnyIntegerType
from ekorn.types.decimals import decimal_of
from ekorn.types.java_text import double_text, float_text
from ekorn.types.time import Instant

__all__ = ["TimestampFormat", "float_of", "instant_from_text", "text_parser", "text_writer", "whole_of"]

Parser = Callable[[str], Any]
Writer = Callable[[Any], str]

_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?\Z", re.ASCII)
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)\Z", re.ASCII)


class TimestampFormat(Enum):
    """The standard for the text of timestamps."""

    SQL = "SQL"
    ISO_8601 = "ISO-8601"

    @property
    def between(self) -> str:
        """The text between the date and the time."""
        return " " if self is TimestampFormat.SQL else "T"


def text_parser(data_type: dt.DataType, timestamps: TimestampFormat = TimestampFormat.SQL) -> Parser:
    """Return the function that reads the text of one value.

    Raises:
        ConfigurationError: Values of the type have no text form.
    """
    match data_type:
        case dt.CharType() | dt.VarCharType():
            return str
        case dt.BooleanType():
            return _boolean
        case dt.IntegralType():
            return _whole_parser(data_type)
        case AnyIntegerType() | dt.YearMonthIntervalType():
            return _whole
        case dt.FloatType():
            return lambda text: float_of(_float(text))
        case dt.DoubleType():
            return _float
        case dt.DecimalType():
            return lambda text: decimal_of(_decimal(text), data_type)
        case AnyDecimalType():
            return _decimal
        case dt.DateType():
            return _date
        case dt.TimeType():
            return _time
        case dt.TimestampType():
            return lambda text: _timestamp(text, timestamps.between)
        case dt.LocalZonedTimestampType():
            return lambda text: instant_from_text(text, timestamps.between)
        case dt.BinaryType() | dt.VarBinaryType():
            return _bytes
    raise ConfigurationError(f"text cannot represent values of the data type {data_type}; use another column type")


def text_writer(data_type: dt.DataType, timestamps: TimestampFormat = TimestampFormat.SQL) -> Writer:
    """Return the function that writes one value as text, as the JVM writes it.

    Raises:
        ConfigurationError: Values of the type have no text form.
    """
    match data_type:
        case dt.CharType() | dt.VarCharType():
            return _plain_text
        case dt.IntegralType():
            return lambda value: str(whole_of(_checked_whole(value), data_type))
        case AnyIntegerType() | dt.YearMonthIntervalType():
            return lambda value: str(_checked_whole(value))
        case dt.BooleanType():
            return lambda value: "true" if value else "false"
        case dt.FloatType():
            return lambda value: float_text(float(value))
        case dt.DoubleType():
            return lambda value: double_text(float(value))
        case dt.DecimalType():
            return lambda value: str(decimal_of(value, data_type))
        case AnyDecimalType():
            return str
        case dt.DateType():
            return lambda value: f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
        case dt.TimeType():
            return _time_text
        case dt.TimestampType():
            return lambda value: _timestamp_text(value, timestamps.between)
        case dt.LocalZonedTimestampType():
            return lambda value: _timestamp_text(_moment(value), timestamps.between) + "Z"
        case dt.BinaryType() | dt.VarBinaryType():
            return lambda value: base64.b64encode(value).decode("ascii")
    raise ConfigurationError(f"text cannot represent values of the data type {data_type}; use another column type")


def _plain_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, found {value!r}")
    return value


# -------------------------------------------------------------------------------------------------------------- numbers


def _checked_whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, found {value!r}")
    return value


def whole_of(value: int, data_type: dt.IntegralType) -> int:
    """Return a whole number that fits a type, or raise a ValueError."""
    limit = 1 << data_type.bits - 1
    if not -limit <= value < limit:
        raise ValueError(f"{value} is outside the range of {data_type}, {-limit} to {limit - 1}")
    return value


def float_of(value: float) -> float:
    """Return a number rounded to 32 bits."""
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _whole_parser(data_type: dt.IntegralType) -> Parser:
    limit = 1 << data_type.bits - 1

    def parse(text: str) -> int:
        value = _whole(text)
        return value if -limit <= value < limit else whole_of(value, data_type)

    return parse


def _whole(text: str) -> int:
    try:
        if "_" not in text:  # excludes Python's own grouping of digits
            return int(text)
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a whole number{_empty_hint(text)}")


def _float(text: str) -> float:
    try:
        if "_" not in text:
            return float(text)
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a number{_empty_hint(text)}")


def _decimal(text: str) -> Decimal:
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite() or "_" in text:
        raise ValueError(f"{text!r} is not a decimal number{_empty_hint(text)}")
    return value


def _boolean(text: str) -> bool:
    word = text.strip().lower()
    if word == "true":
        return True
    if word != "false":
        # Flink: reads every other text as false.
        raise ValueError(f"{text!r} is neither true nor false{_empty_hint(text)}")
    return False


def _empty_hint(text: str) -> str:
    return "; to read an empty column as None, set '' as the null value" if not text else ""


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"{text!r} is not base64: {error}") from None


# ---------------------------------------------------------------------------------------------------------------- times


def _date(text: str) -> datetime.date:
    found = _DATE.match(text.strip())
    try:
        if found is not None:
            return datetime.date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a date such as 2020-01-31")


def _time(text: str) -> datetime.time:
    found = _TIME.match(text.strip())
    try:
        if found is not None:
            micros = int((found[4] or "0").ljust(9, "0")[:6])  # Python's times end at the microsecond
            return datetime.time(int(found[1]), int(found[2]), int(found[3] or 0), micros)
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a time such as 23:59:00.123")


def _timestamp(text: str, between: str) -> datetime.datetime:
    day, found, time = text.strip().partition(between)
    try:
        if found:
            return datetime.datetime.combine(_date(day), _time(time))
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a timestamp such as 2020-01-31{between}23:59:00.123")


def instant_from_text(text: str, between: str) -> Instant:
    """Read a point in time: a timestamp that ends in Z."""
    stripped = text.strip()
    if stripped[-1:] not in ("Z", "z"):
        raise ValueError(f"{text!r} is not a point in time such as 2020-01-31{between}23:59:00.123Z")
    moment = _timestamp(stripped[:-1], between)
    seconds = (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(seconds=1)
    fraction = stripped[:-1].partition(".")[2]
    return Instant(seconds, int(fraction.ljust(9, "0")) if fraction else 0)


def _moment(value: Instant) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)


def _time_text(value: datetime.time) -> str:
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return f"{value:%H:%M:%S}{fraction}"


def _timestamp_text(value: datetime.datetime, between: str) -> str:
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}{between}{value:%H:%M:%S}{fraction}"
