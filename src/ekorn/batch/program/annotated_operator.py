"""What a program says of the fields that the function of an operator copies."""

from __future__ import annotations

from typing import Any, Self

from ekorn.batch.plan.partitioning import ForwardedFields
from ekorn.batch.program.data_set_settings import DataSetSettings
from ekorn.batch.program.forwarded_fields import parsed_annotations, parsed_forwarded
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.field_annotations import annotations_of

__all__ = ["AnnotatedOperator"]


class AnnotatedOperator(DataSetSettings):
    """The part of `DataSet` that takes annotations. `functions/data_sets/field_annotations.py` explains them.

    Attributes:
        spec: What the operator does.
        inputs: The operators that it reads.
        forwarded: What the operator itself copies, whatever its function; empty for most.
    """

    spec: Any
    inputs: tuple[Any, ...]
    forwarded: tuple[ForwardedFields, ...] = ()

    def with_forwarded_fields(self, *fields: str) -> Self:
        """Say which fields the function copies unchanged: ``"f0"``, ``"f0->f2"``, ``"*"``."""
        return self._with_forwarded("with_forwarded_fields", 0, 1, fields)

    def with_forwarded_fields_first(self, *fields: str) -> Self:
        """Say which fields of the first input the function copies unchanged."""
        return self._with_forwarded("with_forwarded_fields_first", 0, 2, fields)

    def with_forwarded_fields_second(self, *fields: str) -> Self:
        """Say which fields of the second input the function copies unchanged."""
        return self._with_forwarded("with_forwarded_fields_second", 1, 2, fields)

    def copied_fields(self) -> tuple[ForwardedFields, ...]:
        """Return the fields that are copied from each input; empty if nothing is known.

        Raises:
            InvalidProgramError: An annotation does not fit the types.
        """
        if self.forwarded:
            return self.forwarded
        sides = [self._copied(side) for side in range(len(self.inputs))]
        return tuple([each or ForwardedFields() for each in sides]) if any(sides) else ()

    def _copied(self, side: int) -> ForwardedFields | None:
        given = self._given_fields.get(side)
        input_type = self.inputs[side].get_type()
        if given is not None:
            return parsed_forwarded(self.get_name(), given, input_type, self.get_type())
        annotations = annotations_of(getattr(self.spec, "function", None), side)
        return parsed_annotations(self.get_name(), annotations, input_type, self.get_type())

    def _with_forwarded(self, call: str, side: int, inputs: int, fields: tuple[str, ...]) -> Self:
        function = getattr(self.spec, "function", None)
        if function is None or len(self.inputs) != inputs:
            wanted = "one input" if inputs == 1 else "two inputs"
            raise InvalidProgramError(f"{call}(): {self.get_name()} has no function of {wanted}")
        known = annotations_of(function, side)
        if known.forwarded is not None or known.non_forwarded is not None:
            raise InvalidProgramError(f"{call}(): the function's class declares forwarded fields already; keep one")
        if not fields or not all(isinstance(each, str) for each in fields):
            raise TypeError(f"{call}() takes fields such as 'f0' or 'f0->f1', got {fields!r}")
        self._given_fields[side] = fields
        self._copied(side)  # checks the fields now
        return self
