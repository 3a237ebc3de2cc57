"""The share of a subtask of stored batches of columns, after rescaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ekorn.columns.column_batch import ColumnBatch
from ekorn.columns.partitioning import KeyRoutes
from ekorn.subtask.in_flight import KeyShare
from ekorn.subtask.wire.frames import RECORDS, Frame

__all__ = ["ColumnKeyShare"]


@dataclass(frozen=True)
class ColumnKeyShare(KeyShare):
    """Tells which rows belong to a subtask: those whose key columns hold a key of one of its key groups."""

    names: Sequence[str] = ()

    def of(self, frame: Frame) -> Frame:
        """Return a run of batches without the rows of other subtasks."""
        kept = []
        for batch in frame[1]:
            rows = np.flatnonzero(self._is_own(batch))
            if len(rows):
                kept.append(batch if len(rows) == len(batch) else batch.take(rows))
        return RECORDS, kept, None

    def _is_own(self, batch: ColumnBatch) -> Any:
        schema = pa.schema([batch.data.schema.field(name) for name in self.names])
        # With as many targets as key groups, the target of a key is its key group.
        routes = KeyRoutes(schema, max_parallelism=self.max_parallelism, parallelism=self.max_parallelism)
        groups = routes.targets([batch.data.column(name) for name in self.names])
        return (groups >= self.own.first) & (groups <= self.own.last)
