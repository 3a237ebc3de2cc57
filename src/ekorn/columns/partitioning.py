"""Divides batches of columns among the subtasks of an exchange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.key_index import KeyIndex
from ekorn.columns.key_words import Grown, Rows
from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.keygroups import key_groups_of, state_key, subtask_of

__all__ = ["KeyRoutes", "divided", "stored_keys"]

_ROUTES_KEPT = 1 << 20  # keys whose target is remembered: some 60 MB


class KeyRoutes:
    """The target subtask of each key, which is computed once.

    Args:
        types: The Arrow types of the key columns.
        keys_of: Returns the keys, as state tables hold them, of key columns.
        max_parallelism: Of the target.
        parallelism: Of the target.
    """

    def __init__(
        self,
        types: Sequence[pa.DataType],
        keys_of: Callable[[Sequence[pa.Array]], list[Any]],
        *,
        max_parallelism: int,
        parallelism: int,
    ) -> None:
        self._types = list(types)
        self._keys_of = keys_of
        self._max_parallelism = max_parallelism
        self._parallelism = parallelism
        self._index = KeyIndex(self._types)
        self._targets = Grown(np.int32)

    def targets(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        """Return the subtask of each row's key."""
        if len(self._index) > _ROUTES_KEPT:
            self._index, self._targets = KeyIndex(self._types), Grown(np.int32)
        rows = self._index.rows(columns)
        known = self._targets.length
        if known < len(self._index):
            new = np.arange(known, len(self._index))
            groups = key_groups_of(self._keys_of(self._index.columns(new)), self._max_parallelism)
            targets = [subtask_of(group, self._max_parallelism, self._parallelism) for group in groups]
            self._targets.extend(np.array(targets, dtype=np.int32))
        found: NDArray[np.int32] = self._targets.values.take(rows)
        return found


def stored_keys(schema: pa.Schema) -> Callable[[Sequence[pa.Array]], list[Any]]:
    """Return a function that makes keys, as state tables hold them, of key columns."""
    columns = RowColumns(row_type_of_arrow(schema))
    return lambda keys: list(map(state_key, columns.values(keys)))


def divided(batch: ColumnBatch, targets: NDArray[Any], parallelism: int) -> list[tuple[int, ColumnBatch]]:
    """Return the rows of each target that has some, in their order."""
    narrow = targets.astype(np.uint16)
    first = int(narrow[0]) if len(narrow) else 0
    if not len(narrow) or not (narrow != first).any():
        return [(first, batch)] if len(batch) else []
    order: Rows = np.argsort(narrow, kind="stable")
    ends = np.cumsum(np.bincount(narrow, minlength=parallelism))
    taken = batch.take(order)
    parts, start = [], 0
    for target, end in enumerate(ends.tolist()):
        if end > start:
            parts.append((target, taken.slice(start, end - start)))
        start = end
    return parts
