"""The slices of sliding windows: the times between one start or end of a window and the next.

Every window consists of whole slices, so a record needs to be in its slice only. Where the slide divides the size, a
slice is as long as the slide; elsewhere a slide has two, and the first of them lies in one window more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slicing:
    """Windows of a size that begin every `slide_ms`; the slide is not longer than the size."""

    size_ms: int
    slide_ms: int
    offset_ms: int

    @property
    def rest_ms(self) -> int:
        """How long the first slice of a slide is where there are two; 0 where there is one."""
        return self.size_ms % self.slide_ms

    def start_of(self, time_ms: int) -> int:
        """The start of the slice that holds a time."""
        into, rest = (time_ms - self.offset_ms) % self.slide_ms, self.rest_ms
        return time_ms - into + (rest if rest and into >= rest else 0)

    def end_of(self, start_ms: int) -> int:
        """The end of the slice that starts then."""
        into = (start_ms - self.offset_ms) % self.slide_ms
        return start_ms - into + self.slide_ms if into else start_ms + (self.rest_ms or self.slide_ms)

    def has(self, start_ms: int, end_ms: int) -> bool:
        """Whether there is such a slice."""
        return self.start_of(start_ms) == start_ms and self.end_of(start_ms) == end_ms

    def windows_of(self, start_ms: int) -> list[int]:
        """The ends of the windows that the slice is part of, the latest first."""
        last = start_ms - (start_ms - self.offset_ms) % self.slide_ms
        return [start + self.size_ms for start in range(last, start_ms - self.size_ms, -self.slide_ms)]

    def slices_of(self, end_ms: int) -> Iterator[int]:
        """The starts of the slices that the window with this end consists of, in order."""
        rest = self.rest_ms
        for start in range(end_ms - self.size_ms, end_ms, self.slide_ms):
            yield start
            if rest and start + rest < end_ms:
                yield start + rest

    def last_in(self, end_ms: int) -> tuple[int, ...]:
        """The starts of the slices for which the window with this end is the last one."""
        start = end_ms - self.size_ms
        return (start, start + self.rest_ms) if self.rest_ms else (start,)
