"""Flink's stateful stream processing, in Python, on Apache Spark."""

__version__ = "0.1.0"
