"""Lengths of time and points in time, under PyFlink's names.

`Duration` and `Time` are both lengths: Flink's newer and older class for the same thing. The API takes either class,
a `datetime.timedelta`, or a number of milliseconds as a length; `millis_of` converts them all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from functools import total_ordering
from typing import Any

from ekorn.types.published import publish

__all__ = ["Duration", "Instant", "Time", "TimeUnit", "length_of", "millis_of"]

_NANOS_PER_SECOND = 1_000_000_000
_NANOS_PER_MILLI = 1_000_000


@total_ordering
class Duration:
    """A length of time, exact to the nanosecond.

    >>> Duration.of_seconds(5).to_millis()
    5000
    """

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int = 0) -> None:
        self._nanos = _whole(nanos, "nanos")

    @staticmethod
    def of_days(days: int) -> Duration:
        """Create a length of that many days of 24 hours."""
        return Duration.of_hours(_whole(days, "days") * 24)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Create a length of that many hours."""
        return Duration.of_minutes(_whole(hours, "hours") * 60)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Create a length of that many minutes."""
        return Duration.of_seconds(_whole(minutes, "minutes") * 60)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """Create a length of that many seconds."""
        return Duration(_whole(seconds, "seconds") * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Create a length of that many milliseconds."""
        return Duration(_whole(millis, "millis") * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Create a length of that many nanoseconds."""
        return Duration(nanos)

    def to_millis(self) -> int:
        """Return the length in whole milliseconds, rounded down."""
        return self._nanos // _NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """Return the length in nanoseconds."""
        return self._nanos

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Duration):
            return NotImplemented
        return self._nanos == other._nanos

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Duration):
            return NotImplemented
        return self._nanos < other._nanos

    def __hash__(self) -> int:
        return hash((Duration, self._nanos))

    def __reduce__(self) -> tuple[Any, ...]:
        return Duration, (self._nanos,)

    def __repr__(self) -> str:
        """Return the length in ISO-8601, as Java prints it: ``PT1M30S``.

        >>> Duration.of_minutes(90), Duration.of_millis(1500), Duration.of_millis(0)
        (PT1H30M, PT1.5S, PT0S)
        """
        sign, rest = ("-", -self._nanos) if self._nanos < 0 else ("", self._nanos)
        seconds, nanos = divmod(rest, _NANOS_PER_SECOND)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        text = f"{sign}{hours}H" if hours else ""
        text += f"{sign}{minutes}M" if minutes else ""
        if seconds or nanos or not text:
            fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
            text += f"{sign}{seconds}{fraction}S"
        return "PT" + text


class TimeUnit(Enum):
    """A unit for `Time.of`: the member's value is its length in milliseconds."""

    MILLISECONDS = 1
    SECONDS = 1_000
    MINUTES = 60_000
    HOURS = 3_600_000
    DAYS = 86_400_000


@total_ordering
class Time:
    """A length of time in milliseconds: the older of Flink's two classes, and the one that windows take.

    >>> str(Time.seconds(3))
    '3000 ms'
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = _whole(milliseconds, "milliseconds")

    def to_milliseconds(self) -> int:
        """Return the length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def of(size: int, unit: TimeUnit | str) -> Time:
        """Create a length of that many units. A unit may be given by its name.

        >>> Time.of(10, TimeUnit.SECONDS) == Time.of(10, "SECONDS")
        True
        """
        if isinstance(unit, str) and unit in TimeUnit.__members__:
            unit = TimeUnit[unit]
        if not isinstance(unit, TimeUnit):
            raise TypeError(
                f"Time.of() takes a number and a TimeUnit, one of {', '.join(TimeUnit.__members__)}, or its name; "
                f"got {unit!r}"
            )
        return Time(_whole(size, unit.name.lower()) * unit.value)

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Create a length of that many milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Create a length of that many seconds."""
        return Time(_whole(seconds, "seconds") * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Create a length of that many minutes."""
        return Time.seconds(_whole(minutes, "minutes") * 60)

    @staticmethod
    def hours(hours: int) -> Time:
        """Create a length of that many hours."""
        return Time.minutes(_whole(hours, "hours") * 60)

    @staticmethod
    def days(days: int) -> Time:
        """Create a length of that many days of 24 hours."""
        return Time.hours(_whole(days, "days") * 24)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Time):
            return NotImplemented
        return self._milliseconds == other._milliseconds

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Time):
            return NotImplemented
        return self._milliseconds < other._milliseconds

    def __hash__(self) -> int:
        return hash((Time, self._milliseconds))

    def __reduce__(self) -> tuple[Any, ...]:
        return Time, (self._milliseconds,)

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    def __repr__(self) -> str:
        return f"Time.milliseconds({self._milliseconds})"


@dataclass(frozen=True, slots=True, order=True, repr=False)
class Instant:
    """A point on the time line, as seconds since the epoch and nanoseconds into that second.

    >>> Instant.of_epoch_milli(1500)
    Instant<1, 500000000>
    """

    seconds: int
    nanos: int

    def to_epoch_milli(self) -> int:
        """Return the milliseconds since the epoch, rounded down."""
        # Flink: PyFlink divides wrongly before the epoch (-1 ms comes back as -901 ms); Java rounds down, as here.
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Return the point in time that many milliseconds after the epoch."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


def millis_of(value: Duration | Time | timedelta | int) -> int:
    """Return a length of time in whole milliseconds.

    >>> millis_of(Time.seconds(1)), millis_of(timedelta(seconds=2)), millis_of(3)
    (1000, 2000, 3)

    Raises:
        TypeError: ``value`` is not a length of time.
    """
    if isinstance(value, Duration):
        return value.to_millis()
    if isinstance(value, Time):
        return value.to_milliseconds()
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(
        f"cannot read {value!r} as a length of time; give a Duration, a Time, a datetime.timedelta "
        "or a number of milliseconds"
    )


def length_of(given: Duration | Time | timedelta, call: str) -> int:
    """Return a length of time in whole milliseconds; refuse a plain number, whose unit a reader would have to guess.

    Raises:
        TypeError: ``given`` is not a length of time; the message names the call.
    """
    if isinstance(given, int):
        raise TypeError(
            f"{call} takes a Time or a Duration, got {given!r}: write Time.milliseconds({given!r}), or seconds"
        )
    return millis_of(given)


def _whole(value: Any, unit: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a length in {unit} must be an int, not {value!r}")
    return value


publish("ekorn.common.time", Duration, Time, Instant)
