"""Shapes: what the answers of the REST API look like.

A shape is a type, a set of allowed texts, a list with the shape of its elements, a dict with the shape of each field,
or one of the classes below. A field whose name ends with a question mark may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Either", "Map", "Maybe", "fields", "schema_of"]


@dataclass(frozen=True)
class Map:
    """An object with any keys, whose values have one shape."""

    of: Any


@dataclass(frozen=True)
class Maybe:
    """Null, or a value of this shape."""

    of: Any


@dataclass(frozen=True)
class Either:
    """A value of one of these shapes."""

    first: Any
    second: Any


def fields(shape: Any, *names: str) -> dict[str, Any]:
    """Return fields that have one shape."""
    return dict.fromkeys(names, shape)


def schema_of(shape: Any) -> dict[str, Any]:
    """Return a shape as a schema of OpenAPI.

    >>> schema_of({"id": str, "size?": int})["required"]
    ['id']
    """
    match shape:
        case Maybe():
            return {**schema_of(shape.of), "nullable": True}
        case Either():
            return {"anyOf": [schema_of(shape.first), schema_of(shape.second)]}
        case Map():
            return {"type": "object", "additionalProperties": schema_of(shape.of)}
        case dict():
            needed = sorted(name for name in shape if not name.endswith("?"))
            found: dict[str, Any] = {
                "type": "object",
                "properties": {name.rstrip("?"): schema_of(part) for name, part in shape.items()},
            }
            return {**found, "required": needed} if needed else found
        case list():
            return {"type": "array", "items": schema_of(shape[0])}
        case frozenset():
            return {"type": "string", "enum": sorted(shape)}
    return dict(_PLAIN[shape])


_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    dict: {"type": "object"},
    list: {"type": "array", "items": {}},
    Any: {},
}
