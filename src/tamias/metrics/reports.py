"""Metrics on their way to the driver, and what those of several subtasks come to together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Report", "combined", "flattened"]

Kind = Literal["counter", "gauge", "lowest", "meter", "distribution"]


@dataclass(frozen=True, slots=True)
class Report:
    """One metric of one subtask: its kind, and its values by suffix, where `""` is the metric itself."""

    kind: Kind
    values: Mapping[str, Any]


def combined(reports: Sequence[Report]) -> Mapping[str, Any]:
    """The values of one metric over its subtasks.

    Counters, the counts and rates of meters and gauges that are numbers are added; of distributions the least and the
    greatest are found and the mean is that of all values; of what is marked `lowest` the least counts.

    Example:
        >>> combined([Report("counter", {"": 2}), Report("counter", {"": 3})])
        {'': 5}
    """
    kinds = {report.kind for report in reports}
    if len(kinds) > 1:
        return {}  # subtasks that disagree about what a name means have no common value
    (kind,) = kinds
    values = [report.values for report in reports]
    if kind == "distribution":
        return _of_distributions(values)
    if kind == "lowest":
        return {suffix: min(v[suffix] for v in values) for suffix in values[0]}
    return {
        suffix: sum(v[suffix] for v in values) for suffix in values[0] if all(_is_number(v[suffix]) for v in values)
    }


def flattened(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values under dotted names.

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


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
