"""What a timestamp assigner may return: milliseconds since 1970, as an int.

A float, a text or None would fail later, in an operator that compares it, or make windows that nobody asked for. It is
refused where it is assigned, with the assigner and the record. Seconds, microseconds and nanoseconds are ints as well;
they put every window into January 1970 or thousands of years ahead, so a hint is given.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import UTC, date, datetime
from numbers import Number
from typing import Any

from ekorn.errors import InvalidTimestampError, preview

__all__ = ["assigner_text", "unit_hint", "whole_ms"]

# As seconds, these numbers are dates from 2001 to 2096; as milliseconds, they are in January and February 1970.
_FIRST_SECONDS, _LAST_SECONDS = 1_000_000_000, 4_000_000_000
_YEAR_MS = 31_556_952_000
_UNITS = [  # of timestamps that are not in milliseconds: name, how many are a second, how to make milliseconds of them
    ("seconds", 1, "int(seconds * 1000)"),
    ("microseconds", 10**6, "microseconds // 1000"),
    ("nanoseconds", 10**9, "nanoseconds // 1_000_000"),
]


def whole_ms(timestamp: Any, record: Any, origin: str) -> int:
    """Return a timestamp that is not an int as an int, if it is a whole number of another class, such as one of NumPy.

    Args:
        timestamp: What the assigner returned.
        record: The record.
        origin: Where it comes from, as `assigner_text` says it.

    Raises:
        InvalidTimestampError: The timestamp is something else.
    """
    if not isinstance(timestamp, bool):
        try:
            return operator.index(timestamp)
        except TypeError:
            pass  # refused below
    raise InvalidTimestampError(
        origin, preview(timestamp, 80), type(timestamp).__name__, preview(record), _advice(timestamp)
    )


def _advice(timestamp: Any) -> str:
    if timestamp is None:
        return "use the second argument of the assigner to keep the timestamp that a record has"
    if isinstance(timestamp, str):
        return "use int(text), or int(datetime.fromisoformat(text).timestamp() * 1000)"
    if isinstance(timestamp, datetime):
        return "use int(moment.timestamp() * 1000)"
    if isinstance(timestamp, date):
        return "use the milliseconds of a moment of that day"
    if isinstance(timestamp, Number) and not isinstance(timestamp, bool):
        return "use int(seconds * 1000), or int(milliseconds)"
    return "use an int"


def unit_hint(timestamp: int, record: Any, origin: str) -> str | None:
    """Return the hint about a timestamp that seems to count another unit than milliseconds; None if it does not."""
    for unit, of_a_second, remedy in _UNITS:
        if _FIRST_SECONDS <= timestamp // of_a_second < _LAST_SECONDS:
            return (
                f"{origin} {timestamp} for record {preview(record)}. As milliseconds this is "
                f"{_date(timestamp / 1000)}; as {unit} it would be {_date(timestamp / of_a_second)}. "
                f"If it counts {unit}, use {remedy}"
            )
    return None


def _date(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a date after the year 9999
        return f"in the year {1970 + int(seconds * 1000 / _YEAR_MS)}"


def assigner_text(assign: Callable[..., Any]) -> str:
    """Return an assigner as messages begin with it: its function or method, with the line on which that begins."""
    function = getattr(assign, "__func__", assign)
    name = getattr(function, "__qualname__", type(function).__qualname__).rpartition("<locals>.")[2]
    code = getattr(function, "__code__", None)
    if code is None:
        return f"the timestamp assigner {name} returned"
    file_name = code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"the timestamp assigner {name} ({file_name}:{code.co_firstlineno}) returned"
