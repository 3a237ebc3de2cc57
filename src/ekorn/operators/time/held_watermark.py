"""Decides when to warn that one of several inputs holds the watermark back while the others advance.

Windows and event-time timers then wait, and nothing else shows why: no error, no failed checkpoint. An input whose
silence is no mistake is left out with `WatermarkStrategy.with_idleness`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from ekorn.types.time_bounds import MIN_TIMESTAMP, watermark_text

Input = TypeVar("Input")


@dataclass(frozen=True, slots=True)
class WatermarkHold(Generic[Input]):
    """An input that holds the watermark back.

    Attributes:
        input: The input with the least watermark.
        watermark_ms: Its watermark.
        furthest_ms: The watermark of the input that is furthest.
        seconds: How long the least watermark has not advanced.
    """

    input: Input
    watermark_ms: int
    furthest_ms: int
    seconds: float

    def __str__(self) -> str:
        has_none = self.watermark_ms == MIN_TIMESTAMP
        stands = "has no watermark" if has_none else f"stands at {watermark_text(self.watermark_ms)}"
        return (
            f"{stands} for {self.seconds:.0f} s, while the most advanced one is at {watermark_text(self.furthest_ms)}: "
            "windows and timers wait for it; if it is expected to be silent, call with_idleness() on its watermark "
            "strategy"
        )


class HeldWatermark(Generic[Input]):
    """Watches the watermarks of several inputs. The subtask calls `check` once per epoch.

    The time before each further warning about the same standstill doubles.

    Args:
        after_ms: How long the least watermark may stand still while others advance; 0 for no warnings.
    """

    def __init__(self, after_ms: int) -> None:
        self._after_s = after_ms / 1000
        self._least_ms: int | None = None
        self._furthest_ms = MIN_TIMESTAMP  # the highest watermark when the least one stopped advancing
        self._since = 0.0
        self._due_s = 0.0

    def check(self, watermarks: Mapping[Input, int], now: float) -> WatermarkHold[Input] | None:
        """Take in the watermarks of the inputs that are not idle; return the input to warn about, if it is time.

        Args:
            watermarks: By input.
            now: Seconds of a monotonic clock.
        """
        if len(watermarks) < 2 or not self._after_s:
            self._least_ms = None
            return None
        least_ms, furthest_ms = min(watermarks.values()), max(watermarks.values())
        if least_ms != self._least_ms:
            self._least_ms, self._furthest_ms = least_ms, furthest_ms
            self._since, self._due_s = now, self._after_s
            return None
        seconds = now - self._since
        # If all watermarks stand still, the input merely pauses.
        if seconds < self._due_s or furthest_ms <= self._furthest_ms:
            return None
        self._due_s = 2 * seconds
        holder = next(each for each, watermark_ms in watermarks.items() if watermark_ms == least_ms)
        return WatermarkHold(holder, least_ms, furthest_ms, seconds)
