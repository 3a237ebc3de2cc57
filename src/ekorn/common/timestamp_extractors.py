"""Timestamp assigners with watermarks, as in Flink 1.x."""

from ekorn.legacy.timestamp_extractors import (
    AscendingBy,
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    IngestionTimeExtractor,
    TimestampExtractor,
)

__all__ = [
    "AscendingBy",
    "AscendingTimestampExtractor",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPunctuatedWatermarks",
    "BoundedOutOfOrdernessTimestampExtractor",
    "IngestionTimeExtractor",
    "TimestampExtractor",
]
