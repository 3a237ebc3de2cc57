"""Tells apart the values of a column before each of them is looked up, where few of them are distinct."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["DistinctFirst"]

_FEWEST_ROWS = 1024
_ROWS_PER_VALUE = 3  # with fewer rows for each distinct value, it is cheaper to look up all rows
_LONGEST_PAUSE = 64


class DistinctFirst:
    """Encodes columns by their distinct values, and pauses where that did not pay."""

    __slots__ = ("_left", "_pause")

    def __init__(self) -> None:
        self._pause = 1  # batches until the next attempt, if one does not pay
        self._left = 0

    def of(self, column: pa.Array) -> tuple[pa.Array, NDArray[Any]] | None:
        """Return the distinct values of a column in the order in which they come, and the value of each row.

        None if the column is to be taken as it is. A null is a value.
        """
        if len(column) < _FEWEST_ROWS or not _is_encoded_fast(column.type):
            return None
        if self._left:
            self._left -= 1
            return None
        encoded = column.dictionary_encode("encode")
        if len(encoded.dictionary) * _ROWS_PER_VALUE > len(column):
            self._left = self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        else:
            self._pause = 1
        return encoded.dictionary, encoded.indices.to_numpy()


def _is_encoded_fast(kind: pa.DataType) -> bool:
    """Return whether Arrow tells values apart as keys are told apart: floats are not, because of their zeros."""
    t = pa.types
    texts = t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind)
    return bool(texts or t.is_integer(kind) or t.is_date(kind) or t.is_timestamp(kind))
