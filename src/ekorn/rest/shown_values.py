"""Values of users as JSON, for people and tools that have no Python."""

from __future__ import annotations

import dataclasses
import math
from base64 import b64encode
from datetime import date, time
from typing import Any

from ekorn.errors import preview
from ekorn.types.row import Row

__all__ = ["as_json"]

_DEEPEST = 50
_LONGEST_TEXT = 10_000
_LONGEST_INT_BITS = 10_000  # Python refuses to write integers of more than 4,300 digits


def as_json(value: Any, depth: int = _DEEPEST) -> Any:
    """Return a value of which JSON can be written. What JSON has no form for becomes its repr.

    Very long integers become their hexadecimal form.

    >>> as_json({"a": (1, 2.5, None), "b": b"xy"}), as_json({1: float("nan")})
    ({'a': [1, 2.5, None], 'b': 'eHk='}, [[1, 'nan']])
    """
    kind = type(value)
    if kind is int and value.bit_length() > _LONGEST_INT_BITS:
        return hex(value)
    if kind in (bool, int, str, type(None)):
        return value
    if kind is float:
        return value if math.isfinite(value) else repr(value)
    if depth == 0:
        return preview(value, _LONGEST_TEXT)
    deeper = depth - 1
    if kind is dict:
        if all(type(key) is str for key in value):
            return {key: as_json(each, deeper) for key, each in value.items()}
        return [[as_json(key, deeper), as_json(each, deeper)] for key, each in value.items()]
    if kind is Row and hasattr(value, "_fields"):
        return {name: as_json(each, deeper) for name, each in zip(value._fields, value, strict=False)}
    if isinstance(value, (list, tuple, set, frozenset, Row)):
        return [as_json(each, deeper) for each in value]
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    if isinstance(value, (date, time)):  # a datetime is a date too
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {name: as_json(getattr(value, name, None), deeper) for name in names}
    return preview(value, _LONGEST_TEXT)
