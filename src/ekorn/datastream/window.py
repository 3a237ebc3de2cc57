"""Windows, assigners, triggers and evictors."""

from __future__ import annotations

from ekorn.functions.assigner_contract import MergingWindowAssigner, WindowAssigner, WindowStagger
from ekorn.functions.continuous_triggers import ContinuousEventTimeTrigger, ContinuousProcessingTimeTrigger
from ekorn.functions.count_assigners import CountSlidingWindowAssigner, CountTumblingWindowAssigner, GlobalWindows
from ekorn.functions.evictor_contract import Evictor, TimestampedValue
from ekorn.functions.evictors import CountEvictor, DeltaEvictor, TimeEvictor
from ekorn.functions.nesting_triggers import ProcessingTimeoutTrigger, PurgingTrigger
from ekorn.functions.record_triggers import CountTrigger, DeltaTrigger
from ekorn.functions.session_assigners import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SessionWindowTimeGapExtractor,
)
from ekorn.functions.time_assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from ekorn.functions.time_triggers import EventTimeTrigger, NeverTrigger, ProcessingTimeTrigger
from ekorn.functions.trigger_contract import Trigger, TriggerResult
from ekorn.functions.windows import (
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
