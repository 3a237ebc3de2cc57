"""Reads and writes the text of configuration values: durations, sizes, lists, maps.

Every parser takes text and returns a value, or raises `ValueError` with the reason alone. The caller knows the key and
turns the reason into a `ConfigurationError`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

__all__ = [
    "parse_bool",
    "parse_choice",
    "parse_duration_ms",
    "parse_enum",
    "parse_float",
    "parse_int",
    "parse_list",
    "parse_map",
    "parse_memory_bytes",
    "parse_ports",
    "size_text",
    "split_quoted",
    "value_text",
]

C = TypeVar("C", bound=str)
E = TypeVar("E", bound=Enum)

_NANOS = {
    **dict.fromkeys(("d", "day", "days"), 86_400 * 10**9),
    **dict.fromkeys(("h", "hour", "hours"), 3_600 * 10**9),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60 * 10**9),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 10**9),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 10**6),
    **dict.fromkeys(("us", "µs", "micro", "micros", "microsecond", "microseconds"), 10**3),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
}
_BYTES = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1024),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1024**2),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1024**3),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1024**4),
}
_SHOWN_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_ISO_DURATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)
_NUMBER_AND_UNIT = re.compile(r"(?P<number>\d+)\s*(?P<unit>[a-zµ]*)", re.IGNORECASE)


def parse_bool(text: str) -> bool:
    """Parse ``true`` or ``false``, in upper or lower case."""
    lowered = text.strip().lower()
    if lowered not in {"true", "false"}:
        raise ValueError("expected true or false")
    return lowered == "true"


def parse_int(text: str) -> int:
    """Parse a whole number."""
    try:
        return int(text.strip())
    except ValueError:
        raise ValueError("expected a whole number") from None


def parse_float(text: str) -> float:
    """Parse a number."""
    try:
        return float(text.strip())
    except ValueError:
        raise ValueError("expected a number") from None


def parse_duration_ms(text: str) -> int:
    """Return the milliseconds of ``10 s``, ``5 min``, ``PT10S``, or a bare number of milliseconds.

    >>> parse_duration_ms("10 s"), parse_duration_ms("PT1M30S"), parse_duration_ms("200")
    (10000, 90000, 200)
    """
    stripped = text.strip()
    plain = _NUMBER_AND_UNIT.fullmatch(stripped)
    if plain and plain["unit"].lower() in _NANOS:
        return int(plain["number"]) * _NANOS[plain["unit"].lower()] // 10**6
    iso = _ISO_DURATION.fullmatch(stripped)
    if iso and any(iso[part] for part in ("days", "hours", "minutes", "seconds")):
        whole_seconds = (int(iso["days"] or 0) * 24 + int(iso["hours"] or 0)) * 3600 + int(iso["minutes"] or 0) * 60
        millis = whole_seconds * 1000 + int(float(iso["seconds"] or 0) * 1000)
        return -millis if iso["sign"] else millis
    raise ValueError("expected a duration such as '10 s', '5 min', '500 ms', 'PT10S' or a number of milliseconds")


def parse_memory_bytes(text: str) -> int:
    """Return the bytes of ``64kb``, ``32 mb``, or a bare number of bytes; units are powers of 1024.

    >>> parse_memory_bytes("64kb")
    65536
    """
    plain = _NUMBER_AND_UNIT.fullmatch(text.strip())
    if plain is None or plain["unit"].lower() not in _BYTES:
        raise ValueError("expected a size such as '64kb', '32 mb' or a number of bytes")
    return int(plain["number"]) * _BYTES[plain["unit"].lower()]


def parse_list(text: str) -> list[str]:
    """Parse ``a;b``, with quotes around entries that hold a semicolon, and YAML's ``[a, b]`` and ``- a`` lines.

    >>> parse_list("a;b"), parse_list("[a, b]"), parse_list("'a;b';c")
    (['a', 'b'], ['a', 'b'], ['a;b', 'c'])
    """
    stripped = text.strip()
    if stripped.startswith("[") and stripped.endswith("]"):
        return split_quoted(stripped[1:-1], ",")
    lines = stripped.splitlines()
    if lines and all(line.lstrip().startswith("- ") for line in lines):
        return [_unquoted(line.lstrip()[2:]) for line in lines]
    return split_quoted(stripped, ";")


def parse_map(text: str) -> dict[str, str]:
    """Parse ``k1:v1,k2:v2``, and YAML's ``{k1: v1, k2: v2}``.

    >>> parse_map("a:1,b:2")
    {'a': '1', 'b': '2'}
    """
    stripped = text.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        stripped = stripped[1:-1]
    result = {}
    for entry in _split(stripped, ",", inner=":"):
        if not entry.strip():
            continue
        key, *value = _split(entry, ":")
        if not value or not key.strip():
            raise ValueError(f"expected entries of the form key:value, found {entry!r}")
        result[_unquoted(key)] = _unquoted(":".join(value))
    return result


def parse_ports(text: str) -> tuple[int, ...]:
    """Parse a port, a range of ports or a list of both.

    >>> parse_ports("9069"), parse_ports("50100-50102,0")
    ((9069,), (50100, 50101, 50102, 0))
    """
    ports: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not dash)):
            raise ValueError("expected a port, a range such as 9250-9260, or a list of both")
        span = range(int(first), int(last if dash else first) + 1)
        if not span or span[-1] > 65535:
            raise ValueError("a port is a number from 0 to 65535, and a range starts with the lower port")
        ports.extend(span)
    return tuple(ports)


def parse_choice(*choices: C) -> Callable[[str], C]:
    """Return a parser for one of these words. It ignores case, ``-`` and ``_``, and returns the word as spelt here."""
    by_word = {_word(choice): choice for choice in choices}

    def parse(text: str) -> C:
        try:
            return by_word[_word(text)]
        except KeyError:
            raise ValueError(f"expected one of {', '.join(choices)}") from None

    return parse


def parse_enum(kind: type[E]) -> Callable[[str], E]:
    """Return a parser for the name of an enum member."""
    choose = parse_choice(*(member.name for member in kind))

    def parse(text: str) -> E:
        return kind[choose(text)]

    return parse


def split_quoted(text: str, separator: str) -> list[str]:
    """Return the entries between separators, without blanks and quotes around them.

    A separator inside quotes is text.
    """
    return [_unquoted(entry) for entry in _split(text, separator) if entry.strip()]


def _split(text: str, separator: str, inner: str = "") -> list[str]:
    """Split at separators outside of quotes. A quote opens at the start of an entry, or of a part after ``inner``.

    Inside quotes a doubled quote stands for one: ``it's`` needs no quotes, and ``'a;''b'`` is ``a;'b``.
    """
    entries, start, quote, at_start = [], 0, "", True
    for position, char in enumerate(text):
        if quote:
            # The first of two quotes closes the quoted part, and the second opens it again.
            quote, at_start = ("", True) if char == quote else (quote, False)
        elif char == separator:
            entries.append(text[start:position])
            start, at_start = position + 1, True
        elif at_start and char in "'\"":
            quote = char
        else:
            at_start = char == inner or (at_start and char == " ")
    if quote:
        raise ValueError(f"a {quote} is not closed")
    return [*entries, text[start:]]


def value_text(value: Any) -> str:
    """Return a typed value as configuration text, which the parsers of this module read back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray):
        return "!!binary |-\n  " + base64.b64encode(value).decode("ascii")
    if isinstance(value, dict):
        return ",".join(f"{_quoted(key, ',:')}:{_quoted(each, ',:')}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ";".join(_quoted(each, ";") for each in value)
    if isinstance(value, Enum):
        return value.name
    return str(value)


def _quoted(value: Any, specials: str) -> str:
    text = value_text(value)
    plain = text and text == text.strip() and not text.startswith(("'", '"', "[", "{", "- "))
    if plain and not any(char in text for char in specials):
        return text
    return "'" + text.replace("'", "''") + "'"


def _unquoted(text: str) -> str:
    stripped = text.strip()
    if len(stripped) >= 2 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        return stripped[1:-1].replace(stripped[0] * 2, stripped[0])
    return stripped


def _word(text: str) -> str:
    return text.strip().replace("-", "").replace("_", "").lower()


def size_text(size: int) -> str:
    """Return a number of bytes in words.

    >>> size_text(1), size_text(1023), size_text(1536), size_text(5 << 30)
    ('1 byte', '1023 bytes', '1.5 KiB', '5.0 GiB')
    """
    if size == 1:
        return "1 byte"
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_SHOWN_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{size} bytes" if unit == 0 else f"{amount:.1f} {_SHOWN_UNITS[unit]}"
