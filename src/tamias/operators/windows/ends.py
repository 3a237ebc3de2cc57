"""When windows that end at fixed times fire, and when they are over: two heaps, and no timer per key."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush


class WindowEnds:
    """The ends of open windows, in order of time."""

    __slots__ = ("_ends", "_known", "_lateness", "_overs")

    def __init__(self, lateness_ms: int) -> None:
        self._lateness = lateness_ms
        self._known: set[int] = set()
        self._ends: list[int] = []  # a heap: windows that have not fired
        self._overs: list[int] = []  # a heap: windows that are kept for late records; unused when none are

    def enter(self, end_ms: int, *, fired: bool = False) -> None:
        """A window is open; one that has ended already will not come up as firing. Entering it again does nothing."""
        if end_ms in self._known:
            return
        self._known.add(end_ms)
        if not fired:
            heappush(self._ends, end_ms)
        if self._lateness:
            heappush(self._overs, end_ms)

    def next_ms(self) -> int | None:
        """When a window fires next."""
        return self._ends[0] if self._ends else None

    def due(self, limit_ms: int) -> Iterator[tuple[int, bool, bool]]:
        """The windows that fire or are over up to a time, in the order of their times: end, fires, is over."""
        ends, overs, lateness = self._ends, self._overs, self._lateness
        while self._is_due(limit_ms):
            if not lateness:
                end = heappop(ends)
                self._known.discard(end)
                yield end, True, True
            elif ends and (not overs or ends[0] <= overs[0] + lateness):
                yield heappop(ends), True, False
            else:
                end = heappop(overs)
                self._known.discard(end)
                yield end, False, True

    def _is_due(self, limit_ms: int) -> bool:
        return bool(self._ends and self._ends[0] - 1 <= limit_ms) or bool(
            self._overs and self._overs[0] - 1 + self._lateness <= limit_ms
        )

    def clear(self) -> None:
        """No window is open."""
        self._known.clear()
        self._ends.clear()
        self._overs.clear()
