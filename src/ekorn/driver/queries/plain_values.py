"""Plain values as bytes: the codec of keys that a client sends to the driver.

Decoding calls the constructors of plain values and nothing else. Every length is compared with the bytes that are left
before anything is allocated, and depth, number of items and sizes of numbers are bounded. A pickle has no such bounds:
nine bytes of one can allocate gigabytes.

A list is a column: keys of type str, int, float, bytes, and tuples of these, are packed together by a few calls of C,
because 20,000 of them arrive in a second. Everything else is encoded value by value, as a tag and its bytes.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import fractions
import struct
import uuid
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from typing import Any

from ekorn.errors import QueryRefused, preview
from ekorn.types.record_classes import is_named_tuple, is_record_class
from ekorn.types.row import Row, RowKind, make_row

__all__ = ["DEEPEST", "MOST_ITEMS", "decode_list", "encode_list"]

DEEPEST = 32  # the most levels of tuples, lists and rows in each other
MOST_ITEMS = 100_000  # the most values of one message, those inside of tuples included
_LONGEST_NUMBER = 1024  # the most bytes of an int, and characters of a Decimal
_LARGEST_SET = 256  # the most items of a frozenset: items with equal hashes make its construction quadratic
_COUNT = struct.Struct("<I")
_LONG = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")
_COMPLEX = struct.Struct("<dd")
_DATETIME = struct.Struct("<HBBBBBIB")
_TIME = struct.Struct("<BBBIB")
_TIMEDELTA = struct.Struct("<iii")
_PLAIN = (
    "None, bool, int, float, complex, str, bytes, Decimal, Fraction, UUID, date, time, datetime with a fixed offset or "
    "none, timedelta, Row, tuple, list or frozenset"
)


def encode_list(values: list[Any]) -> bytes:
    """Encode a list of plain values, dataclasses and named tuples.

    Raises:
        QueryRefused: A value is of another class, too deep or too large.
    """
    parts = _Parts()
    _put_column(parts, values, 0)
    if parts.items > MOST_ITEMS:
        raise QueryRefused(_too_many_items(parts.items))
    return b"".join(parts)


def decode_list(data: bytes, classes: Iterable[type] = ()) -> list[Any]:
    """Decode what `encode_list` returned.

    Args:
        data: The bytes.
        classes: The dataclasses and named tuples whose instances are accepted.

    Raises:
        QueryRefused: The bytes are not such a list, or exceed a bound.
    """
    reader = _Reader(data, {_name(each): each for each in classes})
    try:
        found = reader.column(0)
    except QueryRefused:
        raise
    except Exception as error:  # such as a day 32, or a denominator of zero
        raise QueryRefused(f"the message cannot be decoded ({type(error).__name__}: {error})") from None
    if reader.at != len(data):
        raise QueryRefused("the message cannot be decoded: bytes follow its end")
    return found


def _too_many_items(count: int) -> str:
    return (
        f"a query has {count} values or more, including those inside its keys; the maximum is {MOST_ITEMS}: ask for "
        "fewer keys per call"
    )


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


# ------------------------------------------------------------------------------------------------------------- encoding


class _Parts(list[bytes]):
    """The parts of a message, and the number of its values."""

    items = 0


def _put_column(parts: _Parts, values: list[Any] | tuple[Any, ...], depth: int) -> None:
    """Append the values, packed if all are of one type."""
    if depth > DEEPEST:
        raise QueryRefused(f"a key has more than {DEEPEST} levels: use one with fewer")
    count, kinds = len(values), set(map(type, values))
    if kinds == {tuple} and len(values[0]) > 0 and len(set(map(len, values))) == 1:
        parts += b"t", _COUNT.pack(len(values[0]))
        for column in zip(*values, strict=True):
            _put_column(parts, column, depth + 1)
        return
    parts.items += count
    if kinds == {str}:
        encoded = "".join(values).encode("utf-8", "surrogatepass")
        lengths = struct.pack(f"<{count}I", *map(len, values))
        parts += b"s", _COUNT.pack(count), lengths, _COUNT.pack(len(encoded)), encoded
    elif kinds == {int}:
        try:
            packed = struct.pack(f"<{count}q", *values)
        except struct.error:  # one has more than 64 bits
            _put_each(parts, values, depth)
        else:
            parts += b"q", _COUNT.pack(count), packed
    elif kinds == {float}:
        parts += b"d", _COUNT.pack(count), struct.pack(f"<{count}d", *values)
    elif kinds == {bytes}:
        encoded = b"".join(values)
        lengths = struct.pack(f"<{count}I", *map(len, values))
        parts += b"b", _COUNT.pack(count), lengths, _COUNT.pack(len(encoded)), encoded
    else:
        _put_each(parts, values, depth)


def _put_each(parts: _Parts, values: Iterable[Any], depth: int) -> None:
    kept = list(values)
    parts += b"*", _COUNT.pack(len(kept))
    for value in kept:
        _put(parts, value, depth)


def _put(parts: _Parts, value: Any, depth: int) -> None:
    encode = _ENCODERS.get(type(value))
    if encode is not None:
        encode(parts, value, depth)
    elif is_record_class(type(value)):
        cls = type(value)
        fields = value if is_named_tuple(cls) else [getattr(value, each.name) for each in dataclasses.fields(cls)]
        _put_text(parts, b"o", _name(cls))
        _put_column(parts, list(fields), depth + 1)
    else:
        raise QueryRefused(
            f"{preview(value, 80)} ({_name(type(value))}) cannot be sent: a key is {_PLAIN}, or an instance of the "
            "dataclass or named tuple that key_by() declares as the key type"
        )


def _put_text(parts: _Parts, tag: bytes, text: str) -> None:
    encoded = text.encode("utf-8", "surrogatepass")
    parts += tag, _COUNT.pack(len(encoded)), encoded


def _put_number(parts: _Parts, number: int) -> None:
    size = number.bit_length() // 8 + 1
    if size > _LONGEST_NUMBER:
        raise QueryRefused(f"a key has an int of {size} bytes; at most {_LONGEST_NUMBER} can be sent")
    parts += b"i", _COUNT.pack(size), number.to_bytes(size, "little", signed=True)


def _put_decimal(parts: _Parts, value: decimal.Decimal) -> None:
    text = str(value)
    if len(text) > _LONGEST_NUMBER:
        raise QueryRefused(f"a key has a Decimal of {len(text)} characters; at most {_LONGEST_NUMBER} can be sent")
    _put_text(parts, b"D", text)


def _put_zone(parts: _Parts, zone: datetime.tzinfo | None) -> None:
    if zone is None:
        parts.append(b"N")
    elif type(zone) is datetime.timezone:
        offset = zone.utcoffset(None)
        named = zone.tzname(None) != datetime.timezone(offset).tzname(None)
        _put_timedelta(parts, offset)
        _put_text(parts, b"s", zone.tzname(None) if named else "")
    else:
        raise QueryRefused(f"a key has a time in zone {preview(zone, 80)}: use one with a fixed offset, such as UTC")


def _put_timedelta(parts: _Parts, value: datetime.timedelta) -> None:
    parts += b"e", _TIMEDELTA.pack(value.days, value.seconds, value.microseconds)


def _put_datetime(parts: _Parts, value: datetime.datetime) -> None:
    day = value.year, value.month, value.day
    time = value.hour, value.minute, value.second, value.microsecond, value.fold
    parts += b"Y", _DATETIME.pack(*day, *time)
    _put_zone(parts, value.tzinfo)


def _put_time(parts: _Parts, value: datetime.time) -> None:
    parts += b"h", _TIME.pack(value.hour, value.minute, value.second, value.microsecond, value.fold)
    _put_zone(parts, value.tzinfo)


def _put_row(parts: _Parts, row: Row, depth: int) -> None:
    names = getattr(row, "_fields", None)  # a row without names does not have the attribute
    parts += b"R", bytes([row.get_row_kind().value, names is not None])
    _put_column(parts, list(row), depth + 1)
    if names is not None:
        _put_column(parts, names, depth + 1)


def _put_items(parts: _Parts, tag: bytes, values: Iterable[Any], depth: int) -> None:
    parts.append(tag)
    _put_column(parts, list(values), depth + 1)


def _put_set(parts: _Parts, value: frozenset[Any], depth: int) -> None:
    if len(value) > _LARGEST_SET:
        raise QueryRefused(f"a key has a frozenset of {len(value)} items; at most {_LARGEST_SET} can be sent")
    _put_items(parts, b"{", value, depth)


def _put_fraction(parts: _Parts, value: fractions.Fraction) -> None:
    parts.append(b"/")
    _put_number(parts, value.numerator)
    _put_number(parts, value.denominator)


def _put_bytes(parts: _Parts, value: bytes) -> None:
    parts += b"b", _COUNT.pack(len(value)), value


_ENCODERS: dict[type, Callable[[_Parts, Any, int], None]] = {
    type(None): lambda parts, value, depth: parts.append(b"N"),
    bool: lambda parts, value, depth: parts.append(b"T" if value else b"F"),
    int: lambda parts, value, depth: _put_number(parts, value),
    float: lambda parts, value, depth: parts.extend((b"f", _DOUBLE.pack(value))),
    complex: lambda parts, value, depth: parts.extend((b"c", _COMPLEX.pack(value.real, value.imag))),
    str: lambda parts, value, depth: _put_text(parts, b"s", value),
    bytes: lambda parts, value, depth: _put_bytes(parts, value),
    tuple: lambda parts, value, depth: _put_items(parts, b"(", value, depth),
    list: lambda parts, value, depth: _put_items(parts, b"[", value, depth),
    frozenset: _put_set,
    decimal.Decimal: lambda parts, value, depth: _put_decimal(parts, value),
    fractions.Fraction: lambda parts, value, depth: _put_fraction(parts, value),
    uuid.UUID: lambda parts, value, depth: parts.extend((b"u", value.bytes)),
    datetime.date: lambda parts, value, depth: parts.extend((b"y", _COUNT.pack(value.toordinal()))),
    datetime.datetime: lambda parts, value, depth: _put_datetime(parts, value),
    datetime.time: lambda parts, value, depth: _put_time(parts, value),
    datetime.timedelta: lambda parts, value, depth: _put_timedelta(parts, value),
    Row: _put_row,
}


# ------------------------------------------------------------------------------------------------------------- decoding


class _Reader:
    """Reads values from bytes, from `at` on."""

    def __init__(self, data: bytes, classes: dict[str, type]) -> None:
        self._data = data
        self._classes = classes
        self._items = MOST_ITEMS  # how many more values may come
        self.at = 0

    def column(self, depth: int) -> list[Any]:
        """Read a list of values."""
        if depth > DEEPEST:
            raise QueryRefused(f"a key has more than {DEEPEST} levels")
        tag, count = self._take(1), self._count()
        if tag == b"t":
            return self._tuples(count, depth)
        self._items -= count
        if self._items < 0:
            raise QueryRefused(_too_many_items(MOST_ITEMS - self._items))
        match tag:
            case b"s":
                lengths = self._unpack(f"<{count}I", 4 * count)
                text = str(self._take(self._count()), "utf-8", "surrogatepass")
                return _cut(text, lengths)
            case b"q":
                return list(self._unpack(f"<{count}q", 8 * count))
            case b"d":
                return list(self._unpack(f"<{count}d", 8 * count))
            case b"b":
                lengths = self._unpack(f"<{count}I", 4 * count)
                return _cut(self._take(self._count()), lengths)
            case b"*":
                self._check_left(count)
                return [self._value(depth) for _ in range(count)]
        raise QueryRefused(f"the message cannot be decoded: it has no list where {tag!r} stands")

    def _tuples(self, width: int, depth: int) -> list[Any]:
        self._check_left(width)
        if not width:
            raise QueryRefused("the message cannot be decoded: a list of tuples has no columns")
        return list(zip(*[self.column(depth + 1) for _ in range(width)], strict=True))

    def _value(self, depth: int) -> Any:
        tag = self._take(1)
        match tag:
            case b"N":
                return None
            case b"T" | b"F":
                return tag == b"T"
            case b"i":
                return int.from_bytes(self._number(), "little", signed=True)
            case b"f":
                return _DOUBLE.unpack(self._take(_DOUBLE.size))[0]
            case b"s":
                return self._text()
            case b"b":
                return self._take(self._count())
            case b"(":
                return tuple(self.column(depth + 1))
            case b"[":
                return self.column(depth + 1)
            case b"{":
                return self._set(depth)
            case b"c":
                return complex(*_COMPLEX.unpack(self._take(_COMPLEX.size)))
            case b"D":
                return decimal.Decimal(self._number().decode("ascii"))
            case b"/":
                return fractions.Fraction(self._int(), self._int())
            case b"u":
                return uuid.UUID(bytes=self._take(16))
            case b"y":
                return datetime.date.fromordinal(self._count())
            case b"Y":
                year, month, day, hour, minute, second, micros, fold = _DATETIME.unpack(self._take(_DATETIME.size))
                return datetime.datetime(year, month, day, hour, minute, second, micros, self._zone(), fold=fold)
            case b"h":
                hour, minute, second, micros, fold = _TIME.unpack(self._take(_TIME.size))
                return datetime.time(hour, minute, second, micros, self._zone(), fold=fold)
            case b"e":
                return datetime.timedelta(*_TIMEDELTA.unpack(self._take(_TIMEDELTA.size)))
            case b"R":
                return self._row(depth)
            case b"o":
                return self._instance(depth)
        raise QueryRefused(f"the message cannot be decoded: it has no value where {tag!r} stands")

    def _set(self, depth: int) -> frozenset[Any]:
        items = self.column(depth + 1)
        if len(items) > _LARGEST_SET:
            raise QueryRefused(f"a key has a frozenset of {len(items)} items; the maximum is {_LARGEST_SET}")
        return frozenset(items)

    def _int(self) -> int:
        if self._take(1) != b"i":
            raise QueryRefused("the message cannot be decoded: a fraction has no number")
        return int.from_bytes(self._number(), "little", signed=True)

    def _zone(self) -> datetime.timezone | None:
        tag = self._take(1)
        if tag == b"N":
            return None
        offset = datetime.timedelta(*_TIMEDELTA.unpack(self._take(_TIMEDELTA.size)))
        if tag != b"e" or self._take(1) != b"s":
            raise QueryRefused("the message cannot be decoded: a time has no zone")
        name = self._text()
        return datetime.timezone(offset, name) if name else datetime.timezone(offset)

    def _row(self, depth: int) -> Row:
        kind, has_names = self._take(2)
        values = self.column(depth + 1)
        names = self.column(depth + 1) if has_names else None
        if names is not None and not all(type(name) is str for name in names):
            raise QueryRefused("the message cannot be decoded: a row has a name that is not text")
        return make_row(values, names, RowKind(kind))

    def _instance(self, depth: int) -> Any:
        name = self._text()
        cls = self._classes.get(name)
        if cls is None:
            raise QueryRefused(
                f"a key of class {_short(name)} cannot be queried: use a plain value, or declare the class as "
                "the key type in key_by()"
            )
        values = self.column(depth + 1)
        if is_named_tuple(cls):
            names: tuple[str, ...] = getattr(cls, "_fields", ())
        else:
            names = tuple(each.name for each in dataclasses.fields(cls))
        if len(names) != len(values):
            raise QueryRefused(
                f"a key of class {name} has {len(values)} fields; in the job it has {len(names)}: use the job's class"
            )
        if is_named_tuple(cls):
            return tuple.__new__(cls, values)
        made: Any = cls.__new__(cls)  # type: ignore[call-overload]  # calls the __new__ of the class, not of type
        for field, value in zip(names, values, strict=True):
            object.__setattr__(made, field, value)  # also of a frozen class
        return made

    def _text(self) -> str:
        return str(self._take(self._count()), "utf-8", "surrogatepass")

    def _number(self) -> bytes:
        size = self._count()
        if size > _LONGEST_NUMBER:
            raise QueryRefused(f"a key has a number of {size} bytes; the maximum is {_LONGEST_NUMBER}")
        return self._take(size)

    def _count(self) -> int:
        (count,) = _COUNT.unpack(self._take(4))
        return int(count)

    def _unpack(self, form: str, size: int) -> tuple[Any, ...]:
        self._check_left(size)
        found = struct.unpack_from(form, self._data, self.at)
        self.at += size
        return found

    def _take(self, size: int) -> bytes:
        self._check_left(size)
        start = self.at
        self.at = end = start + size
        return self._data[start:end]

    def _check_left(self, size: int) -> None:
        """Refuse a size of more bytes than are left, before anything of that size is made."""
        if size > len(self._data) - self.at:
            raise QueryRefused("the message cannot be decoded: it ends too early")


def _short(name: str) -> str:
    """Return a name for an error, cut if it is long."""
    return name if len(name) <= 200 else f"{name[:200]}..."


def _cut(whole: Any, lengths: tuple[int, ...]) -> list[Any]:
    """Cut text or bytes into parts of these lengths."""
    ends = list(accumulate(lengths, initial=0))
    if ends[-1] != len(whole):
        raise QueryRefused("the message cannot be decoded: its texts have other lengths")
    return [whole[start:end] for start, end in pairwise(ends)]
