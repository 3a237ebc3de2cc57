"""The memory of large values in use: counted when they are written, so that a few of them cannot fill the memory.

The number of entries in use is limited by the mean size of values, which is known from what was written to RocksDB
before. A value that is much larger than the memory of an entry without its value is counted by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.state.codecs import PLAIN, Codec, PickledCodec
from ekorn.types.basic_types import BasicTypeInfo, StringTypeInfo
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.type_information import TypeInformation

__all__ = ["LARGE_BYTES", "SIZED", "weigh_values", "weight"]

LARGE_BYTES = 250  # counting smaller values would cost more than it gains
SIZED: frozenset[type] = frozenset({bytearray, bytes, str})
_NESTED = frozenset({tuple, frozenset})


def weight(kept: Any) -> int:
    """Return about how many bytes the parts of a value that can be large take, in the form of tables.

    >>> weight(7), weight("ab"), weight((1, "abc", (b"de", 2.0)))
    (0, 2, 5)
    """
    cls = type(kept)
    if cls in SIZED:
        return len(kept)
    return _plain_weight(kept) or 0 if cls in _NESTED else 0


def _plain_weight(values: Any) -> int | None:  # hot
    """Return the weight of a tuple or set of plain values; None if one is not plain and has to be pickled."""
    size_bytes = 0
    for field in values:
        cls = type(field)
        if cls in SIZED and cls is not bytearray:
            size_bytes += len(field)
        elif cls not in PLAIN:
            inner = _plain_weight(field) if cls in _NESTED else None
            if inner is None:
                return None
            size_bytes += inner
    return size_bytes


def weigh_values(codec: Codec, weigh: Callable[[int], None]) -> frozenset[type]:
    """Let a codec report the size of each large value that it converts for a table.

    Values of a fixed size, such as numbers, are still kept without a call.

    Returns:
        The types of values that the codec keeps as they are and that may be large.
    """
    if _has_fixed_size(codec.type_info):
        return frozenset()
    sized = codec.as_is & SIZED
    codec.as_is = codec.as_is - SIZED
    stored = codec.stored

    def weighed(value: Any) -> Any:  # hot
        kept = stored(value)
        size_bytes = len(kept) if type(kept) in SIZED else weight(kept)
        if size_bytes > LARGE_BYTES:
            weigh(size_bytes)
        return kept

    def weighed_plain(value: Any) -> Any:  # hot
        size_bytes = _plain_weight(value) if type(value) is tuple else None
        if size_bytes is None:
            return weighed(value)
        if size_bytes > LARGE_BYTES:
            weigh(size_bytes)
        return value

    codec.stored = weighed_plain if type(codec) is PickledCodec else weighed  # type: ignore[method-assign]
    return sized


def _has_fixed_size(type_info: TypeInformation | None) -> bool:
    match type_info:
        case BasicTypeInfo():
            return not isinstance(type_info, StringTypeInfo)
        case TupleTypeInfo():
            return all(map(_has_fixed_size, type_info.get_field_types()))
        case _:
            return False
