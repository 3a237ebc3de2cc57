"""Turns annotations of fields into what the planner knows of an operator, checked against the types."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ekorn.batch.plan.partitioning import ForwardedFields
from ekorn.batch.plan.record_keys import FieldPath
from ekorn.batch.program.key_arguments import checked_path, type_at
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.field_annotations import FieldAnnotations
from ekorn.types.type_information import TypeInformation

__all__ = ["parsed_annotations", "parsed_forwarded"]

_POSITION = re.compile(r"f?(\d+)")


def parsed_annotations(
    call: str, annotations: FieldAnnotations, input_type: TypeInformation | None, output_type: TypeInformation | None
) -> ForwardedFields | None:
    """Return what the annotations of a function say of one input; None if they say nothing of copies.

    Raises:
        InvalidProgramError: A field does not exist, or is copied to a place of another type.
    """
    for field in _expressions(annotations.read or ()):
        _path(call, field, input_type)
    if annotations.forwarded is not None:
        return parsed_forwarded(call, annotations.forwarded, input_type, output_type)
    if annotations.non_forwarded is None:
        return None
    if input_type is not None and output_type is not None and input_type != output_type:
        raise InvalidProgramError(
            f"{call}: non-forwarded fields need an output of the input's type {input_type}, and it is {output_type}"
        )
    changed = [_path(call, field, input_type) for field in _expressions(annotations.non_forwarded)]
    return ForwardedFields(everything=True, changed=frozenset(changed))


def parsed_forwarded(
    call: str, fields: Sequence[str], input_type: TypeInformation | None, output_type: TypeInformation | None
) -> ForwardedFields:
    """Return the copies that expressions such as ``"f0; f1->f2"`` describe.

    Raises:
        InvalidProgramError: A field does not exist, or is copied to a place of another type.
    """
    moved: dict[FieldPath, tuple[FieldPath, ...]] = {}
    for expression in _expressions(fields):
        source, arrow, target = (part.strip() for part in expression.partition("->"))
        before = _path(call, source, input_type)
        after = _path(call, target if arrow else source, output_type)
        types = type_at(input_type, before), type_at(output_type, after)
        if None not in types and types[0] != types[1]:
            raise InvalidProgramError(
                f"{call}: {expression!r} copies a field of type {types[0]} to one of type {types[1]}"
            )
        moved[before] = (*moved.get(before, ()), after)
    if moved.get(()) == ((),):
        return ForwardedFields(everything=True)
    return ForwardedFields(moved)


def _expressions(fields: Sequence[str]) -> list[str]:
    return [part.strip() for text in fields for part in text.split(";") if part.strip()]


def _path(call: str, field: str, type_info: TypeInformation | None) -> FieldPath:
    if not field:
        raise InvalidProgramError(f"{call}: a field is missing; write 'f0', 'f0->f1' or '*'")
    if type_info is None and (position := _POSITION.fullmatch(field)):
        return (int(position[1]),)
    return checked_path(call, field, type_info)
