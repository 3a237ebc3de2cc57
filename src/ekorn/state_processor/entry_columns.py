"""Checks the columns of rows from which entries of keyed state are made, and reads their windows."""

from __future__ import annotations

import ast
from typing import Any

from ekorn.errors import ConfigurationError, StateError
from ekorn.types.data_type import DataType
from ekorn.types.data_types import ArrayType, IntegralType, RowType, VarCharType

__all__ = ["check_text", "check_whole", "checked_columns", "element_of", "window_of"]


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
        f"{text!r} is no window: a window of time is '(start_ms, end_ms)', the global window '()', a window of a count "
        "its number, and a window of a class of the program the bytes of its serializer, as in b'...'"
    )
