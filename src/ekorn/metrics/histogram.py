"""A histogram over the latest values, with the statistics that Flink reports."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from ekorn.metrics.metric import Metric

__all__ = ["QUANTILES", "ValueHistogram"]

QUANTILES = {"median": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p98": 0.98, "p99": 0.99, "p999": 0.999}


class ValueHistogram(Metric):
    """The count of all values, and the distribution of the latest ones.

    >>> histogram = ValueHistogram(100)
    >>> for value in range(1, 101):
    ...     histogram.update(value)
    >>> found = histogram.values()
    >>> found["count"], found["min"], found["max"], found["mean"], found["median"], found["p99"]
    (100, 1, 100, 50.5, 51, 100)

    Args:
        size: How many values are kept.
    """

    __slots__ = ("_count", "_latest")
    kind = "histogram"

    def __init__(self, size: int = 128) -> None:
        self._count = 0
        self._latest: deque[float] = deque(maxlen=size)

    def update(self, value: float) -> None:
        """Add a value."""
        self._count += 1
        self._latest.append(value)

    def values(self) -> Mapping[str, Any]:
        latest = sorted(self._latest)
        if not latest:
            return {"count": 0}
        mean = sum(latest) / len(latest)
        deviation = math.sqrt(sum((value - mean) ** 2 for value in latest) / len(latest))
        at = {name: latest[min(int(part * len(latest)), len(latest) - 1)] for name, part in QUANTILES.items()}
        return {"count": self._count, "min": latest[0], "max": latest[-1], "mean": mean, "stddev": deviation, **at}
