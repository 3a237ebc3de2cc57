"""The arithmetic of windows for all rows of a batch at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ekorn.columns.key_words import Rows
from ekorn.functions.windows.window_arithmetic import WindowGrid

__all__ = ["Starts", "starts_of_windows", "within_64_bits"]

Starts = NDArray[np.int64]

_BITS = np.iinfo(np.int64)


def starts_of_windows(times: NDArray[np.int64], grid: WindowGrid) -> tuple[Rows, Starts]:
    """Return the windows that hold the times of rows: for each window the position of the row, and the start.

    The windows of a row follow each other, the latest first.
    """
    latest = times - (times - grid.offset_ms) % grid.slide_ms
    if grid.is_tumbling:
        return np.arange(len(times)), latest
    most = -(-grid.size_ms // grid.slide_ms)
    starts = latest[:, None] - np.arange(most, dtype=np.int64) * grid.slide_ms
    holds = starts > times[:, None] - grid.size_ms
    return np.nonzero(holds)[0], starts[holds]


def within_64_bits(time_ms: int) -> int:
    """Return a time, or the closest one that a vector can be compared with."""
    return min(max(time_ms, int(_BITS.min)), int(_BITS.max))
