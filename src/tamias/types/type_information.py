"""What every type can do: the base of basic and composite types.

A type has three jobs at run time. `conform` checks and converts what a chain of functions hands on, a whole run of
records at once; `narrow` does what a typed `from_collection` does to one value; `text` and `file_text` write a record
as `print` and as text sinks do. Conversion happens where PyFlink serializes, never between chained functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import countOf
from typing import Any

from tamias.errors import RecordTypeError, preview

__all__ = ["Misfit", "TypeInformation", "all_are", "fit_nullable"]

Column = Sequence[Any]


class Misfit(Exception):
    """A value does not fit; internal, turned into :class:`RecordTypeError` once the record is known."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)

    def inside(self, place: str) -> Misfit:
        """The same misfit seen from the value around it."""
        reason, path = self.args
        return Misfit(reason, (place, *path))

    def __str__(self) -> str:
        reason, path = self.args
        return f"{' of '.join(reversed(path))}: {reason}" if path else str(reason)


class TypeInformation:
    """The type of a stream's records, or of a field inside them."""

    def need_conversion(self) -> bool:
        """Whether values differ between what user code sees and what is stored."""
        return False

    def to_internal_type(self, obj: Any) -> Any:
        """The stored form of a value."""
        return obj

    def from_internal_type(self, obj: Any) -> Any:
        """The value of a stored form."""
        return obj

    def is_immutable(self) -> bool:
        """Whether values that conform to this type can never be changed by code that still holds them."""
        return False

    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert a run of values leaving a chain of functions.

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
        """What a typed ``from_collection`` makes of one value: integers wrap around, tuples become rows.

        Raises:
            RecordTypeError: The value cannot be read as this type.
        """
        try:
            return self._narrow(value)
        except Misfit as misfit:
            raise RecordTypeError(str(self), preview(value), str(misfit)) from None

    def collected(self, value: Any) -> Any:
        """What ``execute_and_collect`` gives for a record of this type."""
        return value

    def text(self, value: Any) -> str:
        """The line ``print`` writes for a record of this type."""
        return self.file_text(value)

    def file_text(self, value: Any) -> str:
        """The line a text sink writes for a record of this type, which is also its form inside other records."""
        return "null" if value is None else str(value)

    def _first_misfit(self, values: list[Any]) -> RecordTypeError:
        # The bulk check knows that a column is bad, not which record. Going one by one costs only on the way out.
        for value in values:
            try:
                self._fit_alone([value])
            except Misfit as misfit:
                return RecordTypeError(str(self), preview(value), str(misfit))
        raise AssertionError(f"{self} refused a run of values but none of them alone")

    def _fit_alone(self, column: Column) -> Column:
        """`_fit` for values that are whole records, not fields of one."""
        return self._fit(column)

    def _fit(self, column: Column) -> Column:
        """``column`` itself when all of it fits as it is, else the converted column; raises :class:`Misfit`."""
        return column

    def _narrow(self, value: Any) -> Any:
        return self._fit([value])[0]

    def _identity(self) -> tuple[Any, ...]:
        """What two equal types have in common."""
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
    """Whether every value is exactly of this class; counting in C beats a set of types by a third."""
    return countOf(map(type, column), kind) == len(column)


def fit_nullable(type_info: TypeInformation, column: Column) -> Column:
    """`_fit` for a column in which None is allowed and stays None."""
    try:
        return type_info._fit(column)  # most columns hold no None, so look for it only when something is wrong
    except Misfit:
        if not countOf(map(type, column), type(None)):
            raise
    present = [value for value in column if value is not None]
    fitted = type_info._fit(present)
    if fitted is present:
        return column
    following = iter(fitted)
    return [None if value is None else next(following) for value in column]
