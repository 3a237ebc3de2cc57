"""Checks the keys that a program gives, and turns them into values."""

from __future__ import annotations

import re
from typing import Any

from tamias.batch.plan.keys import FieldKeys, FieldPath, Keys, SelectorKeys
from tamias.errors import InvalidProgramError
from tamias.functions.record_functions import KeySelector
from tamias.program.argument_checks import check_function, check_single_result
from tamias.types.basic_types import BasicTypeInfo
from tamias.types.composite_types import RowTypeInfo, TupleTypeInfo
from tamias.types.pojo import PojoTypeInfo
from tamias.types.type_information import TypeInformation

__all__ = ["checked_keys", "checked_path"]

_TUPLE_NAME = re.compile(r"f(\d+)")
_WHOLE = ("*", "_")  # Flink: the second is Scala's


def checked_keys(call: str, keys: tuple[Any, ...], type_info: TypeInformation | None) -> Keys:
    """Return the keys given to a method.

    Args:
        call: The method, for error messages.
        keys: Positions, names and paths; or one selector.
        type_info: The type of the records, if it is known.

    Raises:
        InvalidProgramError: The records have no such fields, or the arguments are not keys.
    """
    if not keys:
        raise InvalidProgramError(f"{call}() needs a key: positions, names, or a key selector")
    fields = [_is_field(key) for key in keys]
    if all(fields):
        return FieldKeys(tuple([checked_path(call, key, type_info) for key in keys]))
    if any(fields) or len(keys) > 1:
        raise InvalidProgramError(f"{call}() takes fields, or one key selector, and got {', '.join(map(repr, keys))}")
    check_function(call, keys[0], KeySelector, 1)
    check_single_result(call, keys[0], "get_key")
    return SelectorKeys(keys[0])


def checked_path(call: str, field: int | str, type_info: TypeInformation | None) -> FieldPath:
    """Return the path of a field given by position, or by name or names such as ``"user.address.zip"``."""
    if isinstance(field, int):
        return _checked(call, (field,), type_info, repr(field))
    if field in _WHOLE:
        return ()
    names = [name.strip() for name in field.split(".")]
    if names[-1] in _WHOLE:  # Flink: "user.*" are all fields of user
        names = names[:-1]
    if not all(names):
        raise InvalidProgramError(f"{call}(): {field!r} is not a field; write names with points between them")
    return _checked(call, tuple(names), type_info, repr(field))


def _is_field(key: Any) -> bool:
    return isinstance(key, (int, str)) and not isinstance(key, bool)


def _checked(call: str, path: FieldPath, type_info: TypeInformation | None, shown: str) -> FieldPath:
    """Return a path whose steps fit the type as far as it is known; names of a tuple's fields become positions."""
    step, rest = path[0], path[1:]
    inner: TypeInformation | None = None
    match type_info:
        case TupleTypeInfo() | RowTypeInfo():
            step = _position(call, step, type_info, shown) if isinstance(type_info, TupleTypeInfo) else step
            inner = _field_type(call, step, type_info, shown)
        case PojoTypeInfo() if isinstance(step, int):
            raise InvalidProgramError(
                f"{call}(): records of type {type_info} have no positions; use names, not {shown}"
            )
        case BasicTypeInfo():
            raise InvalidProgramError(
                f"{call}(): records of type {type_info} have no fields, so {shown} is not a key; "
                'use "*" for the whole record, or a key selector'
            )
        case _ if isinstance(step, int) and step < 0:
            raise InvalidProgramError(f"{call}(): a position is a number from 0 on, got {shown}")
    return (step, *_checked(call, rest, inner, shown)) if rest else (step,)


def _position(call: str, step: int | str, type_info: TupleTypeInfo, shown: str) -> int:
    if isinstance(step, int):
        return step
    match = _TUPLE_NAME.fullmatch(step)
    if match is None:
        raise InvalidProgramError(
            f"{call}(): {shown} is not a field of {type_info}; the fields of a tuple are f0, f1 and so on"
        )
    return int(match[1])


def _field_type(call: str, step: int | str, type_info: TupleTypeInfo | RowTypeInfo, shown: str) -> TypeInformation:
    types = type_info.get_field_types()
    if isinstance(step, int):
        if not 0 <= step < len(types):
            raise InvalidProgramError(f"{call}(): {shown} is not a field of {type_info}, which has {len(types)} fields")
        return types[step]
    assert isinstance(type_info, RowTypeInfo), "names of a tuple's fields are positions by now"
    if step not in type_info.get_field_names():
        raise InvalidProgramError(
            f"{call}(): {shown} is not a field of {type_info}; its fields are {type_info.get_field_names()}"
        )
    return types[type_info.get_field_index(step)]
