"""Minimum, average, maximum and percentiles of some numbers, in Flink's form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["PERCENTILES", "summary"]

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}


def summary(values: Iterable[float]) -> dict[str, Any]:
    """Return the summary of some numbers. Without numbers all values are 0 and the percentiles are text, as in Flink.

    >>> summary([1, 2, 6])["avg"], summary([1, 2, 6])["p50"], summary([])["p50"]
    (3, 2.0, 'NaN')
    """
    found = sorted(values)
    if not found:
        return {"min": 0, "max": 0, "avg": 0} | dict.fromkeys(PERCENTILES, "NaN")
    at = {name: float(found[min(int(part * len(found)), len(found) - 1)]) for name, part in PERCENTILES.items()}
    return {"min": round(found[0]), "max": round(found[-1]), "avg": round(sum(found) / len(found)), **at}
