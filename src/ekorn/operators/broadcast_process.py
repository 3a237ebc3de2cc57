"""A stream connected to a broadcast stream: broadcast records write a state that every subtask holds, others read it.

The broadcast records of an epoch are read before the other records of the epoch; in BATCH mode all of them come first.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import StateError, UnsupportedOperationError
from ekorn.functions.process_functions import (
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
    KeyedStateFunction,
)
from ekorn.functions.state.state_descriptors import MapStateDescriptor, StateDescriptor
from ekorn.functions.timer_service import TimerService
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import BroadcastProcessSpec
from ekorn.keygroups import state_key
from ekorn.operators.co_streams import FIRST, SECOND, TwoInputOperator
from ekorn.operators.contexts.function_contexts import ElementContext, SideOutputs
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_key
from ekorn.operators.process_operators import (
    KeyedProcessOperator,
    OnTimerContext,
    ProcessOperator,
    generate_process_call,
)
from ekorn.state.keyed_backend import NO_KEY
from ekorn.state.operator_state import BroadcastStore, BroadcastView, OperatorStates

Visit = KeyedStateFunction | Callable[[Any, Any], None]
Apply = Callable[[StateDescriptor, Visit], None]


class BroadcastProcessOperator(ProcessOperator, TwoInputOperator):
    """`process` on a stream without keys that is connected to a broadcast stream."""

    first_input = SECOND

    def __init__(self, operator: Operator, spec: BroadcastProcessSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._spec = spec

    def open(self) -> None:
        stores = _stores(self.states, self._spec)
        self._context = DataContext(self._clocks, None, _views(stores), SideOutputs(self))
        self._broadcast_context = BroadcastContext(self._clocks, stores, _no_keys, SideOutputs(self))
        super().open()

    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        process = self._function.process_broadcast_element
        generate_process_call(
            code, self, process, self._broadcast_context, value=value, time=time, emit=emit, side=side
        )


class KeyedBroadcastProcessOperator(KeyedProcessOperator, TwoInputOperator):
    """`process` on a keyed stream that is connected to a broadcast stream. Only the keyed side has state and timers."""

    first_input = SECOND

    def __init__(self, operator: Operator, spec: BroadcastProcessSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._spec = spec

    def open(self) -> None:
        stores = _stores(self.states, self._spec)
        views = _views(stores)
        self._context = DataContext(self.timers, self._cell, views, SideOutputs(self))
        self._timer_context = TimerContext(self.timers, self._cell, views, SideOutputs(self))
        self._broadcast_context = BroadcastContext(self.timers, stores, self._apply_to_keyed_state, SideOutputs(self))
        super().open()

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value, FIRST)
        process = self._function.process_element
        generate_process_call(code, self, process, self._context, value=value, time=time, emit=emit, side=side)

    def generate_second(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        code.line(f"{code.bind(self._cell, 'cell')}[0] = {code.bind(NO_KEY, 'no_key')}")
        process = self._function.process_broadcast_element
        generate_process_call(
            code, self, process, self._broadcast_context, value=value, time=time, emit=emit, side=side
        )

    def _apply_to_keyed_state(self, descriptor: StateDescriptor, function: Visit) -> None:
        assert self.backend is not None
        visit = function.process if isinstance(function, KeyedStateFunction) else function
        if not callable(visit) or inspect.isgeneratorfunction(visit):
            raise TypeError(
                f"apply_to_keyed_state() got {function!r}; give it a function of a key and its state, or a "
                f"KeyedStateFunction. The function changes the state; apply_to_keyed_state() takes no results"
            )
        state = self.backend.state(descriptor)
        if state is None:
            raise TypeError(f"apply_to_keyed_state() needs the descriptor of a keyed state, got {descriptor!r}")
        try:
            for key in list(self.backend.keys(descriptor.name)):
                self._cell[0] = state_key(key)
                visit(key, state)
        finally:
            self._cell[0] = NO_KEY


# --------------------------------------------------------------------------------------------------- contexts


class DataContext(
    ElementContext, BroadcastProcessFunction.ReadOnlyContext, KeyedBroadcastProcessFunction.ReadOnlyContext
):
    """The context of `process_element`."""

    def __init__(
        self, clocks: TimerService, cell: list[Any] | None, views: dict[str, BroadcastView], sides: SideOutputs
    ) -> None:
        super().__init__(clocks, cell, sides)
        self._views = views

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastView:
        try:
            return self._views[state_descriptor.name]
        except KeyError:
            raise _undeclared(state_descriptor, self._views) from None


class TimerContext(DataContext, OnTimerContext, KeyedBroadcastProcessFunction.OnTimerContext):
    """The context of `on_timer`."""


class BroadcastContext(ElementContext, BroadcastProcessFunction.Context, KeyedBroadcastProcessFunction.Context):
    """The context of `process_broadcast_element`. It has no current key, and therefore no timers."""

    def __init__(
        self, clocks: TimerService, stores: dict[str, BroadcastStore], apply: Apply, sides: SideOutputs
    ) -> None:
        super().__init__(clocks, None, sides)
        self._stores = stores
        self._apply = apply

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastStore:
        try:
            return self._stores[state_descriptor.name]
        except KeyError:
            raise _undeclared(state_descriptor, self._stores) from None

    def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: Visit) -> None:
        self._apply(state_descriptor, function)

    def timer_service(self) -> NoReturn:
        raise UnsupportedOperationError(
            "timers belong to a key, and a broadcast record has none; register timers in process_element or on_timer, "
            "and read the time with current_watermark() and current_processing_time() of this context"
        )

    def get_current_key(self) -> NoReturn:
        raise UnsupportedOperationError(
            "a broadcast record has no key; use apply_to_keyed_state() to visit all keys that have a state"
        )


# ----------------------------------------------------------------------------------------------------- states


def _stores(states: OperatorStates, spec: BroadcastProcessSpec) -> dict[str, BroadcastStore]:
    return {descriptor.name: states.get_broadcast_state(descriptor) for descriptor in spec.descriptors}


def _views(stores: dict[str, BroadcastStore]) -> dict[str, BroadcastView]:
    return {name: store.view() for name, store in stores.items()}


def _undeclared(descriptor: MapStateDescriptor, declared: Iterable[str]) -> StateError:
    names = ", ".join(map(repr, declared))
    return StateError(
        f"broadcast() was not given the state {descriptor.name!r}, only {names}; pass its descriptor to broadcast() too"
    )


def _no_keys(descriptor: StateDescriptor, function: Visit) -> NoReturn:
    raise UnsupportedOperationError(
        f"apply_to_keyed_state() of {descriptor.name!r}: the stream connected to the broadcast stream has no keys; "
        "call key_by before connect, and use a KeyedBroadcastProcessFunction"
    )
