"""Key selections: how a program names the key of a record, as a callable, a `KeySelector` or fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.record_functions import FieldKeySelector, KeySelector
from ekorn.graph.specs import KeySpec
from ekorn.program.checks.argument_checks import check_function, check_output_type, check_single_result
from ekorn.types.composite_types import (
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from ekorn.types.type_information import TypeInformation

KeySelection = Callable[[Any], Any] | KeySelector | int | str | Sequence[int | str]
"""A function, a KeySelector, or fields by position or name."""


def key_spec(
    call: str,
    key_selector: KeySelection,
    key_type: TypeInformation | None,
    record_type: TypeInformation | None = None,
) -> KeySpec:
    """Return the arguments of `key_by`, or of a method like it, checked and as a value.

    A list is a key, as in PyFlink: equal lists are one key. What is declared as an array or a map is none, as in Flink.

    Args:
        call: The method that the arguments are passed to, for error messages.
        key_selector: A `KeySelector`, a callable of one argument, a field, or a list of fields.
        key_type: The declared type of the key, or None.
        record_type: The declared type of the records, or None.
    """
    check_output_type(call, key_type, "key_type")
    if key_type is not None and (unfit := _unfit_for_keys(key_type)):
        raise InvalidProgramError(
            f"{call}(): {key_type} cannot be the type of a key, since it holds {unfit}; use a tuple, or a list"
        )
    selector: Any = key_selector
    if isinstance(selector, (int, str)) and not isinstance(selector, bool):
        selector = FieldKeySelector(selector)
    elif isinstance(selector, (list, tuple)):
        selector = FieldKeySelector(*selector)
    else:
        check_function(call, selector, KeySelector, 1)
        check_single_result(call, selector, "get_key")
    if isinstance(selector, FieldKeySelector):
        _check_fields(call, selector, record_type)
    return KeySpec(selector, key_type)


def _check_fields(call: str, selector: FieldKeySelector, record_type: TypeInformation | None) -> None:
    """Refuse a field that is no key by its type, as far as the type is known."""
    for field in selector.fields:
        declared = _type_of(record_type, field)
        if declared is not None and (unfit := _unfit_for_keys(declared)):
            raise InvalidProgramError(
                f"{call}(): field {field!r} of {record_type} cannot be a key, since it holds {unfit}; select a key "
                "with a function that makes a tuple of it"
            )


def _type_of(record_type: TypeInformation | None, field: int | str) -> TypeInformation | None:
    if not isinstance(record_type, TupleTypeInfo | RowTypeInfo):
        return None
    types = record_type.get_field_types()
    if isinstance(field, str):
        names = record_type.get_field_names() if isinstance(record_type, RowTypeInfo) else []
        field = names.index(field) if field in names else len(types)
    return types[field] if -len(types) <= field < len(types) else None


def _unfit_for_keys(type_info: TypeInformation) -> str | None:
    """Return what makes values of a type unfit for keys; None if they are fit."""
    if isinstance(type_info, (TupleTypeInfo, RowTypeInfo)):
        return next(filter(None, map(_unfit_for_keys, type_info.get_field_types())), None)
    if isinstance(type_info, MapTypeInfo):
        return "a map"
    return "an array" if isinstance(type_info, (ObjectArrayTypeInfo, PrimitiveArrayTypeInfo)) else None
