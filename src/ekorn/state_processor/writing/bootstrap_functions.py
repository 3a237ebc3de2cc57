"""The functions that a program implements to fill the state of a savepoint."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ekorn.functions.output_tag import OutputTag
from ekorn.functions.process_functions import KeyedProcessFunction, ProcessFunction
from ekorn.functions.record_functions import Function
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.state.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from ekorn.functions.state.state_descriptors import MapStateDescriptor
from ekorn.functions.state.state_handles import BroadcastState
from ekorn.functions.state.state_stores import OperatorStateStore
from ekorn.functions.timer_service import TimerService

__all__ = [
    "BroadcastStateBootstrapFunction",
    "FillBroadcastState",
    "KeyedStateBootstrapFunction",
    "StateBootstrapFunction",
]


class KeyedStateBootstrapFunction(KeyedProcessFunction):
    """Writes keyed state and registers timers, record by record. Timers fire in the job that restores the savepoint.

    Example:
        >>> from ekorn.datastream.state import ValueStateDescriptor
        >>> class FillCounts(KeyedStateBootstrapFunction):
        ...     def open(self, runtime_context):
        ...         self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        ...
        ...     def process_element(self, value, ctx):
        ...         self.count.update(value.count)
    """

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        """Write the state of the record's key."""


class StateBootstrapFunction(ProcessFunction, CheckpointedFunction):
    """Writes operator state: `initialize_state` asks for list, union or broadcast state, which then is filled."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> None:
        """Process a record. The state must be written in `snapshot_state` at the latest."""


class BroadcastStateBootstrapFunction(Function):
    """Writes broadcast state. One subtask gets all records."""

    class Context(ProcessFunction.Context):
        """Passed to `process_element`."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """Return the broadcast state that the descriptor declares."""

    @abstractmethod
    def process_element(self, value: Any, ctx: BroadcastStateBootstrapFunction.Context) -> None:
        """Write the state."""


class FillBroadcastState(StateBootstrapFunction):
    """Runs a `BroadcastStateBootstrapFunction` as a function with operator state."""

    def __init__(self, function: BroadcastStateBootstrapFunction) -> None:
        self._function = function

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self._store = context.get_operator_state_store()

    def open(self, runtime_context: RuntimeContext) -> None:
        self._function.set_runtime_context(runtime_context)
        self._function.open(runtime_context)

    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> None:
        self._function.process_element(value, _BroadcastContext(ctx, self._store))

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        """Write nothing more: the map is the state."""

    def close(self) -> None:
        self._function.close()


class _BroadcastContext(BroadcastStateBootstrapFunction.Context):
    def __init__(self, context: ProcessFunction.Context, store: OperatorStateStore) -> None:
        self._context = context
        self._store = store

    def timer_service(self) -> TimerService:
        return self._context.timer_service()

    def timestamp(self) -> int | None:
        return self._context.timestamp()

    def output(self, output_tag: OutputTag, value: Any) -> None:
        self._context.output(output_tag, value)

    def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
        return self._store.get_broadcast_state(state_descriptor)
