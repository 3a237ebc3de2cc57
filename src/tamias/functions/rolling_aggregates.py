"""The rolling aggregates of a keyed stream as reduce functions: sum, min, max, min_by, max_by.

None of them changes a record. `sum`, `min` and `max` give the key's first record with one field replaced, so
the other fields stay those of the first record; `min_by` and `max_by` give a whole record that came in.
"""

from __future__ import annotations

from typing import Any

from tamias.errors import preview
from tamias.functions.record_fields import Field, checked_field, read_field, with_field
from tamias.functions.record_functions import ReduceFunction


class OnField(ReduceFunction):
    """An aggregate over one field."""

    operation = ""

    def __init__(self, field: Field = 0) -> None:
        self.field = checked_field(field, f"the field of {self.operation}()")

    def _read(self, value: Any) -> Any:  # hot
        field = self.field
        if type(field) is str and isinstance(value, (tuple, list, dict)) and not hasattr(value, "_fields"):
            # Flink: PyFlink finds fields by name in rows; a tuple has positions, and a dict counts as one value.
            raise TypeError(
                f"{self.operation}({field!r}) on the {type(value).__name__} {preview(value)}: "
                "it has no named fields; give a position, or use rows"
            )
        return read_field(value, field)

    def __repr__(self) -> str:
        return f"{self.operation}({self.field!r})"


class SumFunction(OnField):
    """The key's first record with the field replaced by the sum so far: numbers, or whatever ``+`` adds.

    Example:
        >>> SumFunction(1).reduce(("a", 3, 1), ("a", 4, 9))
        ('a', 7, 1)
    """

    operation = "sum"

    def reduce(self, value1: Any, value2: Any) -> Any:  # hot
        """Add the field of a new record."""
        field = self.field
        if type(value1) is tuple and type(field) is int and field >= 0:  # nearly every sum, in half the time
            try:
                return (*value1[:field], value1[field] + value2[field], *value1[field + 1 :])
            except (TypeError, IndexError):
                pass  # said below in more words
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
    """Compares the field of two records: the smaller wins, or the larger."""

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
    """The key's first record with the field replaced by the smallest so far."""

    operation = "min"

    def reduce(self, value1: Any, value2: Any) -> Any:  # hot
        """Take over the field of a new record when it is smaller."""
        if self._wins(value2, value1):
            return with_field(value1, self.field, read_field(value2, self.field))
        return value1


class MaxFunction(MinFunction):
    """The key's first record with the field replaced by the largest so far."""

    operation = "max"
    larger_wins = True


class MinByFunction(_Extreme):
    """The whole record whose field is the smallest so far.

    Args:
        field: position or name.
        first: of records with equal fields keep the earliest, or else the latest.
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
    """The whole record whose field is the largest so far."""

    operation = "max_by"
    larger_wins = True
