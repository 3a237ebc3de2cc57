"""The metrics of a job's vertices over the last day, for plots: fine for the last minutes, coarser before.

Every number that a subtask reports is remembered, also those of the user's functions: combined over the subtasks, and
for the last hour also by subtask. There are 300 points about a second apart, 360 points of ten of these, and 1,440
points of six of those. A job with so many metrics that their values would take more than 12 MB has fewer points.
"""

from __future__ import annotations

import math
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ekorn.graph.job_graph import VertexId

__all__ = ["COMBINED", "MetricPart", "VertexHistory", "VertexSeries", "numbers_of"]

_MOST_VALUES = 1_500_000  # of eight bytes each
_MOST_SHARE = 0.005  # of the driver's time; a job with many subtasks is sampled more rarely than once a second
_IS_MEAN = "PerSecond"

COMBINED: dict[str, Callable[[list[float]], float]] = {
    "min": min,
    "max": max,
    "avg": lambda values: sum(values) / len(values),
    "sum": sum,
}
"""How the values of a metric are combined over the subtasks of a vertex."""


class MetricPart(NamedTuple):
    """The part of a vertex that a series is of.

    Attributes:
        vertex: The id of the vertex.
        name: The name of the metric.
        part: The way in which the subtasks are combined, or the number of a subtask.
    """

    vertex: VertexId
    name: str
    part: str | int


class VertexSeries(NamedTuple):
    """Series with common moments, the oldest first. A value is not a number where the metric was not reported."""

    times_ms: list[int]
    values: dict[MetricPart, list[float]]


_Metric = tuple[VertexId, str]
_Point = dict[_Metric, list[float]]  # as `COMBINED` combines the subtasks, and after these the subtasks themselves


class _Tier:
    """Points of one step.

    Args:
        most: How many points are kept.
        merges: How many points of the tier below make one of this tier.
        has_subtasks: Whether the values of single subtasks are kept.
    """

    def __init__(self, most: int, merges: int, *, has_subtasks: bool) -> None:
        self.times_ms: list[int] = []
        self.columns: dict[_Metric, list[array[float]]] = {}
        self._most = most
        self._merges = merges
        self._width = None if has_subtasks else len(COMBINED)
        self._waiting: list[_Point] = []

    def add(self, at_ms: int, point: _Point, most_values: int) -> _Point | None:
        """Add a point of the tier below; return the point that it completes, if any."""
        self._waiting.append(point)
        if len(self._waiting) < self._merges:
            return None
        whole, self._waiting = _merged(self._waiting), []
        self._append(at_ms, whole)
        width = sum(map(len, self.columns.values()))
        self._shorten(min(self._most, max(most_values // max(width, 1), 2)))
        return whole

    def _append(self, at_ms: int, point: _Point) -> None:
        length = len(self.times_ms)
        for metric, values in point.items():
            columns = self.columns.setdefault(metric, [])
            for _ in values[len(columns) : self._width]:
                columns.append(array("d", [math.nan]) * length)
        self.times_ms.append(at_ms)
        for metric, columns in self.columns.items():
            values = point.get(metric, [])
            for number, column in enumerate(columns):
                column.append(values[number] if number < len(values) else math.nan)

    def _shorten(self, most: int) -> None:
        surplus = len(self.times_ms) - most
        if surplus <= 0:
            return
        del self.times_ms[:surplus]
        for columns in self.columns.values():
            for column in columns:
                del column[:surplus]
            while columns and all(map(math.isnan, reversed(columns[-1]))):
                columns.pop()  # of a subtask that a rescale has ended
        self.columns = {metric: columns for metric, columns in self.columns.items() if columns}


class VertexHistory:
    """The metrics of one job's vertices. The job's thread writes, any thread reads.

    Args:
        most_values: How many values are kept.
    """

    def __init__(self, most_values: int = _MOST_VALUES) -> None:
        self._tiers = (
            _Tier(300, 1, has_subtasks=True),
            _Tier(360, 10, has_subtasks=True),
            _Tier(1440, 6, has_subtasks=False),
        )
        self._most_values = most_values // len(self._tiers)
        self._lock = threading.Lock()
        self._due_s = -math.inf
        self._took_s = math.inf

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time for the next point."""
        return now_s >= self._due_s

    def rest(self, now_s: float, took_s: float) -> None:
        """Put the next point off in proportion to the time that the last ones took; a single slow one is chance."""
        self._due_s = now_s + min(took_s, self._took_s) / _MOST_SHARE
        self._took_s = took_s

    def add(self, at_ms: int, reported: Mapping[VertexId, Sequence[Mapping[str, float]]]) -> None:
        """Add a point: the numbers of each subtask by name, by vertex."""
        point: _Point = {}
        for vertex, subtasks in reported.items():
            for name, values in _by_name(subtasks).items():
                present = [value for value in values if value == value]
                point[vertex, name] = [combine(present) for combine in COMBINED.values()] + values
        with self._lock:
            upper: _Point | None = point
            for tier in self._tiers:
                upper = None if upper is None else tier.add(at_ms, upper, self._most_values)

    def columns(self, vertex: VertexId) -> list[MetricPart]:
        """Return what is remembered of a vertex."""
        width: dict[str, int] = {}
        with self._lock:
            for tier in self._tiers:
                for (owner, name), columns in tier.columns.items():
                    if owner == vertex:
                        width[name] = max(width.get(name, 0), len(columns))
        parts = list(COMBINED)
        return [
            MetricPart(vertex, name, parts[number] if number < len(parts) else number - len(parts))
            for name, count in width.items()
            for number in range(count)
        ]

    def series(self, columns: Iterable[MetricPart], since_ms: int = -1) -> VertexSeries:
        """Return the values of columns after a moment, each stretch of time as finely as it is kept."""
        times: list[int] = []
        values: dict[MetricPart, list[float]] = {column: [] for column in columns}
        with self._lock:
            for tier, finer in reversed(list(zip(self._tiers, (None, *self._tiers), strict=False))):
                until_ms = finer.times_ms[0] if finer is not None and finer.times_ms else math.inf
                first = bisect_right(tier.times_ms, since_ms)
                last = max(bisect_left(tier.times_ms, until_ms), first)
                times += tier.times_ms[first:last]
                for column, so_far in values.items():
                    kept = tier.columns.get((column.vertex, column.name), ())
                    number = _number_of(column.part)
                    so_far.extend(kept[number][first:last] if number < len(kept) else [math.nan] * (last - first))
        return VertexSeries(times, values)


def _number_of(part: str | int) -> int:
    return list(COMBINED).index(part) if isinstance(part, str) else len(COMBINED) + part


def _by_name(subtasks: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Return the values of each metric by subtask; those that a subtask does not report are not numbers."""
    found: dict[str, list[float]] = {}
    for index, numbers in enumerate(subtasks):
        for name, number in numbers.items():
            values = found.get(name)
            if values is None:
                values = found[name] = [math.nan] * len(subtasks)
            values[index] = number
    return found


def numbers_of(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics that are numbers: texts, truth values and what is not finite cannot be plotted."""
    return {
        name: float(value)
        for name, value in values.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    }


def _merged(points: Sequence[_Point]) -> _Point:
    """Merge points: rates become means, and all other values are the latest."""
    if len(points) == 1:
        return points[0]
    found = dict(points[-1])
    for metric in found:
        if metric[1].endswith(_IS_MEAN):
            columns = zip(*(point[metric] for point in points if metric in point), strict=False)
            found[metric] = [sum(values) / len(values) for values in columns]
    return found
