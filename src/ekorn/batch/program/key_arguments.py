"""Checks the keys that a program gives, and turns them into values."""

from __future__ import annotations

import re
from typing import Any

from ekorn.batch.plan.data_set_specs import Order, SortField
from ekorn.batch.plan.record_keys import FieldKeys, FieldPath, Keys, SelectorKeys
from ekorn.errors import InvalidProgramError
from ekorn.functions.record_functions import KeySelector, Partitioner
from ekorn.program.checks.argument_checks import check_function, check_single_result
from ekorn.types.basic_types import BasicTypeInfo
from ekorn.types.composite_types import RowTypeInfo, TupleTypeInfo
from ekorn.types.factory import Types
from ekorn.types.pojo import PojoTypeInfo
from ekorn.types.type_information import TypeInformation

__all__ = [
    "check_keys_match",
    "checked_keys",
    "checked_partitioner",
    "checked_path",
    "checked_positions",
    "checked_sort_field",
    "type_at",
]

_TUPLE_NAME = re.compile(r"f(\d+)")
_WHOLE = ("*", "_")  # Flink: the second form is Scala's


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
    if names[-1] in _WHOLE:  # Flink: "user.*" means all fields of user
        names = names[:-1]
    if not all(names):
        raise InvalidProgramError(f"{call}(): {field!r} is not a field; write names separated by points")
    return _checked(call, tuple(names), type_info, repr(field))


def checked_positions(call: str, fields: tuple[Any, ...], type_info: TypeInformation | None) -> tuple[int, ...]:
    """Return positions of fields, given to a method that takes positions alone."""
    if not fields or not all(isinstance(field, int) and _is_field(field) for field in fields):
        raise InvalidProgramError(f"{call}() takes positions of fields, got {', '.join(map(repr, fields)) or 'none'}")
    checked_keys(call, fields, type_info)
    return fields


def checked_sort_field(call: str, field: Any, order: Any, type_info: TypeInformation | None) -> SortField:
    """Return what a method sorts by: a field or a selector, and a direction."""
    if not isinstance(order, Order):
        raise InvalidProgramError(f"{call}() takes Order.ASCENDING or Order.DESCENDING, got {order!r}")
    keys = checked_keys(call, (field,), type_info)
    return SortField(keys.paths[0] if isinstance(keys, FieldKeys) else keys.function, order)


def checked_partitioner(call: str, partitioner: Any, keys: Keys) -> None:
    """Check a custom partitioner, and that its key is one field or a selector."""
    if isinstance(keys, FieldKeys) and len(keys.paths) != 1:
        raise InvalidProgramError(f"{call}(): a partitioner works with one key field, and there are {len(keys.paths)}")
    check_function(call, partitioner, Partitioner, 2)
    check_single_result(call, partitioner, "partition")


def check_keys_match(
    call: str, first: Keys, first_type: TypeInformation | None, second: Keys, second_type: TypeInformation | None
) -> None:
    """Check that the keys of two inputs can be equal: as many fields, of the same types as far as they are known."""
    if not (isinstance(first, FieldKeys) and isinstance(second, FieldKeys)):
        return
    if len(first.paths) != len(second.paths):
        raise InvalidProgramError(
            f"{call}(): the first key has {len(first.paths)} fields ({first}), "
            f"and the second has {len(second.paths)} ({second})"
        )
    for one, other in zip(first.paths, second.paths, strict=True):
        ours, theirs = type_at(first_type, one), type_at(second_type, other)
        if ours is not None and theirs is not None and _family(ours) != _family(theirs):
            raise InvalidProgramError(
                f"{call}(): the keys have different types, {ours} and {theirs}, so they never match"
            )


def type_at(type_info: TypeInformation | None, path: FieldPath) -> TypeInformation | None:
    """Return the type of a field if it is known; fields that may hold anything have none."""
    for step in path:
        if not isinstance(type_info, TupleTypeInfo | RowTypeInfo):
            return None
        position = step if isinstance(step, int) else type_info.get_field_index(step)  # type: ignore[union-attr]
        type_info = type_info.get_field_types()[position]
    return None if type_info == Types.PICKLED_BYTE_ARRAY() else type_info


_FAMILIES = {
    **dict.fromkeys((Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT()), "int"),
    **dict.fromkeys((Types.FLOAT(), Types.DOUBLE()), "float"),
}


def _family(type_info: TypeInformation) -> object:
    """Return the value by which types are compared: integers of all sizes are equal."""
    return _FAMILIES.get(type_info, type_info)


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
            raise InvalidProgramError(f"{call}(): a position must be at least 0, got {shown}")
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
