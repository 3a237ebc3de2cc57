"""What users implement to transform records: the function classes, and the contexts they are handed.

A function is pickled when the job is built and unpickled once per subtask; `open` comes before its first
record and `close` after its last. Contexts are valid during the call that hands them out only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tamias.functions.record_fields import Field, checked_field, read_field
from tamias.functions.timer_service import TimeDomain, TimerService

if TYPE_CHECKING:
    from tamias.functions.runtime_context import RuntimeContext
    from tamias.functions.state_handles import (
        BroadcastState,
        KeyedStateFunction,
        MapStateDescriptor,
        ReadOnlyBroadcastState,
        StateDescriptor,
    )

IN1 = TypeVar("IN1")
IN2 = TypeVar("IN2")
OUT = TypeVar("OUT")
KEY = TypeVar("KEY")

Emitted = Iterable[Any] | None
"""What a process function gives back: records, and pairs of an OutputTag and a record for side outputs."""


class Function(ABC):  # noqa: B024
    """Base of everything users implement: an optional start and an optional end."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Called once per attempt, before the first record: make state handles and connections here."""

    def close(self) -> None:  # noqa: B027
        """Called once at the end, also after a failure: release what `open` took."""


class WrappingFunction(Function):
    """A function of Tamias' own around one of the user's, which may take part in checkpoints.

    Args:
        wrapped: the user's function object, or a plain callable.
    """

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def open(self, runtime_context: RuntimeContext) -> None:
        if isinstance(self.wrapped, Function):
            self.wrapped.open(runtime_context)

    def close(self) -> None:
        if isinstance(self.wrapped, Function):
            self.wrapped.close()


class MapFunction(Function):
    """One record in, one record out."""

    @abstractmethod
    def map(self, value: Any) -> Any:
        """Turn a record into another."""


class FlatMapFunction(Function):
    """One record in, any number of records out."""

    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Yield, or return an iterable of, what a record becomes; None is nothing."""


class FilterFunction(Function):
    """Keeps some records."""

    @abstractmethod
    def filter(self, value: Any) -> bool:
        """True keeps the record. The record must not be changed."""


class ReduceFunction(Function):
    """Combines two records of a key into one of the same type.

    Attributes:
        combines_exactly: set it to True in your class to promise that the result is the same to the last bit however
            the records are grouped and ordered. Sliding windows then reduce each record once, and put the parts
            together when they fire, instead of reducing it in every window that it is in. Whole numbers that are added
            keep the promise; floating-point numbers and concatenated text do not.
    """

    combines_exactly: bool = False

    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine the result so far with a new record, without changing either."""


class FoldFunction(Function):
    """Combines an accumulator with a record, which may have another type."""

    @abstractmethod
    def fold(self, accumulator: Any, value: Any) -> Any:
        """The accumulator after one more record."""


class AggregateFunction(Function):
    """Aggregates records through an accumulator of a type of its own.

    Attributes:
        combines_exactly: set it to True in your class to promise that `merge` is implemented, and that `get_result`
            gives the same to the last bit however the records are spread over accumulators that are then merged, in
            any order. Sliding windows then add each record once, and merge when they fire, instead of adding it in
            every window that it is in. A count keeps the promise; a list of records in their order does not.
    """

    combines_exactly: bool = False

    @abstractmethod
    def create_accumulator(self) -> Any:
        """A new, empty accumulator."""

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any:
        """The accumulator after one more record."""

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any:
        """The result that an accumulator stands for."""

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        """One accumulator for the records of two."""


class KeySelector(Function):
    """Finds the key of a record."""

    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key: the same for the same record every time, hashable, and not None."""


class FieldKeySelector(KeySelector):
    """The key is the tuple of some fields of the record, given by position or name.

    Also a single field gives a tuple, so that ``key_by(0)`` and ``key_by([0])`` are the same.

    Example:
        >>> FieldKeySelector(0, 2).get_key(("a", 5, True))
        ('a', True)
    """

    def __init__(self, *fields: Field) -> None:
        if not fields:
            raise ValueError("a key needs at least one field")
        self.fields = tuple(checked_field(field, "a key field") for field in fields)

    def get_key(self, value: Any) -> tuple[Any, ...]:
        """The fields of the record."""
        return tuple([read_field(value, field) for field in self.fields])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldKeySelector) and other.fields == self.fields

    def __hash__(self) -> int:
        return hash((FieldKeySelector, self.fields))

    def __repr__(self) -> str:
        return f"FieldKeySelector({', '.join(map(repr, self.fields))})"


class Partitioner(Function):
    """Chooses the subtask that a key goes to."""

    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """A subtask number from 0 to `num_partitions` - 1."""


class CoMapFunction(Function):
    """A map over two connected streams."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """Turn a record of the first stream into another."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """Turn a record of the second stream into another."""


class CoFlatMapFunction(Function):
    """A flat map over two connected streams."""

    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """What a record of the first stream becomes."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """What a record of the second stream becomes."""


class _TimedContext(ABC):
    """The part of a context that tells the time."""

    @abstractmethod
    def timer_service(self) -> TimerService:
        """Both clocks, and on keyed streams the timers."""

    @abstractmethod
    def timestamp(self) -> int | None:
        """The record's (or the timer's) timestamp in milliseconds; None for a record without one."""


class _KeyedContext(_TimedContext):
    """The same on a keyed stream."""

    @abstractmethod
    def get_current_key(self) -> Any:
        """The key of the record, or of the timer."""


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
            """The record's timestamp in milliseconds; None for a record without one."""

        @abstractmethod
        def current_processing_time(self) -> int:
            """The wall clock, in milliseconds."""

        @abstractmethod
        def current_watermark(self) -> int:
            """The operator's event-time watermark."""

    class Context(BaseContext):
        """The broadcast side's: it may write broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> BroadcastState[Any, Any]:
            """The broadcast state declared by a descriptor given to `broadcast`."""

    class ReadOnlyContext(BaseContext):
        """The other side's: it may read broadcast state."""

        @abstractmethod
        def get_broadcast_state(self, state_descriptor: MapStateDescriptor) -> ReadOnlyBroadcastState[Any, Any]:
            """The broadcast state declared by a descriptor given to `broadcast`, for reading."""


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
            """Both clocks, and the timers of the current key."""

        @abstractmethod
        def get_current_key(self) -> Any:
            """The key of the record."""

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
