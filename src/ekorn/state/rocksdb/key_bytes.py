"""Encode keys as bytes: the address of an entry in RocksDB.

    address = key group (2 bytes) | state (2 bytes) | key | window, if any | entry of a map or piece of a list

The addresses of one key group are adjacent, so a range of key groups is a range of addresses. Each part contains its
own length, so no address of one key is a prefix of another key's.

Two keys have the same bytes if they are the same key on the heap: `state_key` distinguishes `1`, `1.0` and `True`, and
so do the bytes. The entries of a map are distinguished by `==`, as in a dictionary: there the three are one entry. If
the original cannot be read back from the bytes (a dataclass, `True` in a map), the value begins with the original; see
`value_bytes.py`. Instances of a class that is not known here are distinguished by their pickles.

The layout is in docs/formats/rocksdb-state.md.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import numbers
import struct
import uuid
from collections.abc import Callable
from typing import Any

from ekorn.errors import StateError, preview
from ekorn.keygroups import key_fields, key_group, key_group_of_int, key_group_of_text, user_key
from ekorn.types.by_value import dumps
from ekorn.types.row import Row

PREFIX = struct.Struct(">HH")  # key group, state
_TEXT_ADDRESS = struct.Struct(">HHcH")  # the prefix and the beginning of a key that is text
_INT_ADDRESS = struct.Struct(">HHcQ")
_TIME_WINDOW = struct.Struct(">cHcQcQ")
_SEQUENCE = struct.Struct(">Q")
_SHORT = struct.Struct(">cH")
_LONG = struct.Struct(">cI")
_INT = struct.Struct(">cQ")
_FLOAT = struct.Struct(">cd")
_SIGN = 1 << 63
_LIMIT = 1 << 16

Out = list[bytes]


def address_of(key: Any, max_parallelism: int, state: int) -> tuple[bytes, bool]:  # hot
    """Return the address at which the entries of a key begin, and whether the key can be read back from it.

    Args:
        key: The key in the form of tables.
        max_parallelism: The number of key groups.
        state: The number of the state.
    """
    cls = key.__class__
    if cls is str:
        raw = key.encode("utf-8", "surrogatepass")
        if len(raw) < _LIMIT:
            return _TEXT_ADDRESS.pack(key_group_of_text(raw, max_parallelism), state, b"s", len(raw)) + raw, True
    elif cls is int and -_SIGN <= key < _SIGN:
        return _INT_ADDRESS.pack(key_group_of_int(key, max_parallelism), state, b"i", key + _SIGN), True
    user = user_key(key)
    out = [PREFIX.pack(key_group(user, max_parallelism), state)]
    exact = _put_key(out, user)
    return b"".join(out), exact


def window_bytes(window: Any) -> bytes:
    """Encode a window, given in the form of tables."""
    if window.__class__ is tuple and len(window) == 2:  # a time window: start and end
        start, end = window
        if start.__class__ is end.__class__ is int and -_SIGN <= start <= end < _SIGN:
            return _TIME_WINDOW.pack(b"(", 2, b"i", start + _SIGN, b"i", end + _SIGN)
    out: Out = []
    _put_key(out, window)
    return b"".join(out)


def entry_bytes(key: Any) -> tuple[bytes, bool]:
    """Encode the key of a map's entry; return bytes that equal keys share, and whether the key can be read back."""
    out: Out = []
    exact = _put_equal(out, key)
    return b"".join(out), exact


def sequence_bytes(number: int) -> bytes:
    """Encode the number of a piece of a list."""
    return _SEQUENCE.pack(number)


# ------------------------------------------------------------------------------------------------------------- writing


def _put_key(out: Out, key: Any) -> bool:
    """Encode a key, or a field of a key that is a tuple; values of different types are different."""
    cls = key.__class__
    put = _EXACT.get(cls)
    if put is not None:
        put(out, key)
        return True
    if cls is tuple:
        _put_count(out, b"(", len(key))
        exact = [_put_key(out, field) for field in key]  # a list, so that every field is written
        return all(exact)
    out.append(b"x")
    _put_text(out, cls.__name__)
    fields = key_fields(key)
    if fields is None or dataclasses.is_dataclass(key):  # the `==` of a dataclass decides which fields are equal
        _put_equal(out, key)
    elif isinstance(key, frozenset):
        _put_count(out, b"f", len(fields))
        out.extend(sorted(map(_key_bytes, fields)))
    else:
        is_row = isinstance(key, Row)
        _put_key(out, (fields, tuple(key._names or ()), key.get_row_kind().value) if is_row else fields)
    return False


def _key_bytes(field: Any) -> bytes:
    out: Out = []
    _put_key(out, field)
    return b"".join(out)


def _put_text(out: Out, text: str) -> None:
    _put_raw(out, b"s", text.encode("utf-8", "surrogatepass"))


def _put_bytes(out: Out, data: bytes) -> None:
    _put_raw(out, b"b", data)


def _put_raw(out: Out, tag: bytes, raw: bytes) -> None:
    """Write a tag, a length and bytes. The length has two bytes, or four after the upper-case tag."""
    size = len(raw)
    out.append(_SHORT.pack(tag, size) if size < _LIMIT else _LONG.pack(tag.upper(), size))
    out.append(raw)


def _put_count(out: Out, tag: bytes, count: int) -> None:
    if count >= _LIMIT:
        raise StateError(f"a key has {count} fields, but no more than {_LIMIT - 1} are possible; use a shorter key")
    out.append(_SHORT.pack(tag, count))


def _put_int(out: Out, number: int) -> None:
    if -_SIGN <= number < _SIGN:
        out.append(_INT.pack(b"i", number + _SIGN))
    else:
        _put_raw(out, b"g", number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True))


def _put_float(out: Out, number: float) -> None:
    out.append(_FLOAT.pack(b"d", number if number == number else float("nan")))


def _put_bool(out: Out, flag: bool) -> None:
    out.append(b"T" if flag else b"F")


def _put_none(out: Out, _: None) -> None:
    out.append(b"N")


_EXACT: dict[type, Callable[[Out, Any], None]] = {
    str: _put_text,
    int: _put_int,
    bytes: _put_bytes,
    float: _put_float,
    bool: _put_bool,
    type(None): _put_none,
}


def _put_equal(out: Out, value: Any) -> bool:
    """Encode the key of a map's entry, or a part of a key that is no plain value or tuple; equal values share bytes."""
    cls = value.__class__
    if cls is str or cls is bytes or cls is int or value is None:
        _EXACT[cls](out, value)
        return True
    if cls is tuple:
        _put_count(out, b"(", len(value))
        exact = [_put_equal(out, field) for field in value]
        return all(exact)
    if cls is float:
        _put_number(out, value)
        return not value.is_integer()  # a whole number has the bytes of the integer that it equals
    _put_other(out, value)
    return False


def _put_other(out: Out, value: Any) -> None:
    """Encode a value of any other type by what makes two such values equal."""
    match value:
        case str():
            _put_text(out, str.__str__(value))
        case bytes():
            _put_bytes(out, bytes(value))
        case numbers.Number():
            _put_number(out, value)
        case tuple():
            _put_count(out, b"(", len(value))
            for field in value:
                _put_equal(out, field)
        case frozenset():
            _put_count(out, b"f", len(value))
            out.extend(sorted(entry_bytes(element)[0] for element in value))
        case datetime.datetime() if value.tzinfo is not None:  # the same instant in different zones is equal
            _put_named(out, "instant", value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat())
        case datetime.datetime() | datetime.date() | datetime.time():
            _put_named(out, _calendar(value), _iso(value))
        case datetime.timedelta():
            _put_named(out, "timedelta", value // datetime.timedelta(microseconds=1))
        case uuid.UUID():
            _put_named(out, "UUID", value.bytes)
        case Row():
            _put_named(out, "Row", (tuple(value), tuple(value._names or ()), value.get_row_kind().value))
        case enum.Enum():
            _put_named(out, type(value).__qualname__, value.name)
        case _ if dataclasses.is_dataclass(value):
            fields = tuple(getattr(value, f.name) for f in dataclasses.fields(value) if f.compare)
            _put_named(out, type(value).__qualname__, fields)
        case _:
            _put_raw(out, b"p", dumps(value))


def _put_named(out: Out, name: str, value: Any) -> None:
    out.append(b"x")
    _put_text(out, name)
    _put_equal(out, value)


def _calendar(value: datetime.date | datetime.time) -> str:
    kinds = (datetime.datetime, datetime.date, datetime.time)
    return next(kind.__name__ for kind in kinds if isinstance(value, kind))


def _iso(value: datetime.date | datetime.time) -> str:
    if isinstance(value, datetime.time) and (offset := value.utcoffset()) is not None:
        midnight = datetime.datetime.combine(datetime.date(2000, 1, 2), value.replace(tzinfo=None))
        return (midnight - offset).isoformat()
    return value.isoformat()


def _put_number(out: Out, value: Any) -> None:
    """Encode a number such that equal numbers of different types have the same bytes."""
    if isinstance(value, complex) or (isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real)):
        if value.imag != 0:
            out.append(b"c")
            _put_number(out, value.real)
            _put_number(out, value.imag)
            return
        value = value.real
    if value != value or value in (float("inf"), float("-inf")):
        _put_float(out, float(value))
        return
    if isinstance(value, numbers.Integral):
        _put_int(out, int(value))
        return
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1:
        _put_int(out, numerator)
    elif type(value) is float or _as_float(numerator, denominator):
        _put_float(out, float(value))
    else:
        out.append(b"r")
        _put_int(out, numerator)
        _put_int(out, denominator)


def _as_float(numerator: int, denominator: int) -> bool:
    """Return whether a fraction is exactly a float, and so equal to that float."""
    try:
        return (numerator / denominator).as_integer_ratio() == (numerator, denominator)
    except OverflowError:
        return False


# ------------------------------------------------------------------------------------------------------------- reading


def read_part(data: bytes, position: int) -> tuple[Any, int]:
    """Decode the part of an address that begins at a position; return the part and the position behind it.

    If the original cannot be read back from the bytes, the result is not the original, which then is with the value.
    """
    try:
        part, end = _READERS[data[position]](data, position)
    except (LookupError, struct.error, UnicodeDecodeError, RecursionError) as error:
        raise _foreign(data, position) from error
    if end > len(data):
        raise _foreign(data, position)
    return part, end


def _foreign(data: bytes, position: int) -> StateError:
    return StateError(f"RocksDB holds an address that ekorn did not write: {preview(data)}, byte {position}")


def _read_short(data: bytes, position: int) -> tuple[bytes, int]:
    _, size = _SHORT.unpack_from(data, position)
    start = position + _SHORT.size
    return data[start : start + size], start + size


def _read_long(data: bytes, position: int) -> tuple[bytes, int]:
    _, size = _LONG.unpack_from(data, position)
    start = position + _LONG.size
    return data[start : start + size], start + size


def _text(read: Callable[[bytes, int], tuple[bytes, int]]) -> Callable[[bytes, int], tuple[str, int]]:
    def reader(data: bytes, position: int) -> tuple[str, int]:
        raw, end = read(data, position)
        return raw.decode("utf-8", "surrogatepass"), end

    return reader


def _big(read: Callable[[bytes, int], tuple[bytes, int]]) -> Callable[[bytes, int], tuple[int, int]]:
    def reader(data: bytes, position: int) -> tuple[int, int]:
        raw, end = read(data, position)
        return int.from_bytes(raw, "big", signed=True), end

    return reader


def _read_int(data: bytes, position: int) -> tuple[int, int]:
    _, shifted = _INT.unpack_from(data, position)
    return shifted - _SIGN, position + _INT.size


def _read_float(data: bytes, position: int) -> tuple[float, int]:
    _, number = _FLOAT.unpack_from(data, position)
    return number, position + _FLOAT.size


def _read_many(data: bytes, position: int) -> tuple[tuple[Any, ...], int]:
    _, count = _SHORT.unpack_from(data, position)
    return _read_some(data, position + _SHORT.size, count)


def _read_some(data: bytes, position: int, count: int) -> tuple[tuple[Any, ...], int]:
    fields = []
    for _ in range(count):
        field, position = read_part(data, position)
        fields.append(field)
    return tuple(fields), position


_READERS: dict[int, Callable[[bytes, int], tuple[Any, int]]] = {
    ord("s"): _text(_read_short),
    ord("S"): _text(_read_long),
    ord("b"): _read_short,
    ord("B"): _read_long,
    ord("p"): _read_short,
    ord("P"): _read_long,
    ord("g"): _big(_read_short),
    ord("G"): _big(_read_long),
    ord("i"): _read_int,
    ord("d"): _read_float,
    ord("T"): lambda data, position: (True, position + 1),
    ord("F"): lambda data, position: (False, position + 1),
    ord("N"): lambda data, position: (None, position + 1),
    ord("("): _read_many,
    ord("f"): _read_many,
    ord("x"): lambda data, position: _read_some(data, position + 1, 2),
    ord("c"): lambda data, position: _read_some(data, position + 1, 2),
    ord("r"): lambda data, position: _read_some(data, position + 1, 2),
}
