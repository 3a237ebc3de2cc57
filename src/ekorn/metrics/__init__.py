"""Metrics: counters, gauges, meters, distributions and histograms in groups, and the protocol of reporters."""

from ekorn.metrics.metricbase import Counter, Distribution, Gauge, Meter, Metric, MetricGroup
from ekorn.metrics.reporter import MetricReporter, Sample

__all__ = ["Counter", "Distribution", "Gauge", "Meter", "Metric", "MetricGroup", "MetricReporter", "Sample"]
