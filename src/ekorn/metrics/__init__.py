"""Counters, gauges, meters and distributions, in groups; and what a reporter of metrics is."""

from ekorn.metrics.metricbase import Counter, Distribution, Gauge, Meter, Metric, MetricGroup
from ekorn.metrics.reporter import MetricReporter, Sample

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup", "MetricReporter", "Sample"]
