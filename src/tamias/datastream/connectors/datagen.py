"""A source of records that are made from their number, at a given rate: for trying things out and for load tests."""

from tamias.connectors.datagen import (
    DataGeneratorSource,
    GeneratorFunction,
    RateLimiter,
    RateLimiterStrategy,
    ReaderContext,
)

__all__ = ["DataGeneratorSource", "GeneratorFunction", "RateLimiter", "RateLimiterStrategy", "ReaderContext"]
