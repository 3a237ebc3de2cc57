"""Metrics as they travel to the driver, and how the metrics of several subtasks are combined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Report", "combined", "flattened"]

Kind = Literal["counter", "gauge", "lowest", "meter", "distribution", "histogram"]


@dataclass(frozen=True, slots=True)
class Report:
    """One metric of one subtask: its kind, and its values by suffix. The suffix `""` is the metric itself."""

    kind: Kind
    values: Mapping[str, Any]


def combined(reports: Sequence[Report]) -> Mapping[str, Any]:
    """Combine the values of one metric over its subtasks.

    Counters, meters and numeric gauges are added. Distributions are merged into one over all values. Metrics of the
    kind `lowest` give the minimum. Histograms give the total count, the bounds, and the
    greatest value of each percentile.

    Example:
        >>> combined([Report("counter", {"": 2}), Report("counter", {"": 3})])
        {'': 5}
    """
    kinds = {report.kind for report in reports}
    if len(kinds) > 1:
        return {}  # metrics of different kinds under one name have no common value
    (kind,) = kinds
    values = [report.values for report in reports]
    if kind == "distribution":
        return _of_distributions(values)
    if kind == "histogram":
        return _of_histograms(values)
    if kind == "lowest":
        return {suffix: min(v[suffix] for v in values) for suffix in values[0]}
    return {
        suffix: sum(v[suffix] for v in values) for suffix in values[0] if all(_is_number(v[suffix]) for v in values)
    }


def flattened(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values under dotted names.

    Example:
        >>> flattened("orders", {"count": 7, "rate": 0.5})
        {'orders.count': 7, 'orders.rate': 0.5}
    """
    return {f"{name}.{suffix}" if suffix else name: value for suffix, value in values.items()}


def _of_distributions(values: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    count, total = sum(v["count"] for v in values), sum(v["sum"] for v in values)
    return {
        "count": count,
        "sum": total,
        "min": min((v["min"] for v in values if v["min"] is not None), default=None),
        "max": max((v["max"] for v in values if v["max"] is not None), default=None),
        "mean": total / count if count else None,
    }


def _of_histograms(values: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    filled = [each for each in values if each["count"]]
    found = {"count": sum(each["count"] for each in filled)}
    if not filled:
        return found
    # The values themselves do not travel. The greatest percentile of a subtask bounds the percentile of all values.
    upper = filled[0].keys() - {"count", "min", "mean"}
    most = {suffix: max(each[suffix] for each in filled) for suffix in filled[0] if suffix in upper}
    mean = sum(each["mean"] * each["count"] for each in filled) / found["count"]
    return found | {"min": min(each["min"] for each in filled), "mean": mean} | most


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
