"""The keys of windows on columns: the values of some columns, or one key for all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.columns.row_columns import RowColumns
from ekorn.graph.column_specs import WindowAggregateSpec
from ekorn.state.column_table import KeyValues
from ekorn.types.data_types import RowType

__all__ = ["WindowKeys", "window_keys"]


class WindowKeys:
    """The values of some columns, as a tuple.

    Attributes:
        types: The types of the key columns.
        values: The conversion between key columns and keys as state tables hold them.
    """

    def __init__(self, names: Sequence[str], types: Sequence[pa.DataType], values: KeyValues) -> None:
        self._names = names
        self.types = types
        self.values = values

    def columns(self, data: pa.RecordBatch) -> list[pa.Array]:
        """Return the key columns of a batch."""
        return [data.column(name) for name in self._names]

    def shown(self, columns: list[pa.Array]) -> list[pa.Array]:
        """Return those of the key columns that results have."""
        return columns


class _OneKey(WindowKeys):
    """The key 0, which all rows of `window_all` share."""

    def __init__(self) -> None:
        super().__init__((), [pa.int8()], _OneKeyValues())

    def columns(self, data: pa.RecordBatch) -> list[pa.Array]:
        return [pa.array(np.zeros(data.num_rows, dtype=np.int8))]

    def shown(self, columns: list[pa.Array]) -> list[pa.Array]:
        return []


class _OneKeyValues(KeyValues):
    def __init__(self) -> None:
        super().__init__(RowType([]))

    def keys(self, columns: Sequence[pa.Array]) -> list[Any]:
        keys: list[Any] = columns[0].to_pylist()
        return keys

    def columns(self, stored: Sequence[Any]) -> list[pa.Array]:
        return [pa.array(stored, pa.int8())]


def window_keys(spec: WindowAggregateSpec) -> WindowKeys:
    """Return the keys of windows; without key columns all rows have one key."""
    if not spec.keys:
        return _OneKey()
    key_type = RowType([spec.input_type[name] for name in spec.keys])
    return WindowKeys(spec.keys, RowColumns(key_type).schema.types, KeyValues(key_type))
