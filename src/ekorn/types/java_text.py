"""Numbers and times as the JVM writes them: the form that programs print and write to files."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal

from ekorn.types.time import Instant

__all__ = ["double_text", "float_text", "instant_text", "timestamp_text"]


def double_text(value: float) -> str:
    """Return the text of a 64-bit number: with decimals between 1e-3 and 1e7, else with an exponent.

    >>> double_text(100.0), double_text(1e10), double_text(float("-inf"))
    ('100.0', '1.0E10', '-Infinity')
    """
    if 1e-3 <= value < 1e7:
        return repr(value)  # Python and Java agree where neither writes an exponent
    return _number_text(value, repr(value))


def float_text(value: float) -> str:
    """Return the text of a 32-bit number, with the fewest digits that read back as the same 32-bit value.

    >>> float_text(1.100000023841858)
    '1.1'
    """
    if not math.isfinite(value):
        return _number_text(value, "")
    for digits in range(8):
        shortest = f"{value:.{digits}e}"
        if _as_float32(float(shortest)) == _as_float32(value):
            return _number_text(value, shortest)
    return _number_text(value, f"{value:.8e}")  # nine digits identify any 32-bit number


def _as_float32(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _number_text(value: float, shortest: str) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if str(value).startswith("-") else "0.0"
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    if len(digits) == 1:
        # Java writes at least two digits, and chooses the two that come closest: 4.9E-324, not 5.0E-324.
        digits, exponent = Decimal(f"{value:.1e}").as_tuple()[1:]
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent  # the position of the decimal point, counted from the first digit
    minus = "-" if sign else ""
    if 1e-3 <= abs(value) < 1e7:
        whole = text[:point].ljust(point, "0") if point > 0 else "0"
        fraction = text[point:] if point > 0 else "0" * -point + text
        return f"{minus}{whole}.{fraction.rstrip('0') or '0'}"
    return f"{minus}{text[0]}.{text[1:].rstrip('0') or '0'}E{point - 1}"


def timestamp_text(value: datetime.datetime) -> str:
    """Return the text of a timestamp; the fraction of a second has at least one digit and no trailing zeros.

    >>> timestamp_text(datetime.datetime(2020, 1, 2, 3, 4, 5))
    '2020-01-02 03:04:05.0'
    """
    fraction = f"{value.microsecond:06d}".rstrip("0") or "0"
    return f"{value.year:04d}-{value:%m-%d %H:%M:%S}.{fraction}"


def instant_text(value: Instant) -> str:
    """Return a point in time in ISO form, with 0, 3, 6 or 9 decimals.

    >>> instant_text(Instant(1, 120_000_000))
    '1970-01-01T00:00:01.120Z'
    """
    days, second_of_day = divmod(value.seconds, 86_400)
    # Python's dates end at the years 1 and 9999. The calendar repeats every 400 years, so whole cycles are split off.
    cycles, day = divmod(days + 719_162, 146_097)  # days since 0001-01-01
    date = datetime.date.fromordinal(day + 1)
    year = date.year + 400 * cycles
    year_text = f"+{year}" if year > 9999 else f"{year:04d}" if year >= 0 else f"-{-year:04d}"
    minutes, second = divmod(second_of_day, 60)
    text = f"{year_text}-{date:%m-%d}T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"
    if value.nanos:
        fraction = f"{value.nanos:09d}"
        while fraction.endswith("000"):
            fraction = fraction[:-3]
        text += "." + fraction
    return text + "Z"
