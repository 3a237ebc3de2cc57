"""Process functions: functions with timers, side outputs and broadcast state, and the contexts handed to them.

A context is valid only during the call that receives the context.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tamias.functions.record_functions import Function
from tamias.functions.timer_service import TimeDomain, TimerService

if TYPE_CHECKING:
    from tamias.functions.state_descriptors import MapStateDescriptor, StateDescriptor
    from tamias.functions.state_handles import BroadcastState, ReadOnlyBroadcastState

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")

Emitted = Iterable[Any] | None
"""What a process function returns: records, and pairs of an OutputTag and a record for side outputs."""

KeyedStateFunction = Callable[[Any, Any], None]
"""Called by `apply_to_keyed_state` with a key and the state of that key."""


class _TimedContext(ABC):
    """The part of a context that tells the time."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return both clocks, and on keyed streams the timers."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """Return the record's (or the timer's) timestamp in milliseconds; None for a record without one."""


class _KeyedContext(_TimedContext):
    """The same on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """Return the key of the record, or of the timer."""


class _KeyedTimerContext(_KeyedContext):
    """Handed to `on_timer`."""

    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Which clock made the timer fire."""


class ProcessFunction(Function):
    """One record in, any number out, with side outputs and both clocks.

    Emit with ``yield value``, and to a side output with ``yield output_tag, value``.
    """

    class Context(_TimedContext):
        """Handed to `process_element`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Emitted:
        """Take one record."""


class KeyedProcessFunction(Function):
    """A process function on a keyed stream: state and timers per key."""

    class Context(_KeyedContext):
        """Handed to `process_element`."""

    class OnTimerContext(_KeyedTimerContext, Context):
        """Handed to `on_timer`."""

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Emitted:
        """Take one record."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Emitted:
        """Called when a timer that was registered for the context's key fires."""


class CoProcessFunction(Function):
    """A process function over two connected streams."""

    class Context(_TimedContext):
        """Handed to both `process_element` methods."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: CoProcessFunction.Context) -> Emitted:
        """Take one record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: CoProcessFunction.Context) -> Emitted:
        """Take one record of the second stream."""

    def on_timer(self, timestamp: int, ctx: CoProcessFunction.Context) -> Emitted:
        """Called when a timer fires: there are timers if both streams are keyed."""


class KeyedCoProcessFunction(Function):
    """A process function over two keyed streams that share state and timers per key."""

    class Context(_KeyedContext):
        """Handed to both `process_element` methods."""

    class OnTimerContext(_KeyedTimerContext, Context):
        """Handed to `on_timer`."""

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Emitted:
        """Take one record of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedCoProcessFunction.Context) -> Emitted:
        """Take one record of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext) -> Emitted:
        """Called when a timer that was registered for the context's key fires."""


class BaseBroadcastProcessFunction(Function):
    """What the two broadcast process functions share: their contexts."""

    class BaseContext(ABC):
        """The time, as both sides see it."""

        @abstractmethod
        def timestamp(self) -> int | None:
            """Return the record's timestamp in milliseconds; None for a record without one."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """Return the wall clock, in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """Return the operator's event-time watermark."""

    class Context(BaseContext):
        """The broadcast side's: it may write broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """Return the broadcast state declared by a descriptor given to `broadcast`."""

    class ReadOnlyContext(BaseContext):
        """The other side's: it may read broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """Return the broadcast state declared by a descriptor given to `broadcast`, for reading."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[IN1, IN2, OUT]):
    """A stream without keys beside a broadcast one."""

    class Context(BaseBroadcastProcessFunction.Context):
        """Handed to `process_broadcast_element`."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """Handed to `process_element`."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Emitted:
        """Take one record of the stream that is not broadcast."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: BroadcastProcessFunction.Context) -> Emitted:
        """Take one record of the broadcast stream; every subtask sees it."""


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction, Generic[KEY, IN1, IN2, OUT]):
    """A keyed stream beside a broadcast one: state and timers per key on the keyed side."""

    class Context(BaseBroadcastProcessFunction.Context):
        """Handed to `process_broadcast_element`."""

        @abstractmethod
        def apply_to_keyed_state(self, state_descriptor: StateDescriptor, function: KeyedStateFunction) -> None:
            """Call a function with each key of this subtask that has the state, and its state."""

    class ReadOnlyContext(BaseBroadcastProcessFunction.ReadOnlyContext):
        """Handed to `process_element`."""

        @abstractmethod
        def timer_service(self) -> TimerService:
            """Return both clocks, and the timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """Return the key of the record."""

    class OnTimerContext(ReadOnlyContext):
        """Handed to `on_timer`."""

        @abstractmethod
        def time_domain(self) -> TimeDomain:
            """Which clock made the timer fire."""

    @abstractmethod
    def process_element(self, value: IN1, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext) -> Emitted:
        """Take one record of the keyed stream."""

    @abstractmethod
    def process_broadcast_element(self, value: IN2, ctx: KeyedBroadcastProcessFunction.Context) -> Emitted:
        """Take one record of the broadcast stream; every subtask sees it."""

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastProcessFunction.OnTimerContext) -> Emitted:
        """Called when a timer that was registered for the context's key fires."""
