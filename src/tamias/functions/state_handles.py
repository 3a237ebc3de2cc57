"""State as user code sees it: handles, the descriptors that declare them, and the stores that hand them out.

Keyed state belongs to the key of the record (or timer) being processed: a handle made once in `open` reads and
writes another value for every key. Handles are by value: changing an object that was read has no effect
until it is written back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Generic, TypeVar

from tamias.functions.record_functions import AggregateFunction, FoldFunction, Function, ReduceFunction
from tamias.functions.state_ttl import StateTtlConfig
from tamias.types.factory import Types
from tamias.types.pojo import PojoTypeInfo
from tamias.types.record_classes import is_record_class
from tamias.types.serializer import SerializerTypeInfo, TypeSerializer
from tamias.types.type_information import TypeInformation

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
IN = TypeVar("IN")
OUT = TypeVar("OUT")

StateType = TypeInformation | TypeSerializer[Any] | type
"""What a descriptor takes for a type: a type, a serializer of one's own, a dataclass or a NamedTuple."""

KeyedStateFunction = Callable[[Any, Any], None]
"""Called with a key and that key's state by `apply_to_keyed_state`."""


# --------------------------------------------------------------------------------------------- handles


class State(ABC):
    """Base of all state handles."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the value of the current key."""


class ValueState(State, Generic[T]):
    """One value per key."""

    @abstractmethod
    def value(self) -> T | None:
        """The value, or the descriptor's default (None without one) when there is none."""

    @abstractmethod
    def update(self, value: T | None) -> None:
        """Set the value; None removes it."""


class AppendingState(State, Generic[IN, OUT]):
    """State that values are added to."""

    @abstractmethod
    def get(self) -> OUT | None:
        """What was made of the values added so far."""

    @abstractmethod
    def add(self, value: IN) -> None:
        """Add one value."""


class MergingState(AppendingState[IN, OUT]):
    """State of which two can be made one, as merging windows need."""


class ReducingState(MergingState[T, T]):
    """The values added so far, reduced to one; None when there are none."""


class AggregatingState(MergingState[IN, OUT]):
    """The result of an `AggregateFunction` over the values added so far; None when there are none."""


class FoldingState(AppendingState[IN, OUT]):
    """The values added so far, folded into an accumulator; None when there are none."""


class ListState(MergingState[T, Iterable[T]]):
    """A list per key, in the order of adding."""

    @abstractmethod
    def get(self) -> Iterable[T]:
        """The elements; an empty iterable when there are none."""

    @abstractmethod
    def update(self, values: list[T]) -> None:
        """Replace the list; an empty one removes it."""

    @abstractmethod
    def add_all(self, values: list[T]) -> None:
        """Append all values."""

    def __iter__(self) -> Iterator[T]:
        return iter(self.get())


class MapState(State, Generic[K, V]):
    """A map per key. The order of iteration is not specified."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value under a key of the map, or None."""

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value under a key of the map; None is a value like others."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set all entries of a dict."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a key of the map; nothing happens if it is not there."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether the map has the key."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys of the map."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values of the map."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the map has no entries."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class ReadOnlyBroadcastState(State, Generic[K, V]):
    """Broadcast state as the side that is not broadcast sees it."""

    @abstractmethod
    def get(self, key: K) -> V | None:
        """The value under a key, or None."""

    @abstractmethod
    def contains(self, key: K) -> bool:
        """Whether the key is there."""

    @abstractmethod
    def items(self) -> Iterable[tuple[K, V]]:
        """All entries."""

    @abstractmethod
    def keys(self) -> Iterable[K]:
        """All keys."""

    @abstractmethod
    def values(self) -> Iterable[V]:
        """All values."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there are no entries."""

    def __getitem__(self, key: K) -> V | None:
        return self.get(key)

    def __contains__(self, key: K) -> bool:
        return self.contains(key)

    def __iter__(self) -> Iterator[K]:
        return iter(self.keys())


class BroadcastState(ReadOnlyBroadcastState[K, V]):
    """Broadcast state as the broadcast side sees it.

    Every subtask has its own copy. They stay equal only if every subtask makes the same changes from the
    same broadcast records.
    """

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value under a key."""

    @abstractmethod
    def put_all(self, dict_value: dict[K, V]) -> None:
        """Set all entries of a dict."""

    @abstractmethod
    def remove(self, key: K) -> None:
        """Remove a key."""

    def __setitem__(self, key: K, value: V) -> None:
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.remove(key)


# ----------------------------------------------------------------------------------------- descriptors


class StateDescriptor:
    """Declares one state of an operator: its name, kind and type.

    The name is unique within the operator. Declaring it again gives the same state; declaring it with
    another kind or type is an error. A value that does not fit the declared type is refused when it is written.
    """

    kind: ClassVar[str] = ""
    checks_values: ClassVar[bool] = True
    """Whether what is written is held against the declared type."""

    def __init__(self, name: str, type_info: StateType | None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a {type(self).__name__} must be a string, got {name!r}")
        if not name:
            raise ValueError(f"the name of a {type(self).__name__} must not be empty")
        self.name = name
        self.type_info = self._checked_type(type_info)
        self.ttl_config: StateTtlConfig | None = None

    def get_name(self) -> str:
        """The state's name."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let values of this state expire."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise TypeError(
                f"state {self.name!r}: expected a StateTtlConfig from StateTtlConfig.new_builder(...).build(), "
                f"got {ttl_config!r}"
            )
        self.ttl_config = ttl_config if ttl_config.is_enabled() else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateDescriptor) and (other.kind, other.name) == (self.kind, self.name)

    def __hash__(self) -> int:
        return hash((self.kind, self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.type_info})"

    def _checked_type(self, type_info: object) -> TypeInformation | None:
        if type_info is None or isinstance(type_info, TypeInformation):
            return type_info
        if isinstance(type_info, TypeSerializer):
            return SerializerTypeInfo(type_info)
        if isinstance(type_info, type) and is_record_class(type_info):
            return PojoTypeInfo(type_info)
        raise TypeError(
            f"state {self.name!r}: expected a type such as Types.LONG(), a dataclass, a TypeSerializer, or None for "
            f"any Python object, got {type_info!r}"
        )


class ValueStateDescriptor(StateDescriptor):
    """Declares a `ValueState`.

    Example:
        >>> from tamias.common import Types
        >>> ValueStateDescriptor("seen", Types.BOOLEAN()).get_name()
        'seen'
    """

    kind = "value"

    def __init__(self, name: str, value_type_info: StateType | None = None, default_value: Any = None) -> None:
        """Declare the state.

        Args:
            name: unique within the operator.
            value_type_info: type of the value, or its serializer; None for any Python object.
            default_value: what `value()` gives (as a fresh copy) while nothing is stored. It is not
                stored, and it is ignored when the state has a time to live.
        """
        super().__init__(name, value_type_info)
        self.default_value = default_value

    def get_default_value(self) -> Any:
        """What `value()` gives while nothing is stored."""
        return self.default_value


class ListStateDescriptor(StateDescriptor):
    """Declares a `ListState`."""

    kind = "list"

    def __init__(self, name: str, elem_type_info: StateType | None = None) -> None:
        super().__init__(name, None)
        self.element_type = self._checked_type(elem_type_info)
        self.type_info = None if self.element_type is None else Types.LIST(self.element_type)


class MapStateDescriptor(StateDescriptor):
    """Declares a `MapState`, or with `broadcast` a broadcast state."""

    kind = "map"

    def __init__(
        self,
        name: str,
        key_type_info: StateType | None = None,
        value_type_info: StateType | None = None,
    ) -> None:
        super().__init__(name, None)
        self.key_type = self._checked_type(key_type_info)
        self.value_type = self._checked_type(value_type_info)
        if self.key_type is not None and self.value_type is not None:
            self.type_info = Types.MAP(self.key_type, self.value_type)


class ReducingStateDescriptor(StateDescriptor):
    """Declares a `ReducingState` with the function that reduces it."""

    kind = "reducing"

    def __init__(
        self,
        name: str,
        reduce_function: ReduceFunction | Callable[[Any, Any], Any],
        type_info: StateType | None = None,
    ) -> None:
        super().__init__(name, type_info)
        given = _checked_function(name, reduce_function, ReduceFunction)
        self.reduce_function = given if isinstance(given, ReduceFunction) else PlainReduce(given)

    def get_reduce_function(self) -> ReduceFunction:
        """The function that reduces two values to one."""
        return self.reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Declares an `AggregatingState` with the function that aggregates it; the type is the accumulator's."""

    kind = "aggregating"

    def __init__(self, name: str, agg_function: AggregateFunction, state_type_info: StateType | None = None) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise TypeError(f"state {name!r}: expected an AggregateFunction object, got {agg_function!r}")
        self.agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        """The function that aggregates values."""
        return self.agg_function


class FoldingStateDescriptor(StateDescriptor):
    """Declares a `FoldingState` with its initial accumulator and the function that folds into it."""

    kind = "folding"

    def __init__(
        self,
        name: str,
        initial_value: Any,
        fold_function: FoldFunction | Callable[[Any, Any], Any],
        type_info: StateType | None = None,
    ) -> None:
        super().__init__(name, type_info)
        self.initial_value = initial_value
        given = _checked_function(name, fold_function, FoldFunction)
        self.fold_function = given if isinstance(given, FoldFunction) else PlainFold(given)

    def get_fold_function(self) -> FoldFunction:
        """The function that folds a value into the accumulator."""
        return self.fold_function


class PlainReduce(ReduceFunction):
    """A plain callable as a ReduceFunction."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def reduce(self, value1: Any, value2: Any) -> Any:
        """What the callable makes of two values."""
        return self.function(value1, value2)


class PlainFold(FoldFunction):
    """A plain callable as a FoldFunction."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def fold(self, accumulator: Any, value: Any) -> Any:
        """What the callable makes of the accumulator and a value."""
        return self.function(accumulator, value)


F = TypeVar("F")


def _checked_function(state: str, function: F, kind: type) -> F:
    if isinstance(function, type):
        raise TypeError(f"state {state!r}: {function.__name__} is a class; give an object of it: {function.__name__}()")
    if isinstance(function, kind) or (callable(function) and not isinstance(function, Function)):
        return function
    raise TypeError(f"state {state!r}: expected a {kind.__name__} or a callable of two arguments, got {function!r}")


# ---------------------------------------------------------------------------------------------- stores


class KeyedStateStore(ABC):
    """Hands out keyed state; asking on a stream without keys raises `StateNotKeyed`."""

    @abstractmethod
    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        """The value state that the descriptor declares."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """The list state that the descriptor declares."""

    @abstractmethod
    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        """The map state that the descriptor declares."""

    @abstractmethod
    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        """The reducing state that the descriptor declares."""

    @abstractmethod
    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        """The aggregating state that the descriptor declares."""

    @abstractmethod
    def get_folding_state(self, state_descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]:
        """The folding state that the descriptor declares."""


class OperatorStateStore(ABC):
    """Hands out state that belongs to a subtask rather than to a key."""

    @abstractmethod
    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list whose elements are split evenly over the subtasks when the parallelism changes."""

    @abstractmethod
    def get_union_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        """A list of which every subtask gets all elements of all subtasks on restore."""

    @abstractmethod
    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        """A map that is the same on every subtask."""

    @abstractmethod
    def get_registered_state_names(self) -> set[str]:
        """Names of the list states asked for or restored so far."""

    @abstractmethod
    def get_registered_broadcast_state_names(self) -> set[str]:
        """Names of the broadcast states asked for or restored so far."""
