"""The order in which a keyed operator of a BATCH job receives its keys, at parallelism 1.

Flink sorts the input by the serialized key, byte by byte, each byte as a SIGNED number. PyFlink serializes an untyped
key as the length of its pickle (four bytes) and the pickle, so shorter pickles come first: short strings before long
ones, small numbers before large ones. Pickles of one length are compared by their bytes. A typed key is serialized by
its type. Within a key, records are sorted by timestamp; records with equal or no timestamps keep their order.

`sort_key(key)` and `sort_key(key, "INT")` return the values to sort by; the tests compare them with the recordings.
"""

import datetime
import pickle
import struct
from typing import Any

Declared = str | tuple["Declared", ...]  # the name of a type, or the types of a tuple's fields


def sort_key(key: Any, declared: Declared | None = None) -> list[int]:
    """Return the serialized key as signed numbers.

    >>> sorted([0, 1, -1, 255, 256], key=sort_key)
    [255, 0, 1, 256, -1]
    >>> sorted([0, 1, -1, 255, 256], key=lambda key: sort_key(key, "INT"))
    [-1, 255, 0, 1, 256]
    """
    return [byte - 256 if byte > 127 else byte for byte in serialized(key, declared)]


def serialized(key: Any, declared: Declared | None) -> bytes:
    match declared:
        case None:
            data = pickle.dumps(key, protocol=5)
            return struct.pack(">i", len(data)) + data
        case "SHORT":
            return struct.pack(">h", key)
        case "INT":
            return struct.pack(">i", key)
        case "LONG":
            return struct.pack(">q", key)
        case "DOUBLE":
            return struct.pack(">d", key)
        case "BOOLEAN":
            return struct.pack(">?", key)
        case "SQL_DATE":
            return struct.pack(">q", (key - datetime.date(1970, 1, 1)).days * 86_400_000)
        case "STRING":
            return _string(key)
        case tuple():
            return b"".join(serialized(part, field) for part, field in zip(key, declared, strict=True))
    raise ValueError(f"the serialized form of {declared!r} is not written down here")


def _string(text: str) -> bytes:
    """Serialize the number of UTF-16 units plus one, then the units, each in groups of seven bits, lowest first."""
    data = text.encode("utf-16-be")
    units = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    return b"".join(map(_groups_of_seven_bits, [len(units) + 1, *units]))


def _groups_of_seven_bits(number: int) -> bytes:
    groups = []
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])
