"""`TypeInformation`: the base of all types.

A type has three tasks at run time. `conform` checks and converts the records that leave a chain of functions, a whole
run at once. `narrow` converts one value as a typed `from_collection` does. `text` and `file_text` write a record as
`print` and text sinks do. Records are converted where PyFlink serializes them, never between chained functions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import countOf
from typing import Any

from ekorn.errors import RecordTypeError, preview

__all__ = ["Misfit", "ResultTypeQueryable", "TypeInformation", "all_are", "fit_nullable"]

Column = Sequence[Any]


class Misfit(Exception):
    """A value does not fit a type. Internal: the caller that knows the record raises a :class:`RecordTypeError`."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)

    def inside(self, place: str) -> Misfit:
        """Return the same misfit with the place of the value inside the value around it."""
        reason, path = self.args
        return Misfit(reason, (place, *path))

    def __str__(self) -> str:
        reason, path = self.args
        return f"{' of '.join(reversed(path))}: {reason}" if path else str(reason)


class TypeInformation:
    """The type of a stream's records, or of a field inside them."""

    def need_conversion(self) -> bool:
        """Return whether the stored form of a value differs from the value."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """Return the stored form of a value."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """Return the value that a stored form stands for."""
        return obj

    def is_immutable(self) -> bool:
        """Return whether no value of this type can be changed after it was emitted or stored."""
        return False

    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert a run of values that leave a chain of functions.

        Returns:
            ``values`` itself when nothing had to change, else a new list.

        Raises:
            RecordTypeError: A value does not fit this type.
        """
        try:
            fitted = self._fit_alone(values)
        except Misfit:
            raise self._first_misfit(values) from None
        return fitted if isinstance(fitted, list) else list(fitted)

    def narrow(self, value: Any) -> Any:
        """Convert one value as a typed ``from_collection`` does: integers wrap around, tuples become rows.

        Raises:
            RecordTypeError: The value cannot be read as this type.
        """
        try:
            return self._narrow(value)
        except Misfit as misfit:
            raise RecordTypeError(str(self), preview(value), str(misfit)) from None

    def collected(self, value: Any) -> Any:
        """Return a record of this type in the form in which ``execute_and_collect`` returns it."""
        return value

    def text(self, value: Any) -> str:
        """Return the line that ``print`` writes for a record of this type."""
        return self.file_text(value)

    def file_text(self, value: Any) -> str:
        """Return the line that a text sink writes for a record; it is also the record's form inside other records."""
        return "null" if value is None else str(value)

    def _first_misfit(self, values: list[Any]) -> RecordTypeError:
        # The bulk check finds that a column is bad, but not which record. Checking one by one costs only on failure.
        for value in values:
            try:
                self._fit_alone([value])
            except Misfit as misfit:
                return RecordTypeError(str(self), preview(value), str(misfit))
        raise AssertionError(f"{self} refused a run of values but none of them alone")

    def _fit_alone(self, column: Column) -> Column:
        """Do what `_fit` does, for values that are whole records and not fields of a record."""
        return self._fit(column)

    def _fit(self, column: Column) -> Column:
        """Return ``column`` itself if all values fit unchanged, else the converted column; raise :class:`Misfit`."""
        return column

    def _narrow(self, value: Any) -> Any:
        return self._fit([value])[0]

    def _identity(self) -> tuple[Any, ...]:
        """Return the values by which two types of one class are compared."""
        return ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TypeInformation):
            return NotImplemented
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self), self._identity()))

    def __repr__(self) -> str:
        return type(self).__name__


def all_are(kind: type, column: Column) -> bool:  # hot
    """Return whether every value is exactly of this class. Counting in C is a third faster than a set of types."""
    return countOf(map(type, column), kind) == len(column)


def fit_nullable(type_info: TypeInformation, column: Column) -> Column:
    """Do what `_fit` does, for a column in which None is allowed and stays None."""
    try:
        return type_info._fit(column)  # most columns hold no None, so None is looked for only after a misfit
    except Misfit:
        if not countOf(map(type, column), type(None)):
            raise
    present = [value for value in column if value is not None]
    fitted = type_info._fit(present)
    if fitted is present:
        return column
    following = iter(fitted)
    return [None if value is None else next(following) for value in column]


class ResultTypeQueryable(ABC):
    """A source or a schema that knows the type of its records."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
