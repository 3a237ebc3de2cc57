"""The ends of open windows on a grid: two heaps instead of a timer per key."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush


class WindowEnds:
    """Says which windows fire and which are over, in order of time."""

    __slots__ = ("_known", "_lateness_ms", "_to_close", "_to_fire")

    def __init__(self, lateness_ms: int) -> None:
        self._lateness_ms = lateness_ms
        self._known: set[int] = set()
        self._to_fire: list[int] = []  # a heap of the ends of windows that have not fired
        self._to_close: list[int] = []  # a heap of the ends of windows that are open; empty without allowed lateness

    def enter(self, end_ms: int, *, fired: bool = False) -> None:
        """Add an open window. A window that has fired does not come up as firing. Adding it twice does nothing."""
        if end_ms in self._known:
            return
        self._known.add(end_ms)
        if not fired:
            heappush(self._to_fire, end_ms)
        if self._lateness_ms:
            heappush(self._to_close, end_ms)

    def next_ms(self) -> int | None:
        """Return the end of the window that fires next."""
        return self._to_fire[0] if self._to_fire else None

    def due(self, limit_ms: int) -> Iterator[tuple[int, bool, bool]]:
        """Yield the windows that fire or are over up to a time, in order of time, as (end, fires, is over)."""
        to_fire, to_close, lateness = self._to_fire, self._to_close, self._lateness_ms
        while self._is_due(limit_ms):
            if not lateness:
                end = heappop(to_fire)
                self._known.discard(end)
                yield end, True, True
            elif to_fire and (not to_close or to_fire[0] <= to_close[0] + lateness):
                yield heappop(to_fire), True, False
            else:
                end = heappop(to_close)
                self._known.discard(end)
                yield end, False, True

    def _is_due(self, limit_ms: int) -> bool:
        return bool(self._to_fire and self._to_fire[0] - 1 <= limit_ms) or bool(
            self._to_close and self._to_close[0] - 1 + self._lateness_ms <= limit_ms
        )

    def clear(self) -> None:
        self._known.clear()
        self._to_fire.clear()
        self._to_close.clear()

    def __len__(self) -> int:
        return len(self._known)
