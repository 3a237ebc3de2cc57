"""Durations and points in time, under PyFlink's names."""

from tamias.types.time import Duration, Instant, Time, TimeUnit

__all__ = ["Duration", "Instant", "Time", "TimeUnit"]
