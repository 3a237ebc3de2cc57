"""Lengths of time and points in time, as PyFlink names them."""

from tamias.types.time import Duration, Instant, Time

__all__ = ["Duration", "Instant", "Time"]
