"""A source that generates records from their number, at a given rate, for trials and load tests."""

from ekorn.connectors.datagen import (
    DataGeneratorSource,
    GeneratorFunction,
    RateLimiter,
    RateLimiterStrategy,
    ReaderContext,
)
from ekorn.connectors.row_generator import Field, Fields, RowGenerator

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
