"""The base classes of data types, and of the kinds of numbers."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

__all__ = ["AtomicType", "DataType", "FractionalType", "IntegralType", "NumericType"]


class DataType:
    """The type of the values of a column, with or without None."""

    def __init__(self, nullable: bool = True) -> None:
        self._nullable = nullable

    @classmethod
    def type_name(cls) -> str:
        """Return the name of the type in capitals."""
        return cls.__name__.removesuffix("Type").upper()

    @property
    def is_nullable(self) -> bool:
        """Return whether a value may be None."""
        return self._nullable

    def not_null(self) -> Self:
        """Return this type without None."""
        return self._with(False)

    def nullable(self) -> Self:
        """Return this type with None."""
        return self._with(True)

    def bridged_to(self, conversion_cls: str) -> Self:
        """Return this type. PyFlink: names the Java class of the values; values are Python's here."""
        return self

    def _with(self, nullable: bool) -> Self:
        changed = copy(self)
        changed._nullable = nullable
        return changed

    def _arguments(self) -> tuple[Any, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return type(self), self._nullable, *self._arguments()

    def __str__(self) -> str:
        return type(self).type_name()

    def __repr__(self) -> str:
        arguments = ", ".join([*map(repr, self._arguments()), str(self._nullable).lower()])
        return f"{type(self).__name__}({arguments})"


class AtomicType(DataType):
    """A type that is not composed of other types."""


class NumericType(AtomicType):
    """A type of numbers."""


class IntegralType(NumericType):
    """A type of whole numbers."""

    bits: int


class FractionalType(NumericType):
    """A type of numbers with a fraction."""
