"""Runs in Spark's Python processes: the values of Spark's rows as a program has them."""

from __future__ import annotations

from typing import Any

from tamias.types.row import Row

__all__ = ["plain_row"]


def plain_row(row: Any) -> dict[str, Any]:
    """Return the values of a row by the names of their columns: rows of Tamias, lists and dicts."""
    return {name: _value(value) for name, value in zip(row.__fields__, row, strict=True)}


def _value(value: Any) -> Any:
    if hasattr(value, "__fields__"):
        return Row(**plain_row(value))
    if isinstance(value, list):
        return [_value(each) for each in value]
    if isinstance(value, dict):
        return {_value(key): _value(each) for key, each in value.items()}
    return value
