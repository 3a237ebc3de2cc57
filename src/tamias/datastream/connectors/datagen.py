"""A source that generates records from their number, at a given rate, for trials and load tests."""

from tamias.connectors.datagen import (
    DataGeneratorSource,
    GeneratorFunction,
    RateLimiter,
    RateLimiterStrategy,
    ReaderContext,
)

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiter", "RateLimiterStrategy", "ReaderContext"]
