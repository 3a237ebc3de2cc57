"""Bucket assigners: choose the directory below a file sink's base path for each record."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ekorn.errors import ConfigurationError

__all__ = ["BucketAssigner", "BucketContext"]


class BucketContext:
    """The times that an assigner receives with the record."""

    __slots__ = ("_processing_time_ms", "_timestamp")

    def __init__(self, processing_time_ms: int = 0, timestamp: int | None = None) -> None:
        self._processing_time_ms = processing_time_ms
        self._timestamp = timestamp

    def current_processing_time(self) -> int:
        """Return the wall clock, in milliseconds."""
        return self._processing_time_ms

    def timestamp(self) -> int | None:
        """Return the record's event timestamp, or None."""
        return self._timestamp


class BucketAssigner(ABC):
    """Names the bucket of each record: the directory, below the sink's base path, of the files that hold the record.

    Extend this class to choose buckets by the content of the records.
    """

    by_clock = False
    """Whether a bucket depends on the clock alone. Then all rows of a batch of columns have one bucket."""

    @abstractmethod
    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """Return the bucket of a record: a relative path, or an empty string for the base path itself."""

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        """Write all files to the base path."""
        return _BasePathAssigner()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Write to one bucket per hour, per day or per other unit of the pattern, by the clock at the time of writing.

        >>> assigner = BucketAssigner.date_time_bucket_assigner("yyyy/MM/dd", "UTC")
        >>> assigner.get_bucket_id("any record", BucketContext(processing_time_ms=0))
        '1970/01/01'

        Args:
            format_str: The pattern, with Java's letters: yyyy yy MM MMM MMMM dd DDD HH hh kk KK mm ss SSS a E EEEE Z,
                and text in single quotes.
            timezone_id: A time zone such as "Europe/Berlin", "UTC" or "GMT-08:00"; None for the machine's time zone.
        """
        return _DateTimeAssigner(format_str, timezone_id)


class _BasePathAssigner(BucketAssigner):
    by_clock = True

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        return ""

    def __repr__(self) -> str:
        return "BucketAssigner.base_path_bucket_assigner()"


class _DateTimeAssigner(BucketAssigner):
    by_clock = True

    def __init__(self, pattern: str, timezone_id: str | None) -> None:
        if not isinstance(pattern, str) or not pattern:
            raise ConfigurationError(
                f"date_time_bucket_assigner() takes a pattern such as 'yyyy-MM-dd', got {pattern!r}"
            )
        self._pattern = pattern
        self._zone = None if timezone_id is None else _zone(timezone_id)
        self._parts = _parse(pattern)
        self._step_ms = 1 if any(not isinstance(p, str) and p[0] == "S" for p in self._parts) else 1000
        self._known: tuple[int, str] = (-1, "")  # cached, because records come faster than the text changes

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:  # hot
        step = context._processing_time_ms // self._step_ms
        if step != self._known[0]:
            self._known = (step, self._format(step * self._step_ms))
        return self._known[1]

    def _format(self, now_ms: int) -> str:
        moment = datetime.fromtimestamp(now_ms // 1000, self._zone or UTC)
        if self._zone is None:
            moment = moment.astimezone()
        moment += timedelta(milliseconds=now_ms % 1000)
        return "".join(p if isinstance(p, str) else _LETTERS[p[0]](moment, p[1]) for p in self._parts)

    def __repr__(self) -> str:
        return f"BucketAssigner.date_time_bucket_assigner({self._pattern!r}, {self._zone})"


def _year(moment: datetime, width: int) -> str:
    return f"{moment.year % 100:02d}" if width == 2 else f"{moment.year:0{width}d}"


def _number(value: Callable[[datetime], int]) -> Callable[[datetime, int], str]:
    return lambda moment, width: f"{value(moment):0{width}d}"


# The names of months and days are English. Java uses the language of the machine.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _month(moment: datetime, width: int) -> str:
    name = _MONTHS[moment.month - 1]
    return f"{moment.month:0{width}d}" if width < 3 else name[:3] if width == 3 else name


def _day_of_week(moment: datetime, width: int) -> str:
    name = _DAYS[moment.weekday()]
    return name[:3] if width < 4 else name


# Letters of Java's DateTimeFormatter, each with a function of the moment and of the number of repetitions.
_LETTERS: dict[str, Callable[[datetime, int], str]] = {
    "y": _year,
    "u": _year,
    "M": _month,
    "L": _month,
    "d": _number(lambda m: m.day),
    "D": _number(lambda m: m.timetuple().tm_yday),
    "E": _day_of_week,
    "a": lambda m, _: "AM" if m.hour < 12 else "PM",
    "H": _number(lambda m: m.hour),
    "k": _number(lambda m: m.hour or 24),
    "K": _number(lambda m: m.hour % 12),
    "h": _number(lambda m: m.hour % 12 or 12),
    "m": _number(lambda m: m.minute),
    "s": _number(lambda m: m.second),
    "S": lambda m, width: f"{m.microsecond * 1000:09d}"[:width],
    "Z": lambda m, _: m.strftime("%z")[:5],
}
_MOST = {"M": 4, "L": 4, "d": 2, "D": 3, "E": 4, "a": 1, "H": 2, "k": 2, "K": 2, "h": 2, "m": 2, "s": 2, "S": 9, "Z": 3}
_PIECES = re.compile(r"'(?:[^']|'')*'|([A-Za-z])\1*|[^A-Za-z']+|'")


def _parse(pattern: str) -> list[str | tuple[str, int]]:
    """Return the parts of a pattern: plain texts, and pairs of a letter and its number of repetitions."""
    parts: list[str | tuple[str, int]] = []
    for match in _PIECES.finditer(pattern):
        piece, letter = match[0], match[1]
        if piece == "'":
            raise _bad(pattern, "it has an unclosed quote")
        if piece == "''":
            parts.append("'")
        elif piece[0] == "'":
            parts.append(piece[1:-1].replace("''", "'"))
        elif letter is None:
            if reserved := set(piece) & set("[]{}#"):
                raise _bad(pattern, f"{min(reserved)!r} is reserved in Java's patterns; quote it")
            parts.append(piece)
        elif letter not in _LETTERS:
            raise _bad(
                pattern, f"the letter {letter!r} is not among {' '.join(_LETTERS)}; quote text with single quotes"
            )
        elif len(piece) > _MOST.get(letter, 9):
            raise _bad(pattern, f"there are too many {letter!r} in a row")
        else:
            parts.append((letter, len(piece)))
    return parts


def _bad(pattern: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"cannot use the pattern {pattern!r} for buckets: {why}")


_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d\d?)(?::?(\d\d))?")


def _zone(timezone_id: str) -> tzinfo:
    """Return the time zone that a name of Java's stands for."""
    if isinstance(timezone_id, str):
        if timezone_id in ("Z", "UTC", "GMT", "UT"):
            return UTC
        if offset := _OFFSET.fullmatch(timezone_id):
            sign, hours, minutes = offset.groups(default="0")
            if int(hours) <= 18 and int(minutes) < 60:
                delta = timedelta(hours=int(hours), minutes=int(minutes))
                return timezone(-delta if sign == "-" else delta)
        try:
            return ZoneInfo(timezone_id)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass  # not the name of a zone: refused below
    raise ConfigurationError(
        f"there is no time zone {timezone_id!r}; give a name such as 'Europe/Berlin' or an offset such as 'GMT-08:00'"
    )
