"""`WatermarkStrategy`: how a stream gets timestamps and watermarks."""

from ekorn.functions.watermark_strategy import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    TimestampAssigner,
    Watermark,
    WatermarkAlignment,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from ekorn.legacy.timestamp_extractors import AssignerWithPeriodicWatermarksWrapper

__all__ = [
    "AscendingTimestampsWatermarks",
    "AssignerWithPeriodicWatermarksWrapper",
    "BoundedOutOfOrdernessWatermarks",
    "NoWatermarksGenerator",
    "TimestampAssigner",
    "Watermark",
    "WatermarkAlignment",
    "WatermarkGenerator",
    "WatermarkOutput",
    "WatermarkStrategy",
]
