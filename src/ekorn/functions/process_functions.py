"""Process functions: functions with timers, side outputs and broadcast state, and the contexts handed to them.

A context is valid only during the call that receives the context.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ekorn.functions.record_functions import Function
from ekorn.functions.timer_service import TimeDomain, TimerService

if TYPE_CHECKING:
    from ekorn.functions.output_tag import OutputTag
    from ekorn.functions.state.state_descriptors import MapStateDescriptor, StateDescriptor
    from ekorn.functions.state.state_handles import BroadcastState, ReadOnlyBroadcastState

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")

Emitted = Iterable[Any] | None
"""The results of a process function: records, and pairs of an OutputTag and a record for side outputs."""


class KeyedStateFunction(ABC):
    """What `apply_to_keyed_state` does with the state of each key; a plain function of key and state does as well."""

    @abstractmethod
    def process(self, key: Any, state: Any) -> None:
        """Read or change the state of a key."""


class SideOutputContext(ABC):
    """The part of a context that emits to side outputs."""

    @abstractmethod
    def output(self, output_tag: OutputTag, value: Any) -> None:
        """Emit a record to a side output, with the timestamp of the record or timer in process.

        It does what ``yield output_tag, value`` does, at once and also in a function that yields nothing. Records of a
        side output that nobody reads are dropped.
        """


class _TimedContext(SideOutputContext):
    """The part of a context that gives access to time."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the service that reads both clocks and, on keyed streams, registers timers."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the timestamp of the record or timer in milliseconds; None for a record without a timestamp."""


class _KeyedContext(_TimedContext):
    """A context on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Return the key of the record, or of the timer."""


class _KeyedTimerContext(_KeyedContext):
    """Passed to `on_timer`."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return the clock that made the timer fire."""


class ProcessFunction(Function):
    """Turns one record into any number of records, with side outputs and both clocks.

    Emit with ``yield value``, and to a side output with ``yield output_tag, value`` or `ctx.output`.
    """

    class Context(_TimedContext):
        """Passed to `process_element`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Emitted:
        """Process one record."""


class KeyedProcessFunction(Function):
    """A process function on a keyed stream, with state and timers per key."""

    class Context(_KeyedContext):
        """Passed to `process_element`."""

    class OnTimerContext(_KeyedTimerContext, Context):
        """Passed to `on_timer`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Emitted:
        """Process one record."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Emitted:
        """React to a timer that was registered for the key of the context."""


class CoProcessFunction(Function):
    """A process function over two connected streams."""

    class Context(_TimedContext):
        """Passed to both `process_element` methods."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Emitted:
        """Process one record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Emitted:
        """Process one record of the second stream."""

    def on_timer(self, timestamp: int, ctx: CoProcessFunction.Context) -> Emitted:
        """React to a timer. Timers exist if both streams are keyed."""


class KeyedCoProcessFunction(Function):
    """A process function over two keyed streams that share state and timers per key."""

    class Context(_KeyedContext):
        """Passed to both `process_element` methods."""

    class OnTimerContext(_KeyedTimerContext, Context):
        """Passed to `on_timer`."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Emitted:
        """Process one record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Emitted:
        """Process one record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Emitted:
        """React to a timer that was registered for the key of the context."""


class BaseBroadcastProcessFunction(Function):
    """The contexts that both broadcast process functions share."""

    class BaseContext(SideOutputContext):
        """The access to time and side outputs, on both sides."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the record's timestamp in milliseconds; None for a record without a timestamp."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the wall clock, in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the operator's event-time watermark."""

    class Context(BaseContext):
        """The context of the broadcast side, which may write broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """Return the broadcast state of a descriptor that was passed to `broadcast`."""

    class ReadOnlyContext(BaseContext):
        """The context of the other side, which may read broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """Return the broadcast state of a descriptor that was passed to `broadcast`, for reading."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """A process function over a stream without keys and a broadcast stream."""

    class Context(BaseBroadcastProcessFunction.Context):
        """Passed to `process_broadcast_element`."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """Passed to `process_element`."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Emitted:
        """Process one record of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Emitted:
        """Process one record of the broadcast stream; every subtask sees it."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """A process function over a keyed stream, with state and timers per key, and a broadcast stream."""

    class Context(BaseBroadcastProcessFunction.Context):
        """Passed to `process_broadcast_element`."""

        @abstractmethod
        def apply_to_keyed_state(
            self, state_descriptor: StateDescriptor, function: KeyedStateFunction | Callable[[Any, Any], None]
        ) -> None:
            """Call a function with each key of this subtask that has a value in the state, and with its state."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """Passed to `process_element`."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return the service that reads both clocks and registers timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the record."""

    class OnTimerContext(ReadOnlyContext):
        """Passed to `on_timer`."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Return the clock that made the timer fire."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Emitted:
        """Process one record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Emitted:
        """Process one record of the broadcast stream; every subtask sees it."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Emitted:
        """React to a timer that was registered for the key of the context."""
