"""Encode values as bytes: what RocksDB keeps at an address.

A value is in the form of tables (`codecs.py`): immutable, or a pickle in a `bytearray`. Numbers and text have a short
form of their own, everything else is pickled. Two parts may stand before the value:
the original of the address, if it cannot be read back from the address, and the stamp, if the state expires:

    b"o" size (4 bytes) pickle of the address' parts | b"t" stamp (8 bytes) | value
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Iterable
from typing import Any

from ekorn.errors import StateError
from ekorn.state.evolution.pickled_classes import loads
from ekorn.types.by_value import dumps

_SIZE = struct.Struct(">cI")
_STAMP = struct.Struct(">cq")
_FLOAT = struct.Struct(">cd")
MUTABLE = ord("m")
STAMP_BYTES = _STAMP.size


def encode(value: Any) -> bytes:
    """Encode a value."""
    put = _ENCODERS.get(value.__class__)
    return _pickled(value) if put is None else put(value)


def encode_all(values: list[Any]) -> Iterable[bytes]:
    """Encode many values, which mostly are of one type."""
    kinds = set(map(type, values))
    return map(_ENCODERS.get(kinds.pop(), encode) if len(kinds) == 1 else encode, values)


def decode(data: bytes) -> Any:
    """Decode what `encode` returned."""
    tag = data[0] if data else None
    if tag == _PICKLE:
        return pickle.loads(data)
    try:
        return _DECODERS[tag](data)
    except (KeyError, struct.error, UnicodeDecodeError) as error:
        raise StateError(f"RocksDB holds a value that ekorn did not write: it begins with {data[:8]!r}") from error


def encode_stamped(kept: tuple[int, Any]) -> bytes:
    """Encode a value with its stamp."""
    return _STAMP.pack(b"t", kept[0]) + encode(kept[1])


def encode_all_stamped(values: list[tuple[int, Any]]) -> Iterable[bytes]:
    """Encode many values with their stamps."""
    return map(encode_stamped, values)


def decode_stamped(data: bytes) -> tuple[int, Any]:
    """Decode what `encode_stamped` returned."""
    return stamp_of(data), decode(data[STAMP_BYTES:])


def stamp_of(data: bytes) -> int:
    """Decode the stamp alone."""
    if data[:1] != b"t" or len(data) < STAMP_BYTES:
        raise StateError(f"RocksDB holds a value without a stamp: it begins with {data[:8]!r}")
    (_, stamp_ms) = _STAMP.unpack_from(data)
    assert isinstance(stamp_ms, int)
    return stamp_ms


def with_original(parts: Any, data: bytes) -> bytes:
    """Prepend the original of an address to an encoded value."""
    original = dumps(parts)
    return _SIZE.pack(b"o", len(original)) + original + data


def split_original(data: bytes) -> tuple[Any, bytes]:
    """Return the original of the address, or None if there is none, and the encoded value behind it."""
    if data[:1] != b"o":
        return None, data
    end = _end_of_original(data)
    return loads(data[_SIZE.size : end], "RocksDB"), data[end:]


def without_original(data: bytes) -> bytes:
    """Return the encoded value without the original of the address."""
    return data[_end_of_original(data) :] if data[:1] == b"o" else data


def _end_of_original(data: bytes) -> int:
    size = _SIZE.unpack_from(data)[1] if len(data) >= _SIZE.size else len(data)
    if _SIZE.size + size > len(data):
        raise StateError(f"RocksDB holds a value that breaks off: it begins with {data[:8]!r}")
    return _SIZE.size + int(size)


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:  # a class that cannot be imported, or another object that only `dumps` can pickle
        return dumps(value)


def _int_bytes(number: int) -> bytes:
    return b"i" + number.to_bytes((number.bit_length() + 8) // 8, "little", signed=True)


_PICKLE = 0x80  # the first byte of every pickle since protocol 2

_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    int: _int_bytes,
    str: lambda value: b"s" + value.encode("utf-8", "surrogatepass"),
    float: lambda value: _FLOAT.pack(b"d", value),
    bool: lambda value: b"T" if value else b"F",
    bytes: lambda value: b"b" + value,
    bytearray: lambda value: b"m" + bytes(value),
    type(None): lambda value: b"N",
}
_DECODERS: dict[int | None, Callable[[bytes], Any]] = {
    ord("i"): lambda data: int.from_bytes(data[1:], "little", signed=True),
    ord("s"): lambda data: data[1:].decode("utf-8", "surrogatepass"),
    ord("d"): lambda data: _FLOAT.unpack(data)[1],
    ord("T"): lambda data: True,
    ord("F"): lambda data: False,
    ord("b"): lambda data: data[1:],
    MUTABLE: lambda data: bytearray(data[1:]),
    ord("N"): lambda data: None,
}
