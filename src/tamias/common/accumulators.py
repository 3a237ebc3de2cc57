"""Accumulators: values that functions add to while a job runs and that are merged when it ends."""

from tamias.functions.accumulators import (
    Accumulator,
    AverageAccumulator,
    DoubleCounter,
    DoubleMaximum,
    DoubleMinimum,
    Histogram,
    IntCounter,
    IntMaximum,
    IntMinimum,
    ListAccumulator,
    LongCounter,
    LongMaximum,
    LongMinimum,
    SimpleAccumulator,
)

__all__ = [
    "Accumulator",
    "AverageAccumulator",
    "DoubleCounter",
    "DoubleMaximum",
    "DoubleMinimum",
    "Histogram",
    "IntCounter",
    "IntMaximum",
    "IntMinimum",
    "ListAccumulator",
    "LongCounter",
    "LongMaximum",
    "LongMinimum",
    "SimpleAccumulator",
]
