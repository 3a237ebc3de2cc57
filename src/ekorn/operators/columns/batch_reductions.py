"""Reducing state and aggregating state of batch functions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ekorn.functions.state.batch_states import (
    BatchAggregatingState,
    BatchReducingState,
)
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    ReducingStateDescriptor,
)
from ekorn.operators.columns.state_of_batch import KeyScope, StateOfBatch
from ekorn.operators.columns.state_values import objects_in
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.table_handles import none_from_reduce
from ekorn.state.value_vectors import values_array
from ekorn.types.by_value import own

__all__ = ["AggregatingOfBatch", "ReducingOfBatch"]


class _Adding(StateOfBatch):
    """The base of states to which values are added, one after the other, by a function of the user."""

    def forget(self) -> None:
        self._added: dict[int, list[Any]] = {}
        self._cleared: set[int] = set()
        self._results: dict[int, Any] = {}

    def add_to(self, at: int, value: Any) -> None:
        """Add a value to the state of one key; None removes the state, as on rows."""
        if value is None:
            self.clear_key(at)
        else:
            self._added.setdefault(at, []).append(value)
            self._results.pop(at, None)

    def result_of(self, at: int) -> Any:
        """Return the result of one key."""
        if at not in self._results:
            self._at(at)
            so_far = None if at in self._cleared else self._handle.get()
            added = self._added.get(at, [])
            self._results[at] = self._with(so_far, added) if added else so_far
        return self._results[at]

    @abstractmethod
    def _with(self, so_far: Any, added: list[Any]) -> Any:
        """Return the result of the current key with more values, and change nothing."""

    def add(self, values: Any, where: Any = None) -> None:
        """Add the value of each row to the state of its key."""
        given, keys = objects_in(values, len(self._scope.rows), "row"), self._row_keys()
        for row in self._rows(where):
            self.add_to(keys[row], given[row])

    def values(self) -> NDArray[Any]:
        """Return the result of each key."""
        found = [self.result_of(at) for at in range(self._scope.rows.key_count)]
        return values_array(found, self._name, np.dtype(np.object_))[0]

    def clear_key(self, at: int) -> None:
        self._cleared.add(at)
        self._added.pop(at, None)
        self._results.pop(at, None)

    def commit(self) -> None:
        for at in self._cleared:
            self._at(at)
            self._handle.clear()
        for at, values in self._added.items():
            self._at(at)
            for value in values:
                self._handle.add(value)


class ReducingOfBatch(_Adding, BatchReducingState):
    """Reducing state."""

    def __init__(
        self, scope: KeyScope, backend: KeyedStateBackend, descriptor: ReducingStateDescriptor, handle: Any
    ) -> None:
        self._reduce = descriptor.get_reduce_function().reduce
        super().__init__(scope, backend, descriptor, handle)

    def _with(self, so_far: Any, added: list[Any]) -> Any:
        result = so_far
        for value in added:
            result = own(value) if result is None else self._reduce(result, own(value))
            if result is None:
                raise none_from_reduce()
        return result


class AggregatingOfBatch(_Adding, BatchAggregatingState):
    """Aggregating state."""

    def __init__(
        self, scope: KeyScope, backend: KeyedStateBackend, descriptor: AggregatingStateDescriptor, handle: Any
    ) -> None:
        self._function = descriptor.get_agg_function()
        super().__init__(scope, backend, descriptor, handle)

    def _with(self, so_far: Any, added: list[Any]) -> Any:
        accumulator = None
        if so_far is not None:  # the handle knows that the accumulator has not expired
            kept = self._backend.entry(self._name, self._cell[0])
            if kept is not None and self.descriptor.ttl_config is not None:
                kept = kept[1]
            accumulator = None if kept is None else self._backend.declaration(self._name).value.loaded(kept)
        if accumulator is None:
            accumulator = self._function.create_accumulator()
        for value in added:
            accumulator = self._function.add(own(value), accumulator)
        return self._function.get_result(accumulator)
