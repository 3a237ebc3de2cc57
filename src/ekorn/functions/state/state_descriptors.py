"""State descriptors: declare a state of an operator by name, kind and type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ekorn.functions.record_functions import AggregateFunction, FoldFunction, Function, ReduceFunction
from ekorn.functions.state.state_ttl import StateTtlConfig
from ekorn.types.factory import Types
from ekorn.types.pojo import PojoTypeInfo
from ekorn.types.record_classes import is_record_class
from ekorn.types.serializer import SerializerTypeInfo, TypeSerializer
from ekorn.types.type_information import TypeInformation

StateType = TypeInformation | TypeSerializer[Any] | type
"""The types that a descriptor accepts: type information, the program's own serializer, a dataclass or a NamedTuple."""


class StateDescriptor:
    """Declares one state of an operator: its name, kind and type.

    The name is unique within the operator. A second declaration of a name refers to the same state, and must have the
    same kind and type. A value that does not fit the declared type is refused when it is written.
    """

    kind: ClassVar[str] = ""
    """The name of the kind of state, also in checkpoints. Keyed state has one row per kind in `state/kinds.py`."""
    getter: ClassVar[str] = ""
    """The method of `KeyedStateStore` that hands out states of this kind."""
    checks_values: ClassVar[bool] = True
    """Whether written values are checked against the declared type."""

    def __init__(self, name: str, type_info: StateType | None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a {type(self).__name__} must be a string, got {name!r}")
        if not name:
            raise ValueError(f"the name of a {type(self).__name__} must not be empty")
        self.name = name
        self.type_info = self._checked_type(type_info)
        self.value_type = self.type_info  # of one kept value: in a list that is an element, in a map the value of a key
        self.map_key_type: TypeInformation | None = None  # of the keys of a map
        self.ttl_config: StateTtlConfig | None = None
        self.queryable_name: str | None = None

    def get_name(self) -> str:
        """Return the state's name."""
        return self.name

    def enable_time_to_live(self, ttl_config: StateTtlConfig) -> None:
        """Let the values of this state expire."""
        if not isinstance(ttl_config, StateTtlConfig):
            raise TypeError(
                f"state {self.name!r}: expected a StateTtlConfig from StateTtlConfig.new_builder(...).build(), "
                f"got {ttl_config!r}"
            )
        self.ttl_config = ttl_config if ttl_config.is_enabled() else None

    def set_queryable(self, queryable_state_name: str) -> None:
        """Let clients outside the job read the state under a name, which is unique within the job.

        The job must run with `queryable-state.enable`.
        """
        if not isinstance(queryable_state_name, str) or not queryable_state_name:
            raise ValueError(
                f"state {self.name!r}: the name under which it is queried must be a string that is not empty, "
                f"got {queryable_state_name!r}"
            )
        if self.queryable_name is not None:
            raise ValueError(f"state {self.name!r} is already queryable, as {self.queryable_name!r}")
        self.queryable_name = queryable_state_name

    def is_queryable(self) -> bool:
        """Return whether clients can read the state."""
        return self.queryable_name is not None

    def get_queryable_state_name(self) -> str | None:
        """Return the name under which clients read the state, or None."""
        return self.queryable_name

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
        >>> from ekorn.common import Types
        >>> ValueStateDescriptor("seen", Types.BOOLEAN()).get_name()
        'seen'
    """

    kind = "value"
    getter = "get_state"

    def __init__(self, name: str, value_type_info: StateType | None = None, default_value: Any = None) -> None:
        """Declare the state.

        Args:
            name: The name, unique within the operator.
            value_type_info: The type of the value, or its serializer; None for any Python object.
            default_value: The value that `value()` returns, as a new copy, while nothing is stored. The default is not
                stored, and it is ignored if the state has a time to live.
        """
        super().__init__(name, value_type_info)
        self.default_value = default_value

    def get_default_value(self) -> Any:
        """Return the value that `value()` returns while nothing is stored."""
        return self.default_value


class ListStateDescriptor(StateDescriptor):
    """Declares a `ListState`."""

    kind = "list"
    getter = "get_list_state"

    def __init__(self, name: str, elem_type_info: StateType | None = None) -> None:
        super().__init__(name, None)
        self.value_type = self._checked_type(elem_type_info)
        self.type_info = None if self.value_type is None else Types.LIST(self.value_type)


class MapStateDescriptor(StateDescriptor):
    """Declares a `MapState`; passed to `broadcast`, a broadcast state."""

    kind = "map"
    getter = "get_map_state"

    def __init__(
        self,
        name: str,
        key_type_info: StateType | None = None,
        value_type_info: StateType | None = None,
    ) -> None:
        super().__init__(name, None)
        self.map_key_type = self._checked_type(key_type_info)
        self.value_type = self._checked_type(value_type_info)
        if self.map_key_type is not None and self.value_type is not None:
            self.type_info = Types.MAP(self.map_key_type, self.value_type)


class ReducingStateDescriptor(StateDescriptor):
    """Declares a `ReducingState` with its reduce function."""

    kind = "reducing"
    getter = "get_reducing_state"

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
        """Return the function that reduces two values to one."""
        return self.reduce_function


class AggregatingStateDescriptor(StateDescriptor):
    """Declares an `AggregatingState` with its aggregate function and the type of the accumulator."""

    kind = "aggregating"
    getter = "get_aggregating_state"

    def __init__(self, name: str, agg_function: AggregateFunction, state_type_info: StateType | None = None) -> None:
        super().__init__(name, state_type_info)
        if not isinstance(agg_function, AggregateFunction):
            raise TypeError(f"state {name!r}: expected an AggregateFunction object, got {agg_function!r}")
        self.agg_function = agg_function

    def get_agg_function(self) -> AggregateFunction:
        """Return the function that aggregates values."""
        return self.agg_function


class FoldingStateDescriptor(StateDescriptor):
    """Declares a `FoldingState` with its initial accumulator and its fold function."""

    kind = "folding"
    getter = "get_folding_state"

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
        """Return the function that folds a value into the accumulator."""
        return self.fold_function


class PlainReduce(ReduceFunction):
    """Makes a plain callable a ReduceFunction."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Call the callable with two values."""
        return self.function(value1, value2)


class PlainFold(FoldFunction):
    """Makes a plain callable a FoldFunction."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self.function = function

    def fold(self, accumulator: Any, value: Any) -> Any:
        """Call the callable with the accumulator and a value."""
        return self.function(accumulator, value)


F = TypeVar("F")


def _checked_function(state: str, function: F, kind: type) -> F:
    if isinstance(function, type):
        raise TypeError(
            f"state {state!r}: {function.__name__} is a class; pass an instance of it: {function.__name__}()"
        )
    if isinstance(function, kind) or (callable(function) and not isinstance(function, Function)):
        return function
    raise TypeError(f"state {state!r}: expected a {kind.__name__} or a callable of two arguments, got {function!r}")
