"""The arithmetic of time windows: where windows and slices start and end.

No other module computes it. The assigners use it per record, the window operators build their layouts on it, and the
generated loops take their expressions from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple


class TimeSpan(NamedTuple):
    """A span of event time or processing time: the start belongs to it, the end does not.

    Checkpoints hold spans as `SavedSpan`: no class of ekorn is pickled into them.
    """

    start_ms: int
    end_ms: int


SavedSpan = tuple[int, int]
"""A `TimeSpan` as state tables and checkpoints hold it: `tuple(span)`."""


def aligned_start(time_ms: int, offset_ms: int, step_ms: int) -> int:
    """Return the latest time up to `time_ms` that is `offset_ms` plus a multiple of `step_ms`.

    Example:
        >>> aligned_start(17, 0, 10), aligned_start(-4, -3, 10)
        (10, -13)
    """
    return time_ms - (time_ms - offset_ms) % step_ms


def window_starts(time_ms: int, size_ms: int, slide_ms: int, offset_ms: int) -> range:
    """Return the starts of the sliding windows that hold a time, the latest first.

    Example:
        >>> list(window_starts(9, 10, 4, 0))
        [8, 4, 0]
    """
    return range(aligned_start(time_ms, offset_ms, slide_ms), time_ms - size_ms, -slide_ms)


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """Windows of one size, one starting every `slide_ms`. Tumbling windows slide by their size.

    A slice is the span between two neighbouring starts or ends of windows: all its records belong to the same windows,
    and every window consists of whole slices. Where the slide divides the size, a slice is as long as the slide.
    Elsewhere a slide has two slices, and the first one belongs to one window more than the second. Where the slide is
    longer than the size, the second one is a gap that belongs to no window.

    Example:
        >>> grid = WindowGrid(size_ms=10, slide_ms=4, offset_ms=0)
        >>> grid.window_ends(9), grid.slice_start(9), grid.slice_end(8)
        ([18, 14, 10], 8, 10)
    """

    size_ms: int
    slide_ms: int
    offset_ms: int

    @property
    def is_tumbling(self) -> bool:
        return self.slide_ms == self.size_ms

    @property
    def rest_ms(self) -> int:
        """The length of the first slice where a slide has two; 0 where a slide is one slice."""
        return self.size_ms % self.slide_ms

    def window(self, end_ms: int) -> TimeSpan:
        """Return the window that ends at `end_ms`."""
        return TimeSpan(end_ms - self.size_ms, end_ms)

    def window_ends(self, time_ms: int) -> list[int]:
        """Return the ends of the windows that hold a time, the latest first."""
        size = self.size_ms
        return [start + size for start in window_starts(time_ms, size, self.slide_ms, self.offset_ms)]

    def slice_start(self, time_ms: int) -> int:
        """Return the start of the slice that holds a time."""
        start, rest = aligned_start(time_ms, self.offset_ms, self.slide_ms), self.rest_ms
        return start + rest if rest and time_ms - start >= rest else start

    def slice_end(self, start_ms: int) -> int:
        """Return the end of the slice that starts at `start_ms`."""
        slide_start = aligned_start(start_ms, self.offset_ms, self.slide_ms)
        return start_ms + (self.rest_ms or self.slide_ms) if start_ms == slide_start else slide_start + self.slide_ms

    def is_slice(self, span: TimeSpan) -> bool:
        return self.slice_start(span.start_ms) == span.start_ms and self.slice_end(span.start_ms) == span.end_ms

    def slice_starts(self, end_ms: int) -> Iterator[int]:
        """Yield the starts of the slices of the window that ends at `end_ms`, in ascending order."""
        rest = self.rest_ms
        for start in range(end_ms - self.size_ms, end_ms, self.slide_ms):
            yield start
            if rest and start + rest < end_ms:
                yield start + rest

    def slices_ending_with(self, end_ms: int) -> tuple[int, ...]:
        """Return the starts of the slices whose last window ends at `end_ms`."""
        start = end_ms - self.size_ms
        return (start, start + self.rest_ms) if self.rest_ms else (start,)

    # The same arithmetic as source text, for the generated loops: `time` is an expression for milliseconds.

    def slide_offset_expression(self, time: str) -> str:
        """Return an expression for how far a time lies behind the last start of a window.

        Example:
            >>> WindowGrid(10, 4, 1).slide_offset_expression("t"), WindowGrid(10, 4, 0).slide_offset_expression("t")
            ('(t - 1) % 4', 't % 4')
        """
        shift = self.offset_ms % self.slide_ms
        return f"({time} - {shift}) % {self.slide_ms}" if shift else f"{time} % {self.slide_ms}"

    def tumbling_end_expression(self, time: str) -> str:
        """Return an expression for the end of the tumbling window that holds a time.

        Example:
            >>> WindowGrid(10, 10, 0).tumbling_end_expression("t")
            't - t % 10 + 10'
        """
        assert self.is_tumbling, "a time has one window in tumbling windows only"
        return f"{time} - {self.slide_offset_expression(time)} + {self.size_ms}"


@dataclass(frozen=True, slots=True)
class SessionGap:
    """The gap that ends a session: a fixed one, or one that depends on the record."""

    after: Callable[[Any], int]  # returns the gap after a record, in milliseconds
    fixed_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CountGrid:
    """Windows of a number of records of a key, one starting every `slide` records. Records are numbered from 0."""

    size: int
    slide: int
