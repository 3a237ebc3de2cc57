"""The order in which BATCH mode visits keys: the byte order of their serialized form in PyFlink.

PyFlink compares bytes as signed numbers: 0x80 to 0xff come first. A key without a declared type is serialized as the
length of its pickle and the pickle, so shorter pickles come first. A typed key is serialized by its type. The order
was found by running PyFlink: tests/recorded/README.md describes how, and the recordings are beside it.
"""

from __future__ import annotations

import datetime
import pickle
import struct
from collections.abc import Callable
from typing import Any

from ekorn.types import basic_types as basic
from ekorn.types.by_value import IMMUTABLE, dumps
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.type_information import TypeInformation

_SIGNED = bytes(byte ^ 0x80 for byte in range(256))  # maps signed order to unsigned order
_NUMBERS = {"Byte": ">b", "Short": ">h", "Integer": ">i", "Long": ">q", "Double": ">d", "Float": ">f", "Boolean": ">?"}
_EPOCH = datetime.date(1970, 1, 1)


def sort_key_for(type_info: TypeInformation | None) -> Callable[[Any], bytes]:
    """Return the function that makes a sort key from a key. Two keys have one sort key only if they are one key."""
    encode = _encoder(type_info)
    return lambda key: encode(key).translate(_SIGNED)


def _encoder(type_info: TypeInformation | None) -> Callable[[Any], bytes]:
    number = _NUMBERS.get(str(type_info))
    if number is not None:
        return struct.Struct(number).pack
    if isinstance(type_info, basic.StringTypeInfo):
        return _text
    if isinstance(type_info, basic.DateTypeInfo):
        return lambda key: struct.pack(">q", (key - _EPOCH).days * 86_400_000)
    if isinstance(type_info, TupleTypeInfo):
        fields = [_encoder(field) for field in type_info.get_field_types()]
        return lambda key: b"".join(encode(part) for encode, part in zip(fields, key, strict=True))
    return _pickle


def _pickle(key: Any) -> bytes:
    # Flink: equal keys that share their parts differently have different pickles, by accident, and are two keys. Here
    # a round trip without the pickle memo makes them equal.
    if type(key) not in IMMUTABLE:
        key = pickle.loads(dumps(key))
    try:
        data = pickle.dumps(key, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError):
        data = dumps(key)  # the class of the key cannot be imported
    return struct.pack(">i", len(data)) + data


def _text(key: str) -> bytes:
    """Encode the number of UTF-16 units plus one, then the units; each as groups of seven bits, lowest first."""
    data = key.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(data) // 2}H", data)
    return b"".join(map(_groups_of_seven_bits, (len(units) + 1, *units)))


def _groups_of_seven_bits(number: int) -> bytes:
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
