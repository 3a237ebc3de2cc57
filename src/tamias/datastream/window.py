"""Windows, assigners, triggers and evictors."""

from __future__ import annotations

from tamias.functions.assigner_contract import MergingWindowAssigner, WindowAssigner, WindowStagger
from tamias.functions.continuous_triggers import ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger
from tamias.functions.count_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner, GlobalWindows
from tamias.functions.evictor_contract import Evictor, TimestampedValue
from tamias.functions.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from tamias.functions.nesting_triggers import ProcessingTimeoutTrigger, PurgingTrigger
from tamias.functions.record_triggers import CountTrigger, DeltaTrigger
from tamias.functions.session_assigners import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from tamias.functions.time_assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tamias.functions.time_triggers import EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger
from tamias.functions.trigger_contract import Trigger, TriggerResult
from tamias.functions.windows import (
    MAX_LONG_VALUE,
    MIN_LONG_VALUE,
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
    Window,
)

__all__ = [
    "MAX_LONG_VALUE",
    "MIN_LONG_VALUE",
    "ContinuousEventTimeTrigger",
    "ContinuousProcessingTimeTrigger",
    "CountEvictor",
    "CountSlidingWindowAssigner",
    "CountTrigger",
    "CountTumblingWindowAssigner",
    "CountWindow",
    "CountWindowSerializer",
    "DeltaEvictor",
    "DeltaTrigger",
    "DynamicEventTimeSessionWindows",
    "DynamicProcessingTimeSessionWindows",
    "EventTimeSessionWindows",
    "EventTimeTrigger",
    "Evictor",
    "GlobalWindow",
    "GlobalWindowSerializer",
    "GlobalWindows",
    "MergingWindowAssigner",
    "NeverTrigger",
    "ProcessingTimeSessionWindows",
    "ProcessingTimeTrigger",
    "ProcessingTimeoutTrigger",
    "PurgingTrigger",
    "SessionWindowTimeGapExtractor",
    "SlidingEventTimeWindows",
    "SlidingProcessingTimeWindows",
    "TimeEvictor",
    "TimeWindow",
    "TimeWindowSerializer",
    "TimestampedValue",
    "Trigger",
    "TriggerResult",
    "TumblingEventTimeWindows",
    "TumblingProcessingTimeWindows",
    "Window",
    "WindowAssigner",
    "WindowStagger",
]
