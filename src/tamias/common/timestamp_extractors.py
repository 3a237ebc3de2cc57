"""Timestamp assigners with watermarks, as programs for Flink 1.x write them."""

from tamias.functions.timestamp_extractors import (
    AscendingBy,
    AscendingTimestampExtractor,
    AssignerWithPeriodicWatermarks,
    AssignerWithPunctuatedWatermarks,
    BoundedOutOfOrdernessTimestampExtractor,
    IngestionTimeExtractor,
)

__all__ = [
    "AscendingBy",
    "AscendingTimestampExtractor",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPunctuatedWatermarks",
    "BoundedOutOfOrdernessTimestampExtractor",
    "IngestionTimeExtractor",
]
