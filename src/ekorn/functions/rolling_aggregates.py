"""The rolling aggregates of a keyed stream as reduce functions: sum, min, max, min_by, max_by.

No aggregate changes a record. `sum`, `min` and `max` return the first record of the key with one field replaced, so
the other fields stay those of the first record. `min_by` and `max_by` return a whole record of the input.
"""

from __future__ import annotations

from typing import Any

from ekorn.errors import preview
from ekorn.functions.record_fields import Field, checked_field, read_field, with_field
from ekorn.functions.record_functions import ReduceFunction


class OnField(ReduceFunction):
    """An aggregate over one field."""

    operation = ""

    def __init__(self, field: Field = 0) -> None:
        self.field = checked_field(field, f"the field of {self.operation}()")

    def _read(self, value: Any) -> Any:  # hot
        field = self.field
        if type(field) is str and isinstance(value, (tuple, list, dict)) and not hasattr(value, "_fields"):
            # Flink: PyFlink finds fields by name in rows only. A tuple has positions, and a dict is one value.
            raise TypeError(
                f"{self.operation}({field!r}) on the {type(value).__name__} {preview(value)}: "
                "it has no named fields; give a position, or use rows"
            )
        return read_field(value, field)

    def __repr__(self) -> str:
        return f"{self.operation}({self.field!r})"


class SumFunction(OnField):
    """Returns the first record of the key with the field replaced by the sum so far; any values that ``+`` adds.

    Example:
        >>> SumFunction(1).reduce(("a", 3, 1), ("a", 4, 9))
        ('a', 7, 1)
    """

    operation = "sum"

    def reduce(self, value1: Any, value2: Any) -> Any:  # hot
        """Add the field of a new record."""
        field = self.field
        if type(value1) is tuple and type(field) is int and field >= 0:  # the usual case takes half the time this way
            try:
                return (*value1[:field], value1[field] + value2[field], *value1[field + 1 :])
            except (TypeError, IndexError):
                pass  # the general path below raises an error that names the records
        total, term = self._read(value1), self._read(value2)
        try:
            added = total + term
        except TypeError as error:
            raise TypeError(
                f"sum({field!r}) cannot add {preview(total)} and {preview(term)} "
                f"of records {preview(value1)} and {preview(value2)}: {error}"
            ) from None
        return with_field(value1, field, added)


class _Extreme(OnField):
    """Compares the field of two records; the smaller or the larger field wins."""

    larger_wins = False

    def _wins(self, new: Any, old: Any) -> bool:  # hot
        new_field, old_field = self._read(new), self._read(old)
        try:
            return bool(new_field > old_field if self.larger_wins else new_field < old_field)
        except TypeError as error:
            raise TypeError(
                f"{self.operation}({self.field!r}) cannot compare {preview(new_field)} with {preview(old_field)} "
                f"in records {preview(new)} and {preview(old)}: {error}"
            ) from None


class MinFunction(_Extreme):
    """Returns the first record of the key with the field replaced by the smallest value so far."""

    operation = "min"

    def reduce(self, value1: Any, value2: Any) -> Any:  # hot
        """Replace the field if the field of the new record wins."""
        if self._wins(value2, value1):
            return with_field(value1, self.field, read_field(value2, self.field))
        return value1


class MaxFunction(MinFunction):
    """Returns the first record of the key with the field replaced by the largest value so far."""

    operation = "max"
    larger_wins = True


class MinByFunction(_Extreme):
    """Returns the record whose field is the smallest so far.

    Args:
        field: The position or name of the field.
        first: Whether the earliest of several records with equal fields is kept, rather than the latest.
    """

    operation = "min_by"

    def __init__(self, field: Field = 0, first: bool = True) -> None:
        super().__init__(field)
        self.first = first

    def reduce(self, value1: Any, value2: Any) -> Any:  # hot
        """Choose between the record so far and a new one."""
        if self.first:
            return value2 if self._wins(value2, value1) else value1
        return value1 if self._wins(value1, value2) else value2


class MaxByFunction(MinByFunction):
    """Returns the record whose field is the largest so far."""

    operation = "max_by"
    larger_wins = True
