"""The aggregate of consecutive sliding windows of one key, in a few steps per window however many slices it has.

This is the two-stacks algorithm for functions without an inverse. From time to time the slices of a window are combined
from the last to the first, and the aggregate of each suffix is kept. Each of the following windows starts with one of
these suffixes. The slices that arrive later are combined into a second aggregate, and a window is the combination of
both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.operators.windows.contents import MISSING


class SlidingAggregate:
    """The partial aggregates that consecutive windows of one key share."""

    __slots__ = ("_combine", "_last_start", "_newer", "_suffixes")

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._suffixes: list[Any] = []  # flat: start, aggregate of the slices from there on; the earliest start last
        self._newer: Any = MISSING  # the aggregate of the slices after the suffixes
        self._last_start = 0  # the start of the last slice that is aggregated

    def aggregate(self, strip: list[Any], low_ms: int, high_ms: int) -> Any:
        """Return the aggregate of the slices that start in [low_ms, high_ms). Neither bound ever decreases.

        The strip is flat: (start, _, _, value) per slice, in ascending order. At least one slice starts in the range.
        """
        suffixes = self._suffixes
        while suffixes and suffixes[-2] < low_ms:
            del suffixes[-2:]
        if not suffixes:
            return self._rebuild(strip, low_ms, high_ms)
        position = len(strip) - 4
        while strip[position] >= high_ms:
            position -= 4
        last = position
        while strip[position] > self._last_start:
            position -= 4
        for at in range(position + 4, last + 4, 4):
            self._newer = strip[at + 3] if self._newer is MISSING else self._combine(self._newer, strip[at + 3])
        self._last_start = strip[last]
        return suffixes[-1] if self._newer is MISSING else self._combine(suffixes[-1], self._newer)

    def _rebuild(self, strip: list[Any], low_ms: int, high_ms: int) -> Any:
        value, self._newer, self._last_start = MISSING, MISSING, low_ms - 1
        for at in range(len(strip) - 4, -4, -4):
            if low_ms <= strip[at] < high_ms:
                value = strip[at + 3] if value is MISSING else self._combine(strip[at + 3], value)
                self._suffixes += (strip[at], value)
                self._last_start = max(self._last_start, strip[at])
        return value
