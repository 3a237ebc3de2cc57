"""Windows, and what assigns records to them and decides when they fire: the contracts.

The assigners, triggers and evictors that come with tamias are in `window_assigners`, `triggers` and `evictors`.
"""

from __future__ import annotations

import enum
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tamias.types.published import publish
from tamias.types.serializer import TypeSerializer
from tamias.types.time_bounds import MAX_TIMESTAMP

if TYPE_CHECKING:
    from tamias.functions.runtime_context import RuntimeContext
    from tamias.functions.state_descriptors import StateDescriptor
    from tamias.metrics.metricbase import MetricGroup

T = TypeVar("T")
W = TypeVar("W", bound="Window")
M = TypeVar("M", bound="Window")

MAX_LONG_VALUE = MAX_TIMESTAMP
MIN_LONG_VALUE = -MAX_TIMESTAMP - 1


# --------------------------------------------------------------------------------------------- windows


class Window(ABC):
    """A group of records. Windows are values: equal ones are one window, so a class needs `__eq__` and `__hash__`."""

    @abstractmethod
    def max_timestamp(self) -> int:
        """The last instant that belongs to the window: the timestamp of its results."""


class TimeWindow(Window):
    """An interval of time, from `start` to just before `end`.

    Example:
        >>> TimeWindow(0, 10).max_timestamp()
        9
        >>> TimeWindow(0, 10).intersects(TimeWindow(10, 20)), TimeWindow(0, 10).cover(TimeWindow(10, 20))
        (True, TimeWindow(start=0, end=20))
    """

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        """The millisecond before the end."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Whether the two overlap or touch: then they are merged."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """The smallest window that holds both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """The start of the window that a timestamp falls into, where windows stand side by side.

        Example:
            >>> TimeWindow.get_window_start_with_offset(-4, -3, 10)
            -13
        """
        return timestamp - (timestamp - offset) % window_size

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]) -> None:
        """Find the groups of windows that overlap or touch, and tell the callback about each of more than one."""
        group: list[TimeWindow] = []
        cover: TimeWindow | None = None
        for window in sorted(windows, key=lambda w: w.start):
            if cover is None or not cover.intersects(window):
                if cover is not None and len(group) > 1:
                    callback.merge(group, cover)
                group, cover = [window], window
            else:
                group.append(window)
                cover = cover.cover(window)
        if cover is not None and len(group) > 1:
            callback.merge(group, cover)

    def __eq__(self, other: object) -> bool:
        return (
            self.__class__ is other.__class__
            and isinstance(other, TimeWindow)
            and (self.start == other.start and self.end == other.end)
        )

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __lt__(self, other: TimeWindow) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class GlobalWindow(Window):
    """The one window that holds everything."""

    def max_timestamp(self) -> int:
        """The end of time."""
        return MAX_TIMESTAMP

    @staticmethod
    def get() -> GlobalWindow:
        """The window."""
        return GLOBAL_WINDOW

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalWindow)

    def __hash__(self) -> int:
        return 0

    def __lt__(self, other: GlobalWindow) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindow"


GLOBAL_WINDOW = GlobalWindow()


class CountWindow(Window):
    """The window with a number among those that hold so many records each."""

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """The end of time: such a window has nothing to do with it."""
        return MAX_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountWindow) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __lt__(self, other: CountWindow) -> bool:
        return self.id < other.id

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


_TWO_LONGS, _LONG = struct.Struct(">qq"), struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes the start and the end."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Write a window."""
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Read a window."""
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Writes the number."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Write a window."""
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Read a window."""
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes a byte, since there is only one window."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        """Write the window."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Read the window."""
        stream.read(1)
        return GlobalWindow.get()


# ------------------------------------------------------------------------------------------- assigners


class WindowAssigner(ABC, Generic[T, W]):
    """Says to which windows a record belongs."""

    class WindowAssignerContext(ABC):
        """What an assigner may ask for."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The wall clock, in milliseconds."""

        @abstractmethod
        def get_runtime_context(self) -> RuntimeContext:
            """The operator's context: keyed state of the record's key."""

    @abstractmethod
    def assign_windows(self, element: T, timestamp: int, context: WindowAssignerContext) -> Collection[W]:
        """The windows of a record with a timestamp."""

    @abstractmethod
    def get_default_trigger(self, env: Any) -> Trigger[T, W]:
        """The trigger that is used unless the program sets one."""

    @abstractmethod
    def get_window_serializer(self) -> TypeSerializer[W]:
        """How windows are written to checkpoints."""

    @abstractmethod
    def is_event_time(self) -> bool:
        """Whether windows end by event time, or else by processing time."""


class MergingWindowAssigner(WindowAssigner[T, W]):
    """An assigner whose windows may grow together, such as sessions."""

    class MergeCallback(ABC, Generic[M]):
        """Told which windows become one."""

        @abstractmethod
        def merge(self, to_be_merged: Iterable[M], merge_result: M) -> None:
            """These windows are to be replaced by this one."""

    @abstractmethod
    def merge_windows(self, windows: Iterable[W], callback: MergingWindowAssigner.MergeCallback[W]) -> None:
        """Tell the callback which of these windows become which."""


class WindowStagger(enum.Enum):
    """Whether the windows of all subtasks end together."""

    ALIGNED = "aligned"
    RANDOM = "random"  # every subtask shifts its windows by an amount of its own
    NATURAL = "natural"  # a subtask's windows begin when its first record comes

    def get_stagger_offset(self, current_processing_time: int, size: int, chance: Callable[[], float]) -> int:
        """How far a subtask shifts its windows; asked for with its first record."""
        if self is WindowStagger.NATURAL:
            return current_processing_time % size
        return int(chance() * size) if self is WindowStagger.RANDOM else 0


# -------------------------------------------------------------------------------------------- triggers


class TriggerResult(enum.Enum):
    """What happens to a window: (evaluate its contents, drop them)."""

    CONTINUE = (False, False)
    FIRE_AND_PURGE = (True, True)
    FIRE = (True, False)
    PURGE = (False, True)

    def is_fire(self) -> bool:
        """Whether the window function is called."""
        return self.value[0]

    def is_purge(self) -> bool:
        """Whether the contents are dropped; the window itself, its timers and the trigger's state stay."""
        return self.value[1]


class Trigger(ABC, Generic[T, W]):
    """Decides when a window is evaluated. A trigger keeps nothing in itself: its state is per key and window."""

    class TriggerContext(ABC):
        """What a trigger may ask for; timers and state belong to the current key and window."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The wall clock, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """The operator's metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The operator's watermark."""

        @abstractmethod
        def register_processing_time_timer(self, time: int) -> None:
            """Call `on_processing_time` once the clock has passed this time."""

        @abstractmethod
        def register_event_time_timer(self, time: int) -> None:
            """Call `on_event_time` once the watermark reaches this time."""

        @abstractmethod
        def delete_processing_time_timer(self, time: int) -> None:
            """Forget a timer."""

        @abstractmethod
        def delete_event_time_timer(self, time: int) -> None:
            """Forget a timer."""

        @abstractmethod
        def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
            """State of the current key and window."""

    class OnMergeContext(TriggerContext):
        """What a trigger may ask for when windows become one."""

        @abstractmethod
        def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
            """Bring the state of the merged windows together: list, reducing and aggregating state can be merged."""

    @abstractmethod
    def on_element(self, element: T, timestamp: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A record was added to a window."""

    @abstractmethod
    def on_processing_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """A processing-time timer of the window fired."""

    @abstractmethod
    def on_event_time(self, time: int, window: W, ctx: Trigger.TriggerContext) -> TriggerResult:
        """An event-time timer of the window fired."""

    def can_merge(self) -> bool:
        """Whether the trigger may be used with windows that merge; it then has an `on_merge`."""
        return False

    @abstractmethod
    def on_merge(self, window: W, ctx: Trigger.OnMergeContext) -> None:
        """Several windows became this one."""

    @abstractmethod
    def clear(self, window: W, ctx: Trigger.TriggerContext) -> None:
        """The window is over: forget its state and timers."""


# -------------------------------------------------------------------------------------------- evictors


class TimestampedValue(Generic[T]):
    """A record of a window with its timestamp, as evictors see it."""

    __slots__ = ("_timestamp", "_value")

    def __init__(self, value: T, timestamp: int | None = None) -> None:
        self._value = value
        self._timestamp = timestamp

    def get_value(self) -> T:
        """The record."""
        return self._value

    def get_timestamp(self) -> int | None:
        """Its timestamp in milliseconds; None when it has none."""
        return self._timestamp

    def has_timestamp(self) -> bool:
        """Whether the record has a timestamp."""
        return self._timestamp is not None

    def __repr__(self) -> str:
        return f"TimestampedValue({self._value!r}, {self._timestamp})"


class Evictor(ABC, Generic[T, W]):
    """Removes records from a window when it fires, before or after the window function.

    The elements are a list in the order in which they came; what is removed from it is removed for good.
    """

    class EvictorContext(ABC):
        """What an evictor may ask for."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """The wall clock, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """The operator's metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """The operator's watermark."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue[T]], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Remove elements before the window function sees them."""

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue[T]], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Remove elements after the window function has seen them."""


publish("tamias.datastream.window", TimeWindow, CountWindow, GlobalWindow)
