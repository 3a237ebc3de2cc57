"""State stores: hand out the handle of a state that a descriptor declares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.functions.state.state_handles import (
    AggregatingState,
    BroadcastState,
    FoldingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)

D = TypeVar("D", bound=StateDescriptor)


class KeyedStateStore(ABC):
    """Hands out keyed state. On a stream without keys every method raises `StateNotKeyed`.

    This class has the method for each kind of state. A subclass implements `_state` for all kinds.
    """

    @abstractmethod
    def _state(self, descriptor: StateDescriptor) -> Any:
        """Return the handle of the state that the descriptor declares."""

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """Return the value state that the descriptor declares."""
        state: ValueState[Any] = self._state(_checked(state_descriptor, ValueStateDescriptor))
        return state

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return the list state that the descriptor declares."""
        state: ListState[Any] = self._state(_checked(state_descriptor, ListStateDescriptor))
        return state

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """Return the map state that the descriptor declares."""
        state: MapState[Any, Any] = self._state(_checked(state_descriptor, MapStateDescriptor))
        return state

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """Return the reducing state that the descriptor declares."""
        state: ReducingState[Any] = self._state(_checked(state_descriptor, ReducingStateDescriptor))
        return state

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """Return the aggregating state that the descriptor declares."""
        state: AggregatingState[Any, Any] = self._state(_checked(state_descriptor, AggregatingStateDescriptor))
        return state

    def get_folding_state(self, state_descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]:
        """Return the folding state that the descriptor declares."""
        state: FoldingState[Any, Any] = self._state(_checked(state_descriptor, FoldingStateDescriptor))
        return state


def _checked(descriptor: object, wanted: type[D]) -> D:
    if isinstance(descriptor, wanted):
        return descriptor
    use = f"; use {descriptor.getter}()" if isinstance(descriptor, StateDescriptor) else ""
    raise TypeError(f"{wanted.getter}() takes a {wanted.__name__}, got {descriptor!r}{use}")


class OperatorStateStore(ABC):
    """Hands out state that belongs to a subtask rather than to a key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return a list whose elements are distributed evenly over the subtasks if the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """Return list state whose elements of all subtasks every subtask receives on restore."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """Return a map that is the same on every subtask."""

    @abstractmethod
    def get_registered_state_names(self) -> set[str]:
        """Return the names of the list states that were created or restored so far."""

    @abstractmethod
    def get_registered_broadcast_state_names(self) -> set[str]:
        """Return the names of the broadcast states that were created or restored so far."""
