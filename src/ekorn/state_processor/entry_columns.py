"""The columns of rows of keyed state: those of each shape of entries, and checks of columns that are written.

`columns_of` is the state processor's column of the table of kinds (`state/kinds.py`): it depends on the shape of the
entries alone, so a kind of state with a known shape needs nothing here.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ekorn.errors import ConfigurationError, StateError
from ekorn.functions.state.state_descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.state.entry_shapes import LIST, MAP, EntryShape
from ekorn.state.kinds import shape_of
from ekorn.types.data_type import DataType
from ekorn.types.data_type_info import type_info_of
from ekorn.types.data_types import ArrayType, DataTypes, IntegralType, MapType, RowType, VarCharType

__all__ = [
    "COLLECTIONS",
    "ShapeColumns",
    "check_text",
    "check_whole",
    "checked_columns",
    "columns_for",
    "columns_of",
    "element_of",
    "window_of",
]


class ColumnParts(NamedTuple):
    """The types that a column of whole entries is made of."""

    value: DataType
    map_key: DataType | None = None


class ShapeColumns(ABC):
    """The columns of the entries of one shape.

    Attributes:
        whole: The column of a row for each entry.
        flat: The columns of a row for each value in an entry.
        collection: The class of an entry as the program sees it; None if it is any value.
    """

    whole: str
    flat: tuple[str, ...]
    collection: type[list[Any]] | type[dict[Any, Any]] | None = None

    @abstractmethod
    def whole_type(self, value: DataType | None, map_key: DataType | None) -> DataType | None:
        """Return the type of the column `whole`, by the types of one value and of a map's keys; None for unknown."""

    def flat_types(self, value: DataType | None, map_key: DataType | None) -> tuple[DataType | None, ...]:
        """Return the types of the columns `flat`."""
        return (value,)

    @abstractmethod
    def parts(self, column: DataType) -> ColumnParts:
        """Return what the type of a column `whole` is made of.

        Raises:
            ConfigurationError: The column is not of this shape.
        """

    @abstractmethod
    def descriptor(self, name: str, column: DataType) -> StateDescriptor:
        """Declare a state by the type of its column `whole`."""

    @abstractmethod
    def rows(self, entry: Any, stamps: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the flat rows of an entry, each with its stamp or None."""

    @abstractmethod
    def values(self, entry: Any) -> Iterable[Any]:
        """Return the values in an entry."""

    def map_keys(self, entry: Any) -> Iterable[Any]:
        """Return the keys in an entry that is a map."""
        return ()


class _ValueColumns(ShapeColumns):
    whole = "value"
    flat = ("value",)

    def whole_type(self, value: DataType | None, map_key: DataType | None) -> DataType | None:
        return value

    def parts(self, column: DataType) -> ColumnParts:
        return ColumnParts(column)

    def descriptor(self, name: str, column: DataType) -> StateDescriptor:
        return ValueStateDescriptor(name, type_info_of(column))

    def rows(self, entry: Any, stamps: Any) -> Iterator[tuple[Any, ...]]:
        yield entry, stamps

    def values(self, entry: Any) -> Iterable[Any]:
        return (entry,)


class _ListColumns(ShapeColumns):
    whole = "list_value"
    flat = ("list_element",)
    collection = list

    def whole_type(self, value: DataType | None, map_key: DataType | None) -> DataType | None:
        return None if value is None else DataTypes.ARRAY(value)

    def parts(self, column: DataType) -> ColumnParts:
        return ColumnParts(element_of(self.whole, column))

    def descriptor(self, name: str, column: DataType) -> StateDescriptor:
        return ListStateDescriptor(name, type_info_of(self.parts(column).value))

    def rows(self, entry: Any, stamps: Any) -> Iterator[tuple[Any, ...]]:
        yield from zip(entry, stamps or [None] * len(entry), strict=True)

    def values(self, entry: Any) -> Iterable[Any]:
        elements: Iterable[Any] = entry
        return elements


class _MapColumns(ShapeColumns):
    whole = "map_value"
    flat = ("user_map_key", "user_map_value")
    collection = dict

    def whole_type(self, value: DataType | None, map_key: DataType | None) -> DataType | None:
        return None if value is None or map_key is None else DataTypes.MAP(map_key.not_null(), value)

    def flat_types(self, value: DataType | None, map_key: DataType | None) -> tuple[DataType | None, ...]:
        return map_key, value

    def parts(self, column: DataType) -> ColumnParts:
        if not isinstance(column, MapType):
            raise ConfigurationError(f"the column {self.whole!r} is {column}, and its values must be maps")
        return ColumnParts(column.value_type, column.key_type)

    def descriptor(self, name: str, column: DataType) -> StateDescriptor:
        value, map_key = self.parts(column)
        assert map_key is not None, "the column is a map"
        return MapStateDescriptor(name, type_info_of(map_key), type_info_of(value))

    def rows(self, entry: Any, stamps: Any) -> Iterator[tuple[Any, ...]]:
        for key, each in entry.items():
            yield key, each, None if stamps is None else stamps[key]

    def values(self, entry: Any) -> Iterable[Any]:
        values: Iterable[Any] = entry.values()
        return values

    def map_keys(self, entry: Any) -> Iterable[Any]:
        keys: Iterable[Any] = entry
        return keys


_ONE_VALUE = _ValueColumns()
COLLECTIONS: dict[EntryShape, ShapeColumns] = {LIST: _ListColumns(), MAP: _MapColumns()}
"""The columns of the shapes that have several values in an entry."""


def columns_of(kind: str) -> ShapeColumns:
    """Return the columns of a state, by the kind in its description."""
    return COLLECTIONS.get(shape_of(kind), _ONE_VALUE)


def columns_for(data_type: DataType) -> ShapeColumns:
    """Return the columns of the state that a column of this type stands for."""
    match data_type:
        case ArrayType():
            return COLLECTIONS[LIST]
        case MapType():
            return COLLECTIONS[MAP]
        case _:
            return _ONE_VALUE


def checked_columns(
    row_type: RowType, what: str, *, needed: tuple[str, ...], optional: tuple[str, ...]
) -> dict[str, DataType]:
    """Return the types of the columns by name, after checking which there are.

    Raises:
        ConfigurationError: A needed column is missing, or one is neither needed nor optional.
    """
    types = dict(zip(row_type.field_names(), row_type.field_types(), strict=True))
    missing = [column for column in needed if column not in types]
    unknown = [column for column in types if column not in (*needed, *optional)]
    if missing or unknown:
        wrong = f"has no column {missing[0]!r}" if missing else f"has a column {unknown[0]!r}"
        raise ConfigurationError(
            f"the DataFrame {wrong}: rows of {what} have {', '.join(needed)}, and may have {', '.join(optional)}"
        )
    return types


def check_text(column: str, data_type: DataType) -> None:
    """Refuse a column that is not text."""
    if not isinstance(data_type, VarCharType):
        raise ConfigurationError(f"the column {column!r} is {data_type}, and its values must be text")


def check_whole(column: str, data_type: DataType) -> None:
    """Refuse a column that is not of whole numbers."""
    if not isinstance(data_type, IntegralType):
        raise ConfigurationError(f"the column {column!r} is {data_type}, and its values must be whole numbers")


def element_of(column: str, data_type: DataType) -> DataType:
    """Return the type of the elements of a column of arrays."""
    if not isinstance(data_type, ArrayType):
        raise ConfigurationError(f"the column {column!r} is {data_type}, and its values must be arrays")
    return data_type.element_type


def window_of(text: str) -> Any:
    """Return the window that a namespace stands for.

    >>> window_of("(0, 20)"), window_of("()"), window_of("7")
    ((0, 20), (), 7)
    """
    try:
        window = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        window = None
    parts = window if isinstance(window, tuple) else (window,)
    if all(type(part) in (int, str, bytes) for part in parts) and not isinstance(window, str):
        return window
    raise StateError(
        f"{text!r} is not a window: write a time window as '(start_ms, end_ms)', the global window as '()', a count "
        "window as its number, and a window of your own class as the bytes of its serializer, b'...'"
    )
