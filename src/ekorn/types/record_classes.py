"""Dataclasses and named tuples as records: the names, types and defaults of their fields."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["RecordClass", "RecordField", "is_named_tuple", "is_record_class", "record_class"]

# The names of field types in checkpoints: docs/formats/state-types.md
_PLAIN: dict[Any, str] = {
    int: "int",
    float: "float",
    str: "str",
    bool: "bool",
    bytes: "bytes",
    Any: "any",
}


@dataclass(frozen=True)
class RecordField:
    """One field of a record class."""

    name: str
    type: Any  # the annotation, as JSON
    default: Callable[[], Any] | None = None  # creates the value for a record that was stored without the field


@dataclass(frozen=True)
class RecordClass:
    """The name of a dataclass or a named tuple, and its fields in their order."""

    name: str  # module:qualified.name
    fields: tuple[RecordField, ...]


def is_named_tuple(cls: type) -> bool:
    """Return whether a class is a named tuple."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_record_class(cls: object) -> bool:
    """Return whether an object is a dataclass or a named tuple class; an instance is not."""
    return isinstance(cls, type) and (dataclasses.is_dataclass(cls) or is_named_tuple(cls))


def record_class(cls: type) -> RecordClass | None:
    """Return the fields of a dataclass or named tuple, or None for any other class.

    >>> class Point(typing.NamedTuple):
    ...     x: int
    ...     y: int = 0
    >>> [(f.name, f.type) for f in record_class(Point).fields]
    [('x', 'int'), ('y', 'int')]
    """
    if not is_record_class(cls):
        return None
    hints = _hints(cls)
    if dataclasses.is_dataclass(cls):
        known = dataclasses.fields(cls)
        fields = tuple(RecordField(f.name, _spell(hints.get(f.name, Any)), _default(f)) for f in known)
    else:
        defaults: dict[str, Any] = getattr(cls, "_field_defaults", {})
        names: tuple[str, ...] = getattr(cls, "_fields", ())
        fields = tuple(
            RecordField(n, _spell(hints.get(n, Any)), _constant(defaults[n]) if n in defaults else None) for n in names
        )
    return RecordClass(f"{cls.__module__}:{cls.__qualname__}", fields)


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default is not dataclasses.MISSING:
        return _constant(field.default)
    return field.default_factory if field.default_factory is not dataclasses.MISSING else None


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # an annotation may be any expression; if its evaluation fails, the field has no known type
        return {}


def _spell(hint: Any) -> Any:
    """Return an annotation as JSON; `any` if no stored value could be checked against the annotation."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in args if a is not type(None)]
        return {"optional": _spell(rest[0])} if len(rest) == 1 and len(rest) < len(args) else "any"
    if origin is list and len(args) == 1:
        return {"list": _spell(args[0])}
    if origin is dict and len(args) == 2:
        return {"map": [_spell(args[0]), _spell(args[1])]}
    if origin is tuple and args and args[-1] is not ...:
        return {"tuple": [_spell(a) for a in args]}
    if origin is typing.Annotated:
        return _spell(args[0])
    if isinstance(hint, type) and origin is None and hint.__module__ != "builtins":
        return f"{hint.__module__}:{hint.__qualname__}"
    return "any"
