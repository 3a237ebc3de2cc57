"""Assigners of time windows: what they share, and tumbling and sliding windows in both time domains."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

from ekorn.errors import InvalidProgramError, preview
from ekorn.functions.windows.assigner_contract import WindowAssigner, WindowStagger
from ekorn.functions.windows.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from ekorn.functions.windows.trigger_contract import Trigger
from ekorn.functions.windows.window_arithmetic import WindowGrid, aligned_start, window_starts
from ekorn.functions.windows.window_values import TimeWindow, TimeWindowSerializer
from ekorn.types.serializer import TypeSerializer
from ekorn.types.time import Duration, Time, length_of, millis_of

Length = Time | Duration | Any
"""A length of time: a `Time`, a `Duration` or a `datetime.timedelta`."""

Context = WindowAssigner.WindowAssignerContext
_MAX_WINDOWS_PER_RECORD = 10_000_000


class TimeWindowAssigner(WindowAssigner[Any, TimeWindow]):
    """The base of the built-in assigners of time windows. `event_time` decides the trigger."""

    event_time = True

    def get_default_trigger(self, env: Any) -> Trigger[Any, TimeWindow]:
        """Return the trigger that fires at the window's end, in the assigner's time domain."""
        return EventTimeTrigger() if self.event_time else ProcessingTimeTrigger()

    def get_window_serializer(self) -> TypeSerializer[TimeWindow]:
        """Return the serializer of time windows."""
        return TimeWindowSerializer()

    def is_event_time(self) -> bool:
        """Return whether windows end by event time; otherwise they end by processing time."""
        return self.event_time

    def window_time(self, element: Any, timestamp: int | None, context: Context) -> int:
        """Return the time that decides a record's windows: its timestamp, or the clock."""
        if not self.event_time:
            return context.get_current_processing_time()
        if timestamp is None:
            raise no_timestamp(element)
        return timestamp


def no_timestamp(element: Any) -> InvalidProgramError:
    """Return the error for a record without a timestamp that reaches an event-time window."""
    return InvalidProgramError(
        f"the record {preview(element)} has no timestamp, but its windows use event time; "
        "call assign_timestamps_and_watermarks(...) before window(...), or use processing-time windows"
    )


class _TumblingWindows(TimeWindowAssigner):
    def __init__(self, size: int, offset: int, window_stagger: WindowStagger | None = None) -> None:
        if size <= 0:
            raise ValueError(f"{type(self).__name__}: the size must be positive, got {size} ms")
        if abs(offset) >= size:
            raise ValueError(
                f"{type(self).__name__}: the offset must be shorter than the size, {size} ms, got {offset}"
            )
        self.size = size
        self.offset = offset
        self.window_stagger = window_stagger or WindowStagger.ALIGNED
        self._stagger: int | None = 0 if self.window_stagger is WindowStagger.ALIGNED else None

    def assign_windows(self, element: Any, timestamp: int, context: Context) -> Collection[TimeWindow]:
        """Return the window that holds the record's time."""
        time = self.window_time(element, timestamp, context)
        if self._stagger is None:
            now = context.get_current_processing_time()
            self._stagger = self.window_stagger.get_stagger_offset(now, self.size, random.random)
        start = aligned_start(time, (self.offset + self._stagger) % self.size, self.size)
        return [TimeWindow(start, start + self.size)]

    def arithmetic(self) -> WindowGrid | None:
        """Return the grid of the windows, unless each subtask staggers them."""
        if self.window_stagger is not WindowStagger.ALIGNED or type(self) not in _BUILT_IN:
            return None
        return WindowGrid(self.size, self.size, self.offset)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.offset})"


class TumblingEventTimeWindows(_TumblingWindows):
    """Assigns tumbling windows by event time: windows of one size that neither overlap nor leave gaps.

    Example:
        >>> TumblingEventTimeWindows.of(Time.seconds(5), Time.seconds(1))
        TumblingEventTimeWindows(5000, 1000)
    """

    @staticmethod
    def of(
        size: Length, offset: Length | None = None, window_stagger: WindowStagger | None = None
    ) -> TumblingEventTimeWindows:
        """Return an assigner. The offset shifts the starts of windows, as time zones need it (`Time.hours(-8)`)."""
        return TumblingEventTimeWindows(
            length_of(size, "TumblingEventTimeWindows.of()"), _offset(offset), window_stagger
        )


class TumblingProcessingTimeWindows(_TumblingWindows):
    """Assigns tumbling windows by processing time: windows of one size that neither overlap nor leave gaps."""

    event_time = False

    @staticmethod
    def of(
        size: Length, offset: Length | None = None, window_stagger: WindowStagger | None = None
    ) -> TumblingProcessingTimeWindows:
        """Return an assigner. The offset shifts the starts of windows."""
        return TumblingProcessingTimeWindows(
            length_of(size, "TumblingProcessingTimeWindows.of()"), _offset(offset), window_stagger
        )


class _SlidingWindows(TimeWindowAssigner):
    def __init__(self, size: int, slide: int, offset: int) -> None:
        if size <= 0 or slide <= 0 or abs(offset) >= slide:
            raise ValueError(
                f"{type(self).__name__}: size and slide must be positive and the offset shorter than the slide, "
                f"got size {size}, slide {slide} and offset {offset} ms"
            )
        if size / slide > _MAX_WINDOWS_PER_RECORD:
            raise ValueError(
                f"{type(self).__name__}: with size {size} and slide {slide} ms every record would be in "
                f"{size // slide:,} windows; at most {_MAX_WINDOWS_PER_RECORD:,} are allowed"
            )
        self.size = size
        self.slide = slide
        self.offset = offset

    def assign_windows(self, element: Any, timestamp: int, context: Context) -> Collection[TimeWindow]:
        """Return all windows that hold the record's time, the latest first."""
        time, size = self.window_time(element, timestamp, context), self.size
        return [TimeWindow(start, start + size) for start in window_starts(time, size, self.slide, self.offset)]

    def arithmetic(self) -> WindowGrid | None:
        """Return the grid of the windows."""
        return WindowGrid(self.size, self.slide, self.offset) if type(self) in _BUILT_IN else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size}, {self.slide}, {self.offset})"


class SlidingEventTimeWindows(_SlidingWindows):
    """Assigns sliding windows by event time: windows of one size, one starting every `slide`."""

    @staticmethod
    def of(size: Length, slide: Length, offset: Length | None = None) -> SlidingEventTimeWindows:
        """Return an assigner of windows of a size, one starting every `slide`."""
        call = "SlidingEventTimeWindows.of()"
        return SlidingEventTimeWindows(length_of(size, call), length_of(slide, call), _offset(offset))


class SlidingProcessingTimeWindows(_SlidingWindows):
    """Assigns sliding windows by processing time: windows of one size, one starting every `slide`."""

    event_time = False

    @staticmethod
    def of(size: Length, slide: Length, offset: Length | None = None) -> SlidingProcessingTimeWindows:
        """Return an assigner of windows of a size, one starting every `slide`."""
        call = "SlidingProcessingTimeWindows.of()"
        return SlidingProcessingTimeWindows(length_of(size, call), length_of(slide, call), _offset(offset))


_BUILT_IN = (
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
)


def _offset(offset: Length | None) -> int:
    return 0 if offset is None else millis_of(offset)
