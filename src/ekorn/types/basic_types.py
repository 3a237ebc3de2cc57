"""Types of single values: numbers, text, dates, and anything pickled."""

from __future__ import annotations

import datetime
import math
import struct
from array import array
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from operator import attrgetter
from typing import Any

from ekorn.errors import preview
from ekorn.types.java_text import double_text, float_text, instant_text, timestamp_text
from ekorn.types.time import Instant
from ekorn.types.type_information import Column, Misfit, TypeInformation, all_are, fit_nullable

__all__ = [
    "BasicTypeInfo",
    "BigDecimalTypeInfo",
    "BigIntegerTypeInfo",
    "BooleanTypeInfo",
    "DateTypeInfo",
    "DoubleTypeInfo",
    "FloatTypeInfo",
    "InstantTypeInfo",
    "IntegerTypeInfo",
    "PickledBytesTypeInfo",
    "StringTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
]

_INSTANT_OR_NONE = {Instant, type(None)}


class BasicTypeInfo(TypeInformation):
    """A type whose values are single and immutable."""

    # Flink: a whole record may be None if the JVM can write a null of the type; a field of a tuple may not be None.
    _none_alone = False

    def __init__(self, name: str) -> None:
        self._name = name

    def _fit_alone(self, column: Column) -> Column:
        return fit_nullable(self, column) if self._none_alone else self._fit(column)

    def is_immutable(self) -> bool:
        return True

    def _identity(self) -> tuple[Any, ...]:
        return (self._name,)

    def __repr__(self) -> str:
        return self._name

    def _refuse(self, value: Any) -> Misfit:
        return Misfit(f"expected {self}, found {preview(value, 80)} ({type(value).__name__})")


class StringTypeInfo(BasicTypeInfo):
    """Text: ``STRING`` and ``CHAR``."""

    _none_alone = True

    def _fit(self, column: Column) -> Column:
        if all_are(str, column):
            return column
        return [self._one(value) for value in column]

    def _one(self, value: Any) -> str:
        if isinstance(value, str):
            return str.__str__(value)  # the text of a str subclass, not the result of its own __str__
        raise self._refuse(value)

    def _narrow(self, value: Any) -> str:
        if value is None:
            raise self._refuse(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        return self._one(value) if isinstance(value, str) else str(value)


class IntegerTypeInfo(BasicTypeInfo):
    """Integers of a fixed number of bits: ``BYTE``, ``SHORT``, ``INT`` and ``LONG``."""

    def __init__(self, name: str, bits: int) -> None:
        super().__init__(name)
        self._bits = bits
        self._code = {8: "b", 16: "h", 32: "i", 64: "q"}[bits]
        self._low = -(1 << bits - 1)
        self._high = (1 << bits - 1) - 1

    @property
    def lowest(self) -> int:
        """The smallest value."""
        return self._low

    @property
    def highest(self) -> int:
        """The largest value."""
        return self._high

    def _fit(self, column: Column) -> Column:
        if not all_are(int, column):
            # Flink: the Python worker takes every value that converts to an integer, except text, and drops the
            # fraction: 2.7 for an INT arrives as 2.
            column = [self._as_int(value) for value in column]
        try:
            struct.pack(f"{len(column)}{self._code}", *column)  # one pass checks both bounds; min and max take two
        except struct.error:
            bad = next(value for value in column if not self._low <= value <= self._high)
            raise Misfit(f"{bad} is outside the range of {self}, {self._low} to {self._high}") from None
        return column

    def _as_int(self, value: Any) -> int:
        if hasattr(type(value), "__int__") or hasattr(type(value), "__index__"):
            try:
                return int(value)
            except (TypeError, ValueError, ArithmeticError):
                pass  # NaN, an infinity or an array: refused below like any other value
        raise self._refuse(value)

    def _narrow(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._refuse(value)
        if not -(1 << 63) <= value < 1 << 63:
            raise Misfit(f"{value} does not fit 64 bits")
        return ((value - self._low) & ((1 << self._bits) - 1)) + self._low


class BigIntegerTypeInfo(IntegerTypeInfo):
    """Integers of any size: ``BIG_INT``."""

    def __init__(self) -> None:
        super().__init__("BigInteger", 64)

    def _fit(self, column: Column) -> Column:
        if all_are(int, column):
            return column
        return [self._as_int(value) for value in column]

    def _narrow(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._refuse(value)
        return value


class BooleanTypeInfo(BasicTypeInfo):
    """True or false: ``BOOLEAN``."""

    def __init__(self) -> None:
        super().__init__("Boolean")

    def _fit(self, column: Column) -> Column:
        if all_are(bool, column):
            return column
        return [self._one(value) for value in column]

    def _one(self, value: Any) -> bool:
        # Flink: the Python worker stores one unsigned byte, so numbers from 0 to 255 pass and others fail the job.
        try:
            if hasattr(type(value), "__int__") and 0 <= int(value) <= 255:
                return bool(int(value))
        except (TypeError, ValueError, ArithmeticError):
            pass  # NaN, an infinity or an array: refused below like any other value
        raise self._refuse(value)

    def _narrow(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self._refuse(value)
        return value

    def file_text(self, value: Any) -> str:
        return "null" if value is None else "true" if value else "false"


class DoubleTypeInfo(BasicTypeInfo):
    """64-bit floating point: ``DOUBLE``."""

    def __init__(self, name: str = "Double") -> None:
        super().__init__(name)

    def _fit(self, column: Column) -> Column:
        if all_are(float, column):
            return column
        return [self._as_float(value) for value in column]

    def _narrow(self, value: Any) -> float:
        # Flink: a typed collection refuses integers here, while a function may return them.
        if isinstance(value, int):
            raise Misfit(f"expected {self}, found {value!r} ({type(value).__name__}); write {float(value)!r}")
        return float(self._fit([value])[0])

    def _as_float(self, value: Any) -> float:
        if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
            try:
                return float(value)
            except (TypeError, ValueError, ArithmeticError):
                pass  # an integer beyond the largest double, or an array
        raise self._refuse(value)

    def file_text(self, value: Any) -> str:
        return "null" if value is None else double_text(float(value))


class FloatTypeInfo(DoubleTypeInfo):
    """32-bit floating point: ``FLOAT``. Values are rounded to 32 bits and kept as Python floats."""

    def collected(self, value: Any) -> Any:
        # Flink: collecting converts the number to text and back, so 1.1 stays 1.1 and is not 1.100000023841858.
        return float(float_text(value)) if isinstance(value, float) and math.isfinite(value) else value

    def __init__(self) -> None:
        super().__init__("Float")

    def _fit(self, column: Column) -> Column:
        exact = super()._fit(column)
        rounded = array("f", exact).tolist()
        return column if rounded == list(column) and exact is column else rounded

    def file_text(self, value: Any) -> str:
        return "null" if value is None else float_text(float(value))


class BigDecimalTypeInfo(BasicTypeInfo):
    """Decimal numbers of any precision: ``BIG_DEC``."""

    _none_alone = True

    def __init__(self) -> None:
        super().__init__("BigDecimal")

    def _fit(self, column: Column) -> Column:
        if not all_are(Decimal, column):
            column = [self._one(value) for value in column]
        if not all(map(Decimal.is_finite, column)):
            raise Misfit("a BigDecimal must be finite")
        return column

    def _one(self, value: Any) -> Decimal:
        if type(value) is Decimal:
            return value
        try:
            return Decimal(str(value))  # Flink: numbers are converted through their text, so 0.1 stays 0.1
        except InvalidOperation:
            raise self._refuse(value) from None


class InstantTypeInfo(BasicTypeInfo):
    """A point in time: ``INSTANT``. Flink: the one basic type whose values may be None."""

    def __init__(self) -> None:
        super().__init__("Instant")

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Instant | None) -> int | None:
        """Return the microseconds since the epoch."""
        return None if obj is None else obj.seconds * 1_000_000 + obj.nanos // 1000

    def from_internal_type(self, obj: int | None) -> Instant | None:
        """Return the point that many microseconds after the epoch."""
        return None if obj is None else Instant(obj // 1_000_000, obj % 1_000_000 * 1000)

    def _fit(self, column: Column) -> Column:
        if set(map(type, column)) <= _INSTANT_OR_NONE:
            return column
        raise self._refuse(next(value for value in column if type(value) not in _INSTANT_OR_NONE))

    def _narrow(self, value: Any) -> Instant:
        if not isinstance(value, Instant):
            raise self._refuse(value)
        return Instant.of_epoch_milli(value.to_epoch_milli())

    def file_text(self, value: Any) -> str:
        return "null" if value is None else instant_text(value)


class DateTypeInfo(BasicTypeInfo):
    """A day: ``SQL_DATE``."""

    _none_alone = True

    _EPOCH = datetime.date(1970, 1, 1).toordinal()

    def __init__(self) -> None:
        super().__init__("DateTypeInfo")

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: datetime.date | None) -> int | None:
        """Return the days since the epoch."""
        return None if obj is None else obj.toordinal() - self._EPOCH

    def from_internal_type(self, obj: int | None) -> datetime.date | None:
        """Return the day that many days after the epoch."""
        return None if obj is None else datetime.date.fromordinal(obj + self._EPOCH)

    def _fit(self, column: Column) -> Column:
        if all_are(datetime.date, column):
            return column
        return [self._one(value) for value in column]

    def _one(self, value: Any) -> datetime.date:
        if isinstance(value, datetime.date):  # also a datetime, whose time of day is dropped
            return datetime.date(value.year, value.month, value.day)
        raise self._refuse(value)


class TimeTypeInfo(BasicTypeInfo):
    """A time of day, to the millisecond: ``SQL_TIME``."""

    _none_alone = True

    def __init__(self) -> None:
        super().__init__("TimeTypeInfo")

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: datetime.time | None) -> int | None:
        """Return the microseconds since midnight."""
        if obj is None:
            return None
        return ((obj.hour * 60 + obj.minute) * 60 + obj.second) * 1_000_000 + obj.microsecond

    def from_internal_type(self, obj: int | None) -> datetime.time | None:
        """Return the time that many microseconds after midnight."""
        if obj is None:
            return None
        seconds, microsecond = divmod(obj, 1_000_000)
        minutes, second = divmod(seconds, 60)
        return datetime.time(minutes // 60, minutes % 60, second, microsecond)

    def _fit(self, column: Column) -> Column:
        if all_are(datetime.time, column) and _to_the_millisecond(column):
            return column
        return [self._one(value) for value in column]

    def _one(self, value: Any) -> datetime.time:
        if isinstance(value, datetime.time | datetime.datetime):
            return datetime.time(value.hour, value.minute, value.second, value.microsecond // 1000 * 1000)
        raise self._refuse(value)

    def file_text(self, value: Any) -> str:
        return "null" if value is None else f"{value:%H:%M:%S}"


class TimestampTypeInfo(BasicTypeInfo):
    """A date and time without a zone, to the millisecond: ``SQL_TIMESTAMP``."""

    _EPOCH = datetime.datetime(1970, 1, 1)

    def __init__(self) -> None:
        super().__init__("TimestampTypeInfo")

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: datetime.datetime | None) -> int | None:
        """Return the microseconds since the epoch; a time zone is ignored."""
        if obj is None:
            return None
        return (obj.replace(tzinfo=None) - self._EPOCH) // datetime.timedelta(microseconds=1)

    def from_internal_type(self, obj: int | None) -> datetime.datetime | None:
        """Return the date and time that many microseconds after the epoch."""
        return None if obj is None else self._EPOCH + datetime.timedelta(microseconds=obj)

    def _fit(self, column: Column) -> Column:
        if all_are(datetime.datetime, column) and _to_the_millisecond(column):
            return column
        return [self._one(value) for value in column]

    def _one(self, value: Any) -> datetime.datetime:
        if isinstance(value, datetime.datetime):
            millis = value.microsecond // 1000
            return datetime.datetime(
                value.year, value.month, value.day, value.hour, value.minute, value.second, millis * 1000
            )
        raise self._refuse(value)

    def file_text(self, value: Any) -> str:
        return "null" if value is None else timestamp_text(value)


_microsecond: Callable[[Any], int] = attrgetter("microsecond")
_tzinfo: Callable[[Any], Any] = attrgetter("tzinfo")


def _to_the_millisecond(column: Column) -> bool:
    # Flink: time zones and everything below a millisecond are dropped when a value leaves the Python worker.
    return not any(map(_tzinfo, column)) and not any(micros % 1000 for micros in map(_microsecond, column))


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object: ``PICKLED_BYTE_ARRAY``, the type of a stream without a declared type."""

    def _narrow(self, value: Any) -> Any:
        return value

    def file_text(self, value: Any) -> str:
        return str(value)

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"
