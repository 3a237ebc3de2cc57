"""`WatermarkStrategy`: how a stream gets timestamps and watermarks."""

from ekorn.functions.watermark_strategy import (
    AscendingTimestampsWatermarks,
    AssignerWithPeriodicWatermarksWrapper,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    TimestampAssigner,
    Watermark,
    WatermarkAlignment,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)

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
