"""What is known of the type of a data set's records, so that a wrong key is refused where it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["type_of_all"]

_PLAIN = {str: Types.STRING, int: Types.LONG, float: Types.DOUBLE, bool: Types.BOOLEAN}


def type_of_all(values: Sequence[Any]) -> TypeInformation | None:
    """Return the type of some values: of tuples of one length, or of plain values of one class; None if they differ.

    >>> type_of_all([(1, "a"), (2, "b")])
    TupleTypeInfo(Long, String)
    """
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind in _PLAIN:
        return _PLAIN[kind]()
    if kind is not tuple or len({len(value) for value in values}) != 1 or not values[0]:
        return None
    unknown = Types.PICKLED_BYTE_ARRAY()
    return TupleTypeInfo([type_of_all(column) or unknown for column in zip(*values, strict=True)])
