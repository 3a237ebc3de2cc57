"""A source that generates records from their number, at a given rate, for trials and load tests."""

from tamias.connectors.datagen import (
    DataGeneratorSource,
    GeneratorFunction,
    RateLimiter,
    RateLimiterStrategy,
    ReaderContext,
)
from tamias.connectors.row_generator import Field, Fields, RowGenerator

__all__ = [
    "DataGeneratorSource",
    "Field",
    "Fields",
    "GeneratorFunction",
    "RateLimiter",
    "RateLimiterStrategy",
    "ReaderContext",
    "RowGenerator",
]
