"""A key's windows one after the other, each for a few steps of work, however many slices it has.

From time to time the slices of a window are put together from the last to the first, and what came of each tail is
remembered. The windows that follow begin with such a tail; what has come since is put together once more, and both
make the window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamias.operators.windows.contents import MISSING


class Running:
    """What is remembered between the windows of one key."""

    __slots__ = ("_head", "_join", "_last", "_tails")

    def __init__(self, join: Callable[[Any, Any], Any]) -> None:
        self._join = join
        self._tails: list[Any] = []  # (start, the slices from there on, put together) after (...); the earliest last
        self._head: Any = MISSING  # the slices after those
        self._last = 0  # the start of the last slice that is in any of this

    def window(self, strip: list[Any], low_ms: int, high_ms: int) -> Any:
        """The value of the slices that start from one time up to another; neither is ever less than it was before.

        The strip is (start, _, _, value) after (start, _, _, value), in order, with a start among those.
        """
        tails = self._tails
        while tails and tails[-2] < low_ms:
            del tails[-2:]
        if not tails:
            return self._begin_anew(strip, low_ms, high_ms)
        position = len(strip) - 4
        while strip[position] >= high_ms:
            position -= 4
        last = position
        while strip[position] > self._last:
            position -= 4
        for at in range(position + 4, last + 4, 4):
            self._head = strip[at + 3] if self._head is MISSING else self._join(self._head, strip[at + 3])
        self._last = strip[last]
        return tails[-1] if self._head is MISSING else self._join(tails[-1], self._head)

    def _begin_anew(self, strip: list[Any], low_ms: int, high_ms: int) -> Any:
        value, self._head, self._last = MISSING, MISSING, low_ms - 1
        for at in range(len(strip) - 4, -4, -4):
            if low_ms <= strip[at] < high_ms:
                value = strip[at + 3] if value is MISSING else self._join(strip[at + 3], value)
                self._tails += (strip[at], value)
                self._last = max(self._last, strip[at])
        return value
