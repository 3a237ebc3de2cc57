"""Metrics that functions and the runtime register, in named groups. PyFlink's path is `pyflink.metrics`.

A subtask owns a tree of groups. `MetricGroup.reports` turns the tree into plain values, which travel to the driver.
Nothing here is synchronized: a tree belongs to the one thread that runs its subtask.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ekorn.clock import Clock, SystemClock
from ekorn.metrics.histogram import ValueHistogram
from ekorn.metrics.metric import Metric
from ekorn.metrics.reports import Report, flattened

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup"]

logger = logging.getLogger(__name__)


M = TypeVar("M", bound=Metric)


class Counter(Metric):
    """A number that goes up and down."""

    __slots__ = ("_count",)
    kind = "counter"

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        """Count up."""
        self._count += n

    def dec(self, n: int = 1) -> None:
        """Count down."""
        self._count -= n

    def get_count(self) -> int:
        """Return the count."""
        return self._count

    def values(self) -> Mapping[str, Any]:
        return {"": self._count}


class Gauge(Metric):
    """A value that a function computes when it is reported."""

    __slots__ = ("_function",)
    kind = "gauge"

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function

    def get_value(self) -> Any:
        """Compute the value."""
        return self._function()

    def values(self) -> Mapping[str, Any]:
        return {"": self._function()}


class Meter(Metric):
    """The number of events, and the events per second over a time span.

    Args:
        time_span_in_seconds: How far back the rate looks.
        clock: The clock that measures the rate; None for the machine's.
    """

    __slots__ = ("_buckets", "_clock", "_count", "_span_seconds")
    kind = "meter"

    def __init__(self, time_span_in_seconds: int = 60, clock: Clock | None = None) -> None:
        if time_span_in_seconds <= 0:
            raise ValueError(f"a meter's time span must be positive, but is {time_span_in_seconds} s")
        self._span_seconds = time_span_in_seconds
        self._clock = clock or SystemClock()
        self._count = 0
        self._buckets: deque[list[int]] = deque()  # [second, events in it], oldest first

    def mark_event(self, value: int = 1) -> None:
        """Count events that happened now."""
        second = int(self._clock.monotonic())
        if self._buckets and self._buckets[-1][0] == second:
            self._buckets[-1][1] += value
        else:
            self._buckets.append([second, value])
            self._forget(second)
        self._count += value

    def get_count(self) -> int:
        """Return the number of all events."""
        return self._count

    def get_rate(self) -> float:
        """Return the events per second over the time span."""
        self._forget(int(self._clock.monotonic()))
        return sum(events for _, events in self._buckets) / self._span_seconds

    def values(self) -> Mapping[str, Any]:
        return {"count": self._count, "rate": self.get_rate()}

    def _forget(self, second: int) -> None:
        while self._buckets and self._buckets[0][0] <= second - self._span_seconds:
            self._buckets.popleft()


class Distribution(Metric):
    """The count, sum, minimum, maximum and mean of values."""

    __slots__ = ("_count", "_max", "_min", "_sum")
    kind = "distribution"

    def __init__(self) -> None:
        self._count = 0
        self._sum: float = 0
        self._min: float | None = None
        self._max: float | None = None

    def update(self, value: float) -> None:
        """Add a value."""
        self._count += 1
        self._sum += value
        self._min = value if self._min is None or value < self._min else self._min
        self._max = value if self._max is None or value > self._max else self._max

    def values(self) -> Mapping[str, Any]:
        mean = self._sum / self._count if self._count else None
        return {"count": self._count, "sum": self._sum, "min": self._min, "max": self._max, "mean": mean}


class MetricGroup:
    """Metrics and groups by name.

    >>> group = MetricGroup()
    >>> group.add_group("shop").counter("orders").inc(2)
    >>> group.snapshot()
    {'shop.orders': 2}

    Args:
        clock: Clock of the meters in this group.
        variables: Names and values that describe the whole group, such as the operator's name.
    """

    def __init__(self, clock: Clock | None = None, variables: Mapping[str, str] | None = None) -> None:
        self._clock = clock or SystemClock()
        self._variables = dict(variables or {})
        self._metrics: dict[str, Metric] = {}
        self._groups: dict[str, MetricGroup] = {}

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        """Return the subgroup of this name, created on first use.

        Args:
            name: The group's name.
            extra: The value of ``name`` if ``name`` is a variable. The result is then a group for the
                value, inside a group for the name.
        """
        group = self._group(name, {})
        return group if extra is None else group._group(extra, {name: extra})

    def counter(self, name: str) -> Counter:
        """Register a counter."""
        return self._register(name, Counter())

    def gauge(self, name: str, obj: Callable[[], Any]) -> None:
        """Register a gauge: ``obj`` is called when the value is reported."""
        if not callable(obj):
            raise TypeError(f"the gauge {name!r} takes a function without arguments, not {obj!r}")
        self._register(name, Gauge(obj))

    def meter(self, name: str, time_span_in_seconds: int = 60) -> Meter:
        """Register a meter: events per second over a time span."""
        return self._register(name, Meter(time_span_in_seconds, self._clock))

    def distribution(self, name: str) -> Distribution:
        """Register a distribution: count, sum, minimum, maximum and mean of values."""
        return self._register(name, Distribution())

    def histogram(self, name: str, size: int) -> ValueHistogram:
        """Register a histogram over the latest values. PyFlink has none: the runtime uses it."""
        return self._register(name, ValueHistogram(size))

    def get_all_variables(self) -> dict[str, str]:
        """Return the names and values that describe this group."""
        return dict(self._variables)

    def snapshot(self) -> dict[str, Any]:
        """Return every value in the tree by its dotted name; a meter ``m`` has ``m.count`` and ``m.rate``."""
        flat: dict[str, Any] = {}
        for name, report in self.reports().items():
            flat |= flattened(name, report.values)
        return flat

    def reports(self) -> dict[str, Report]:
        """Return every metric in the tree by its dotted name.

        A gauge whose function raises is left out and logged: a metric must never fail a job.
        """
        found: dict[str, Report] = {}
        for name, metric in self._metrics.items():
            try:
                found[name] = Report(metric.kind, metric.values())
            except Exception:  # the gauge's function is user code
                logger.warning("the gauge %r raised and is left out of the report", name, exc_info=True)
        for group_name, group in self._groups.items():
            for name, report in group.reports().items():
                found[f"{group_name}.{name}"] = report
        return found

    def _group(self, name: str, variables: Mapping[str, str]) -> MetricGroup:
        if name not in self._groups:
            self._groups[name] = MetricGroup(self._clock, {**self._variables, **variables})
        return self._groups[name]

    def _register(self, name: str, metric: M) -> M:
        first = self._metrics.setdefault(name, metric)
        if first is metric:
            return metric
        # Flink: the first metric of a name is reported; later ones work but are not reported. A second metric of the
        # same kind counts into the first, as in PyFlink; a second one of another kind is separate.
        logger.warning("the metric %r is already registered; only the first one is reported", name)
        return first if type(first) is type(metric) and not isinstance(first, Gauge) else metric
