"""Key selections: how a program names the key of a record, as a callable, a `KeySelector` or fields."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.record_functions import FieldKeySelector, KeySelector
from ekorn.graph.specs import KeySpec
from ekorn.program.checks.argument_checks import check_function, check_output_type, check_single_result
from ekorn.types.composite_types import ObjectArrayTypeInfo, PrimitiveArrayTypeInfo, RowTypeInfo, TupleTypeInfo
from ekorn.types.type_information import TypeInformation

KeySelection = Callable[[Any], Any] | KeySelector | int | str | Sequence[int | str]
"""A function, a KeySelector, or fields by position or name."""


def key_spec(call: str, key_selector: KeySelection, key_type: TypeInformation | None) -> KeySpec:
    """Return the arguments of `key_by`, or of a method like it, checked and as a value.

    Args:
        call: The method that the arguments are passed to, for error messages.
        key_selector: A `KeySelector`, a callable of one argument, a field, or a list of fields.
        key_type: The declared type of the key, or None.
    """
    check_output_type(call, key_type, "key_type")
    if key_type is not None and _holds_an_array(key_type):
        raise InvalidProgramError(
            f"{call}(): {key_type} cannot be the type of a key, since it holds an array; use a tuple, or a list"
        )
    selector: Any = key_selector
    if isinstance(selector, (int, str)) and not isinstance(selector, bool):
        selector = FieldKeySelector(selector)
    elif isinstance(selector, (list, tuple)):
        selector = FieldKeySelector(*selector)
    else:
        check_function(call, selector, KeySelector, 1)
        check_single_result(call, selector, "get_key")
    return KeySpec(selector, key_type)


def _holds_an_array(type_info: TypeInformation) -> bool:
    if isinstance(type_info, (TupleTypeInfo, RowTypeInfo)):
        return any(_holds_an_array(field) for field in type_info.get_field_types())
    return isinstance(type_info, (ObjectArrayTypeInfo, PrimitiveArrayTypeInfo))
