"""The time domain of an operator's windows: when a window has ended, and when it is over."""

from __future__ import annotations

from ekorn.operators.contexts.element_context import Clocks
from ekorn.types.time_bounds import MAX_TIMESTAMP


class WindowTime:
    """The time domain of an operator's windows, and the allowed lateness."""

    __slots__ = ("_clocks", "event_time", "lateness_ms")

    def __init__(self, clocks: Clocks, *, event_time: bool, lateness_ms: int) -> None:
        self._clocks = clocks
        self.event_time = event_time
        self.lateness_ms = lateness_ms if event_time else 0

    @property
    def watermark_ms(self) -> int:
        return self._clocks.watermark_ms

    def is_over(self, end_ms: int) -> bool:
        """Return whether the window that ends at `end_ms` takes no more records. Processing-time windows always do."""
        return self.event_time and min(end_ms - 1 + self.lateness_ms, MAX_TIMESTAMP) <= self._clocks.watermark_ms

    def has_ended(self, end_ms: int) -> bool:
        """Return whether the window that ends at `end_ms` has fired and fires again with every record."""
        return self.event_time and end_ms - 1 <= self._clocks.watermark_ms

    def is_late(self, time_ms: int) -> bool:
        """Return whether a record that no open window takes is late. Otherwise it lies in a gap between windows."""
        return time_ms + self.lateness_ms <= self._clocks.watermark_ms
