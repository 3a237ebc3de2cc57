"""The states of a `KeyedBatchFunction`: one call reads or writes the state of all keys of a batch.

A state has an element for each key of the batch, in the order of `ctx.keys()`. Writes take effect when the call of the
function is over, and are seen by later reads of the same call. If the function raises an exception, nothing is written.

`where` is a mask: one bool for each key, or for each row where rows are given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)

__all__ = [
    "BatchAggregatingState",
    "BatchListState",
    "BatchMapState",
    "BatchReducingState",
    "BatchRuntimeContext",
    "BatchState",
    "BatchValueState",
]


class BatchState(ABC):
    """The base of all states of batch functions."""

    @abstractmethod
    def clear(self, where: Any = None) -> None:
        """Remove the state of all keys of the batch, or of those where a mask is true."""


class BatchValueState(BatchState):
    """One value per key."""

    @abstractmethod
    def values(self, fill: Any = None) -> Any:
        """Return the values as a NumPy array: of numbers if the state is declared so, and of objects otherwise.

        Args:
            fill: Stands for a key that has no value. By default that is the default of the descriptor. Without either
                it is None in an array of objects and NaN in one of floats.

        Raises:
            StateError: A key has no value, and the state has whole numbers or bools and no default.
        """

    @abstractmethod
    def present(self) -> Any:
        """Return for each key whether it has a value, as a NumPy array of bools."""

    @abstractmethod
    def update(self, values: Any, where: Any = None) -> None:
        """Set the values: an array with an element for each key, or one value for all of them. None removes a value."""


class BatchListState(BatchState):
    """A list per key."""

    @abstractmethod
    def lists(self) -> Any:
        """Return the lists as a list array of Arrow."""

    @abstractmethod
    def lengths(self) -> Any:
        """Return the number of elements of each list, as a NumPy array."""

    @abstractmethod
    def add(self, values: Any, where: Any = None) -> None:
        """Add the value of each row to the list of its key. The mask has an element for each row."""

    @abstractmethod
    def update(self, lists: Any, where: Any = None) -> None:
        """Replace the lists: a list array of Arrow, or a list of lists. An empty list, or None, removes the list."""


class BatchMapState(BatchState):
    """A map per key. Entries are addressed by row: the key of the row, and a key of the map."""

    @abstractmethod
    def get(self, map_keys: Any, fill: Any = None) -> Any:
        """Return for each row the value under a key of the map, or what is to be there instead.

        The result is a NumPy array of numbers if the values are declared so and each row has one, and of objects
        otherwise.
        """

    @abstractmethod
    def contains(self, map_keys: Any) -> Any:
        """Return for each row whether the map of its key has a key, as a NumPy array of bools."""

    @abstractmethod
    def put(self, map_keys: Any, values: Any, where: Any = None) -> None:
        """Put an entry for each row. Of several rows with the same keys the last one stays."""

    @abstractmethod
    def remove(self, map_keys: Any, where: Any = None) -> None:
        """Remove an entry for each row."""

    @abstractmethod
    def entries(self) -> tuple[Any, list[Any], list[Any]]:
        """Return all entries: the position of each one's key in the batch, the keys of the maps, and the values."""


class BatchReducingState(BatchState):
    """One value per key: all values that were added, combined by a reduce function, which is called row by row."""

    @abstractmethod
    def values(self) -> Any:
        """Return the value of each key, as a NumPy array of objects; None for a key without a value."""

    @abstractmethod
    def add(self, values: Any, where: Any = None) -> None:
        """Add the value of each row to the state of its key."""


class BatchAggregatingState(BatchState):
    """One accumulator per key, to which an aggregate function, called row by row, adds values."""

    @abstractmethod
    def values(self) -> Any:
        """Return the result of each key, as a NumPy array of objects; None for a key without an accumulator."""

    @abstractmethod
    def add(self, values: Any, where: Any = None) -> None:
        """Add the value of each row to the accumulator of its key."""


class BatchRuntimeContext(RuntimeContext):
    """The runtime context of a `KeyedBatchFunction`: its states are those of batches."""

    def get_state(self, state_descriptor: ValueStateDescriptor) -> BatchValueState:  # type: ignore[override]
        """Return the value state that the descriptor declares."""
        state: Any = super().get_state(state_descriptor)
        return state  # type: ignore[no-any-return]

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> BatchListState:  # type: ignore[override]
        """Return the list state that the descriptor declares."""
        state: Any = super().get_list_state(state_descriptor)
        return state  # type: ignore[no-any-return]

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> BatchMapState:  # type: ignore[override]
        """Return the map state that the descriptor declares."""
        state: Any = super().get_map_state(state_descriptor)
        return state  # type: ignore[no-any-return]

    def get_reducing_state(  # type: ignore[override]
        self, state_descriptor: ReducingStateDescriptor
    ) -> BatchReducingState:
        """Return the reducing state that the descriptor declares."""
        state: Any = super().get_reducing_state(state_descriptor)
        return state  # type: ignore[no-any-return]

    def get_aggregating_state(  # type: ignore[override]
        self, state_descriptor: AggregatingStateDescriptor
    ) -> BatchAggregatingState:
        """Return the aggregating state that the descriptor declares."""
        state: Any = super().get_aggregating_state(state_descriptor)
        return state  # type: ignore[no-any-return]
