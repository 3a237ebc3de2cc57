"""The window assigners: tumbling, sliding and session windows in both times, global windows, count windows."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any

from tamias.errors import InvalidProgramError, preview
from tamias.functions.state_descriptors import ValueStateDescriptor
from tamias.functions.triggers import (
    CountTrigger,
    EndOfStreamTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from tamias.functions.window_contract import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    MergingWindowAssigner,
    TimeWindow,
    TimeWindowSerializer,
    Trigger,
    WindowAssigner,
    WindowStagger,
)
from tamias.types.serializer import TypeSerializer
from tamias.types.time import Duration, Time, millis_of

Length = Time | Duration | Any
"""A length of time: a `Time`, a `Duration`, a `datetime.timedelta`, or milliseconds."""

_Context = WindowAssigner.WindowAssignerContext
_MOST_WINDOWS = 10_000_000


class _TimeWindows(WindowAssigner[Any, TimeWindow]):
    """What all assigners of time windows share: the time that counts decides the trigger."""

    event_time = True

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        """Fire when the time that counts reaches the window's end."""
        return EventTimeTrigger() if self.event_time else ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """Start and end."""
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        """Whether event time counts, or else processing time."""
        return self.event_time

    def _time(self, element: Any, timestamp: int | None, context: _Context) -> int:
        if not self.event_time:
            return context.get_current_processing_time()
        if timestamp is None:
            raise no_timestamp(element)
        return timestamp


def no_timestamp(element: Any) -> InvalidProgramError:
    """What is said when a record without a timestamp reaches an event-time window."""
    return InvalidProgramError(
        f"the record {preview(element)} has no timestamp, and its windows are of event time; "
        "call assign_timestamps_and_watermarks(...) before window(...), or use processing-time windows"
    )


class _Tumbling(_TimeWindows):
    def __init__(self, size: int, offset: int, window_stagger: WindowStagger | None = None) -> None:
        if abs(offset) >= size:
            raise ValueError(
                f"{type(self).__name__}: the offset must be shorter than the size, {size} ms, got {offset}"
            )
        self.size = size
        self.offset = offset
        self.window_stagger = window_stagger or WindowStagger.ALIGNED
        self._stagger: int | None = 0 if self.window_stagger is WindowStagger.ALIGNED else None

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[TimeWindow]:
        """The window that the record's time falls into."""
        time = self._time(element, timestamp, context)
        if self._stagger is None:
            now = context.get_current_processing_time()
            self._stagger = self.window_stagger.get_stagger_offset(now, self.size, random.random)
        start = TimeWindow.get_window_start_with_offset(time, (self.offset + self._stagger) % self.size, self.size)
        return [TimeWindow(start, start + self.size)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.offset})"


class TumblingEventTimeWindows(_Tumbling):
    """Windows of one size side by side, by event time.

    Example:
        >>> TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(1))
        TumblingEventTimeWindows(5000, 1000)
    """

    @staticmethod
    def of(
        size: Length, offset: Length | None = None, window_stagger: WindowStagger | None = None
    ) -> TumblingEventTimeWindows:
        """Windows of a size; with an offset their starts are shifted by it (time zones: `Time.hours(-8)`)."""
        return TumblingEventTimeWindows(millis_of(size), _offset(offset), window_stagger)


class TumblingProcessingTimeWindows(_Tumbling):
    """Windows of one size side by side, by processing time."""

    event_time = False

    @staticmethod
    def of(
        size: Length, offset: Length | None = None, window_stagger: WindowStagger | None = None
    ) -> TumblingProcessingTimeWindows:
        """Windows of a size; with an offset their starts are shifted by it."""
        return TumblingProcessingTimeWindows(millis_of(size), _offset(offset), window_stagger)


class _Sliding(_TimeWindows):
    def __init__(self, size: int, slide: int, offset: int) -> None:
        if size <= 0 or slide <= 0 or abs(offset) >= slide:
            raise ValueError(
                f"{type(self).__name__}: the size must be positive and the offset shorter than the slide, "
                f"got size {size}, slide {slide} and offset {offset} ms"
            )
        if size / slide > _MOST_WINDOWS:
            raise ValueError(
                f"{type(self).__name__}: with size {size} and slide {slide} ms every record would be in "
                f"{size // slide:,} windows; at most {_MOST_WINDOWS:,} are allowed"
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[TimeWindow]:
        """All windows that hold the record's time, the latest first."""
        time, size = self._time(element, timestamp, context), self.size
        last = TimeWindow.get_window_start_with_offset(time, self.offset, self.slide)
        return [TimeWindow(start, start + size) for start in range(last, time - size, -self.slide)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"


class SlidingEventTimeWindows(_Sliding):
    """Windows of one size that begin every so often and overlap, by event time."""

    @staticmethod
    def of(size: Length, slide: Length, offset: Length | None = None) -> SlidingEventTimeWindows:
        """Windows of a size, one beginning every `slide`."""
        return SlidingEventTimeWindows(millis_of(size), millis_of(slide), _offset(offset))


class SlidingProcessingTimeWindows(_Sliding):
    """Windows of one size that begin every so often and overlap, by processing time."""

    event_time = False

    @staticmethod
    def of(size: Length, slide: Length, offset: Length | None = None) -> SlidingProcessingTimeWindows:
        """Windows of a size, one beginning every `slide`."""
        return SlidingProcessingTimeWindows(millis_of(size), millis_of(slide), _offset(offset))


# -------------------------------------------------------------------------------------------- sessions


class SessionWindowTimeGapExtractor(ABC):
    """Says how long a session stays open after a record."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """The gap after this record, in milliseconds."""


class _Sessions(_TimeWindows, MergingWindowAssigner[Any, TimeWindow]):
    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[TimeWindow]:
        """A window from the record to the end of its gap, which then merges with those it touches."""
        time = self._time(element, timestamp, context)
        return [TimeWindow(time, time + self.gap_after(element))]

    @abstractmethod
    def gap_after(self, element: Any) -> int:
        """The gap after a record, in milliseconds."""

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Windows that overlap or touch become one."""
        TimeWindow.merge_windows(windows, callback)


class _StaticSessions(_Sessions):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise ValueError(f"{type(self).__name__}: the gap must be positive, got {session_gap} ms")
        self.session_gap = session_gap

    def gap_after(self, element: Any) -> int:
        """The gap."""
        return self.session_gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class _DynamicSessions(_Sessions):
    def __init__(self, session_window_time_gap_extractor: SessionWindowTimeGapExtractor | Callable[[Any], int]) -> None:
        extractor = session_window_time_gap_extractor
        if not isinstance(extractor, SessionWindowTimeGapExtractor) and not callable(extractor):
            raise TypeError(
                f"{type(self).__name__} needs a SessionWindowTimeGapExtractor or a function, got {extractor!r}"
            )
        self.extractor = extractor
        self._extract: Callable[[Any], int] = (
            extractor.extract if isinstance(extractor, SessionWindowTimeGapExtractor) else extractor
        )

    def gap_after(self, element: Any) -> int:
        """What the extractor says."""
        gap = self._extract(element)
        if gap <= 0:
            raise ValueError(f"the gap of a session must be positive, and after {preview(element)} it is {gap} ms")
        return gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extractor!r})"


class DynamicEventTimeSessionWindows(_DynamicSessions):
    """Sessions by event time, with a gap that depends on the record."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicEventTimeSessionWindows:
        """Sessions that end when nothing came for as long as the extractor says."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicSessions):
    """Sessions by processing time, with a gap that depends on the record."""

    event_time = False

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicProcessingTimeSessionWindows:
        """Sessions that end when nothing came for as long as the extractor says."""
        return DynamicProcessingTimeSessionWindows(extractor)


class EventTimeSessionWindows(_StaticSessions):
    """Sessions by event time: records of a key belong together while the gaps between them are short.

    Two records exactly `gap` apart are still in one session.
    """

    @staticmethod
    def with_gap(size: Length) -> EventTimeSessionWindows:
        """Sessions that end when nothing came for so long."""
        return EventTimeSessionWindows(millis_of(size))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicEventTimeSessionWindows:
        """Sessions that end when nothing came for as long as the extractor says."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_StaticSessions):
    """Sessions by processing time."""

    event_time = False

    @staticmethod
    def with_gap(size: Length) -> ProcessingTimeSessionWindows:
        """Sessions that end when nothing came for so long."""
        return ProcessingTimeSessionWindows(millis_of(size))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicProcessingTimeSessionWindows:
        """Sessions that end when nothing came for as long as the extractor says."""
        return DynamicProcessingTimeSessionWindows(extractor)


# ------------------------------------------------------------------------------------ global and count windows


class GlobalWindows(WindowAssigner[Any, GlobalWindow]):
    """One window for everything. It never ends by itself, so it needs a trigger."""

    def __init__(self) -> None:
        self._trigger: Trigger[Any, GlobalWindow] = NeverTrigger()

    @staticmethod
    def create() -> GlobalWindows:
        """The assigner; without a trigger of yours nothing ever fires."""
        return GlobalWindows()

    @staticmethod
    def create_with_end_of_stream_trigger() -> GlobalWindows:
        """The assigner with a trigger that fires once, at the end of the input."""
        assigner = GlobalWindows()
        assigner._trigger = EndOfStreamTrigger()
        return assigner

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[GlobalWindow]:
        """The one window."""
        return [GlobalWindow.get()]

    def get_default_trigger(self, env: Any) -> Trigger[Any, GlobalWindow]:
        """Never, or at the end of the input."""
        return self._trigger

    def get_window_serializer(self) -> TypeSerializer[GlobalWindow]:
        """One byte."""
        return GlobalWindowSerializer()

    def is_event_time(self) -> bool:
        """No: the window does not end."""
        return False

    def __repr__(self) -> str:
        return "GlobalWindows()"


class _CountWindows(WindowAssigner[Any, CountWindow]):
    """Windows over the numbers that a key's records get as they come, from 0."""

    def __init__(self, window_size: int) -> None:
        if isinstance(window_size, bool) or not isinstance(window_size, int) or window_size <= 0:
            raise ValueError(f"{type(self).__name__}: the size is a number of records above 0, got {window_size!r}")
        self.window_size = window_size
        self._counter = ValueStateDescriptor("_window/count")

    def _number(self, context: _Context) -> int:
        counter = context.get_runtime_context().get_state(self._counter)
        number: int = counter.value() or 0
        counter.update(number + 1)
        return number

    def get_default_trigger(self, env: Any) -> Trigger[Any, CountWindow]:
        """Fire when the window is full; it is then over."""
        # Flink: PyFlink keeps the contents of full windows for ever. They can get no more records: purge them.
        return PurgingTrigger(CountTrigger(self.window_size))

    def get_window_serializer(self) -> TypeSerializer[CountWindow]:
        """The window's number."""
        return CountWindowSerializer()

    def is_event_time(self) -> bool:
        """No: time does not count."""
        return False


class CountTumblingWindowAssigner(_CountWindows):
    """Windows of so many records of a key side by side."""

    @staticmethod
    def of(window_size: int) -> CountTumblingWindowAssigner:
        """Windows of so many records."""
        return CountTumblingWindowAssigner(window_size)

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[CountWindow]:
        """The window that the record's number falls into."""
        return [CountWindow(self._number(context) // self.window_size)]

    def __repr__(self) -> str:
        return f"CountTumblingWindowAssigner({self.window_size})"


class CountSlidingWindowAssigner(_CountWindows):
    """Windows of so many records of a key, one beginning every so many. Only full windows fire."""

    def __init__(self, window_size: int, window_slide: int) -> None:
        super().__init__(window_size)
        if isinstance(window_slide, bool) or not isinstance(window_slide, int) or window_slide <= 0:
            raise ValueError(f"the slide must be a positive number of records, got {window_slide!r}")
        self.window_slide = window_slide

    @staticmethod
    def of(window_size: int, window_slide: int) -> CountSlidingWindowAssigner:
        """Windows of so many records, one beginning every `window_slide` records."""
        return CountSlidingWindowAssigner(window_size, window_slide)

    def assign_windows(self, element: Any, timestamp: int, context: _Context) -> Collection[CountWindow]:
        """All windows that hold the record's number."""
        number, slide = self._number(context), self.window_slide
        first = max(0, -(-(number - self.window_size + 1) // slide))
        return [CountWindow(i) for i in range(first, number // slide + 1)]

    def __repr__(self) -> str:
        return f"CountSlidingWindowAssigner({self.window_size}, {self.window_slide})"


def _offset(offset: Length | None) -> int:
    return 0 if offset is None else millis_of(offset)
