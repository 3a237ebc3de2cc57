"""Read and replace fields of records by position or name, for `key_by(0)`, `sum("price")` and `project(0, 2)`.

A record with fields is a tuple, a list, a Row, a dict (by name), or an object with attributes (by name). Any other
value has one field, at position 0: the value itself. Negative positions count from the end.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
import re
from collections.abc import Iterable
from typing import Any

from ekorn.errors import preview
from ekorn.types.row import Row, make_row

Field = int | str

_TUPLE_NAME = re.compile(r"f(\d+)")  # Flink: the fields of a tuple are called f0, f1, ...


def checked_field(field: object, what: str) -> Field:
    """Return the given position or name, or raise an error; `what` names the field in the message."""
    if isinstance(field, bool) or not isinstance(field, (int, str)):
        raise TypeError(f"{what} must be a position (int) or a name (str), got {field!r}")
    if field == "":
        raise ValueError(f"{what} must not be an empty name")
    return field


def read_field(value: Any, field: Field) -> Any:  # hot
    """Return one field of a record."""
    try:
        if type(value) is tuple and type(field) is int:
            return value[field]
        if isinstance(value, (tuple, list)):
            return value[_position_in(value, field)] if isinstance(field, str) else value[field]
        if isinstance(value, Row):
            return value[field]
        if isinstance(field, str):
            return value[field] if isinstance(value, dict) else getattr(value, field)
        if field == 0:
            return value
    except (IndexError, KeyError, AttributeError, ValueError):
        pass  # each of these means that there is no such field; one message says so below
    raise _no_field(value, field)


def with_field(value: Any, field: Field, new: Any) -> Any:  # hot
    """Return a copy of a record with one field replaced."""
    if type(value) is tuple and type(field) is int and field >= 0:
        return (*value[:field], new, *value[field + 1 :])
    if isinstance(value, tuple):
        position = _position_in(value, field)
        fields = (*value[:position], new, *value[position + 1 :])
        if type(value) is tuple:
            return fields
        return type(value)._make(fields) if hasattr(value, "_make") else type(value)(fields)
    if isinstance(value, list):
        copied = list(value)
        copied[_position_in(value, field)] = new
        return copied
    if isinstance(value, Row):
        row = make_row(list(value), getattr(value, "_fields", None), value.get_row_kind())
        row[field] = new
        return row
    if isinstance(value, dict):
        return {**value, field: new}
    if isinstance(field, str):
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.replace(value, **{field: new})
        changed = copy.copy(value)
        setattr(changed, field, new)
        return changed
    return new  # a value without fields: position 0 is the value itself


def _position_in(value: tuple[Any, ...] | list[Any], field: Field) -> int:
    if isinstance(field, int):
        return field if field >= 0 else field + len(value)
    names = getattr(value, "_fields", None)  # a named tuple
    if names is not None and field in names:
        return int(names.index(field))
    match = _TUPLE_NAME.fullmatch(field)
    if match is None:
        raise _no_field(value, field)
    return int(match.group(1))


def _no_field(value: Any, field: Field) -> Exception:
    shown = preview(value)
    if isinstance(value, (tuple, list, Row)):
        kind = IndexError if isinstance(field, int) else TypeError
        names = getattr(value, "_fields", None)
        has = f"it has {len(value)} fields" if isinstance(field, int) or not names else _named(field, names)
        return kind(f"the record {shown} has no field {field!r}: {has}")
    if isinstance(field, int):
        return TypeError(
            f"the record {shown} is a {type(value).__name__}, which has no positions: "
            f"only position 0, the value itself, can be selected, not {field}"
        )
    said = f"the record {shown} of type {type(value).__name__} has no field {field!r}"
    names = [name for name in value if isinstance(name, str)] if isinstance(value, dict) else list(_attributes(value))
    return TypeError(f"{said}: {_named(field, names)}" if names else said)


def _attributes(value: Any) -> Iterable[str]:
    """Return the names of the fields of an object."""
    return (name for name in getattr(value, "__dict__", ()) if not name.startswith("_"))


def _named(field: str, names: Iterable[str]) -> str:
    """Return the names that there are, the one that was probably meant first."""
    close = difflib.get_close_matches(field, names, 1, 0.6)
    return f"did you mean {close[0]!r}?" if close else f"its fields are {', '.join(map(repr, names))}"
