"""Assigners of session windows, with a fixed or a dynamic gap, in both time domains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any

from ekorn.errors import preview
from ekorn.functions.windows.assigner_contract import MergingWindowAssigner
from ekorn.functions.windows.time_assigners import Context, Length, TimeWindowAssigner
from ekorn.functions.windows.window_arithmetic import SessionGap
from ekorn.functions.windows.window_values import TimeWindow
from ekorn.types.time import length_of


class SessionWindowTimeGapExtractor(ABC):
    """Decides how long a session stays open after a record."""

    @abstractmethod
    def extract(self, element: Any) -> int:
        """Return the gap after a record, in milliseconds."""


class _SessionWindows(TimeWindowAssigner, MergingWindowAssigner[Any, TimeWindow]):
    def assign_windows(self, element: Any, timestamp: int, context: Context) -> Collection[TimeWindow]:
        """Return the window from the record to the end of its gap. Windows that overlap or touch are merged later."""
        time = self.window_time(element, timestamp, context)
        return [TimeWindow(time, time + self.gap_after(element))]

    @abstractmethod
    def gap_after(self, element: Any) -> int:
        """Return the gap after a record, in milliseconds."""

    def merge_windows(
        self, windows: Iterable[TimeWindow], callback: MergingWindowAssigner.MergeCallback[TimeWindow]
    ) -> None:
        """Merge windows that overlap or touch."""
        TimeWindow.merge_windows(windows, callback)


class _FixedGapSessions(_SessionWindows):
    def __init__(self, session_gap: int) -> None:
        if session_gap <= 0:
            raise ValueError(f"{type(self).__name__}: the gap must be positive, got {session_gap} ms")
        self.session_gap = session_gap

    def gap_after(self, element: Any) -> int:
        """Return the fixed gap."""
        return self.session_gap

    def arithmetic(self) -> SessionGap | None:
        """Return the fixed gap."""
        return SessionGap(self.gap_after, self.session_gap) if type(self) in _BUILT_IN else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.session_gap})"


class _DynamicGapSessions(_SessionWindows):
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
        """Return the gap that the extractor gives.

        Raises:
            ValueError: the gap is not positive.
        """
        gap = self._extract(element)
        if gap <= 0:
            raise ValueError(
                f"{type(self).__name__}: the gap must be positive, but is {gap} ms after the record {preview(element)}"
            )
        return gap

    def arithmetic(self) -> SessionGap | None:
        """Return the dynamic gap."""
        return SessionGap(self.gap_after) if type(self) in _BUILT_IN else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extractor!r})"


class DynamicEventTimeSessionWindows(_DynamicGapSessions):
    """Assigns sessions by event time, with a gap that depends on the record."""

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicEventTimeSessionWindows:
        """Return an assigner of sessions that end after the gap that the extractor gives for their records."""
        return DynamicEventTimeSessionWindows(extractor)


class DynamicProcessingTimeSessionWindows(_DynamicGapSessions):
    """Assigns sessions by processing time, with a gap that depends on the record."""

    event_time = False

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicProcessingTimeSessionWindows:
        """Return an assigner of sessions that end after the gap that the extractor gives for their records."""
        return DynamicProcessingTimeSessionWindows(extractor)


class EventTimeSessionWindows(_FixedGapSessions):
    """Assigns sessions by event time: records of a key that are at most a gap apart are in one session.

    Two records exactly `gap` apart are in one session.
    """

    @staticmethod
    def with_gap(size: Length) -> EventTimeSessionWindows:
        """Return an assigner of sessions that end after a gap without records."""
        return EventTimeSessionWindows(length_of(size, "EventTimeSessionWindows.with_gap()"))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicEventTimeSessionWindows:
        """Return an assigner of sessions that end after the gap that the extractor gives for their records."""
        return DynamicEventTimeSessionWindows(extractor)


class ProcessingTimeSessionWindows(_FixedGapSessions):
    """Assigns sessions by processing time: records of a key that are at most a gap apart are in one session."""

    event_time = False

    @staticmethod
    def with_gap(size: Length) -> ProcessingTimeSessionWindows:
        """Return an assigner of sessions that end after a gap without records."""
        return ProcessingTimeSessionWindows(length_of(size, "ProcessingTimeSessionWindows.with_gap()"))

    @staticmethod
    def with_dynamic_gap(
        extractor: SessionWindowTimeGapExtractor | Callable[[Any], int],
    ) -> DynamicProcessingTimeSessionWindows:
        """Return an assigner of sessions that end after the gap that the extractor gives for their records."""
        return DynamicProcessingTimeSessionWindows(extractor)


_BUILT_IN = (
    EventTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)
