"""Durations and points in time, under PyFlink's names."""

from ekorn.types.time import Duration, Instant, Time, TimeUnit

__all__ = ["Duration", "Instant", "Time", "TimeUnit"]
