"""The base of the states of batch functions: vectors over the keys of a batch, backed by the states of rows.

What a function writes is kept beside the state until its call is over. So a batch that fails has changed nothing, and
each key is written once. A key that is not read is not fetched.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from ekorn.columns.key_rows import KeyRows, as_mask
from ekorn.columns.key_words import Rows
from ekorn.functions.state.batch_states import BatchState
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.state.keyed_backend import KeyedStateBackend

__all__ = ["KeyScope", "StateOfBatch", "positions_of"]


class KeyScope(Protocol):
    """The keys of the batch that is processed."""

    @property
    def rows(self) -> KeyRows:
        """The rows of the batch by their keys."""

    def stored_keys(self) -> list[Any]:
        """Return the keys in the form of tables."""

    def numbers(self) -> Rows:
        """Return the numbers of the keys in the vectors of the operator."""


class StateOfBatch(BatchState):
    """The base of states of batches."""

    def __init__(self, scope: KeyScope, backend: KeyedStateBackend, descriptor: StateDescriptor, handle: Any) -> None:
        self._scope = scope
        self._backend = backend
        self._cell = backend.cell
        self.descriptor = descriptor
        self._name = descriptor.name
        self._handle = handle
        self.forget()

    @abstractmethod
    def forget(self) -> None:
        """Forget what was read and written: the next call has other keys."""

    @abstractmethod
    def commit(self) -> None:
        """Write what the function has written."""

    @abstractmethod
    def clear_key(self, at: int) -> None:
        """Remove the state of one key."""

    def clear(self, where: Any = None) -> None:
        for at in self._keys(where):
            self.clear_key(at)

    def _keys(self, where: Any) -> list[int]:
        """Return the positions of the keys that a mask chooses."""
        count = self._scope.rows.key_count
        mask = as_mask(where, count, "key")
        return list(range(count)) if mask is None else np.flatnonzero(mask).tolist()

    def _rows(self, where: Any) -> list[int]:
        """Return the positions of the rows that a mask chooses."""
        count = len(self._scope.rows)
        mask = as_mask(where, count, "row")
        return list(range(count)) if mask is None else np.flatnonzero(mask).tolist()

    def _at(self, key: int) -> None:
        self._cell[0] = self._scope.stored_keys()[key]

    def _row_keys(self) -> list[int]:
        found: list[int] = self._scope.rows.key_of_row.tolist()
        return found


def positions_of(rows: KeyRows) -> Iterator[Rows]:
    """Yield the positions of the rows of each key, in their order."""
    segments = rows.segments
    for start, count in zip(segments.starts.tolist(), segments.counts.tolist(), strict=True):
        yield segments.order[start : start + count]
