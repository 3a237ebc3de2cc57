"""Divides batches of columns among the subtasks of an exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.distinct_first import DistinctFirst
from ekorn.columns.key_words import Rows
from ekorn.columns.stable_hashes import hasher_of, hashes_of_tuples, key_groups_of_hashes
from ekorn.keygroups import subtask_of

__all__ = ["KeyRoutes", "divided"]


class KeyRoutes:
    """The target subtask of each row, by the key in its key columns. The key groups are those of `keygroups.py`.

    Args:
        schema: The key columns.
        max_parallelism: Of the target.
        parallelism: Of the target.
    """

    def __init__(self, schema: pa.Schema, *, max_parallelism: int, parallelism: int) -> None:
        self._hashers = [hasher_of(field) for field in schema]
        self._max_parallelism = max_parallelism
        targets = [subtask_of(group, max_parallelism, parallelism) for group in range(max_parallelism)]
        self._targets = np.array(targets, dtype=np.int32)
        self._distinct = DistinctFirst()

    def targets(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        """Return the subtask of each row's key."""
        encoded = self._distinct.of(columns[0]) if len(columns) == 1 else None
        if encoded is None:
            return self._targets_of_all(columns)
        distinct, rows = encoded
        return self._targets_of_all([distinct]).take(rows)

    def _targets_of_all(self, columns: Sequence[pa.Array]) -> NDArray[np.int32]:
        fields = [hashes(column) for hashes, column in zip(self._hashers, columns, strict=True)]
        found: NDArray[np.int32] = self._targets.take(
            key_groups_of_hashes(hashes_of_tuples(fields), self._max_parallelism)
        )
        return found


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
