"""Which operator runs a window: one of the tight ones where the default trigger says all, else the general one."""

from __future__ import annotations

from typing import Any

from tamias.functions.assigner_contract import WindowStagger
from tamias.functions.session_assigners import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from tamias.functions.time_assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tamias.functions.time_triggers import EventTimeTrigger, ProcessingTimeTrigger
from tamias.graph.job_graph import Operator
from tamias.graph.specs import WindowSpec
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.operator import RuntimeOperator
from tamias.operators.windows.aligned_windows import AlignedWindowOperator
from tamias.operators.windows.combinable import slice_contents_for
from tamias.operators.windows.combining import SliceContents
from tamias.operators.windows.general_windows import WindowOperator
from tamias.operators.windows.session_windows import SessionWindowOperator
from tamias.operators.windows.sliced_windows import SlicedWindowOperator

# Exact types: a subclass may do something else.
_ALIGNED = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingProcessingTimeWindows,
)
_SLIDING = (SlidingEventTimeWindows, SlidingProcessingTimeWindows)
_SESSIONS = (
    EventTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)


def window_operator(operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment) -> RuntimeOperator:
    """Make the operator of a window."""
    tight = _default_says_all(spec) and type(spec.assigner) in (*_ALIGNED, *_SESSIONS)
    if (
        not tight or environment.on_rocksdb
    ):  # in RocksDB what a window keeps must be where state is, not in tables beside it
        return WindowOperator(operator, spec, environment, tight_on_heap=tight)
    if type(spec.assigner) in _SESSIONS:
        return SessionWindowOperator(operator, spec, environment)
    return _aligned(operator, spec, environment)


def _aligned(operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment) -> RuntimeOperator:
    assigner: Any = spec.assigner
    if type(assigner) in _SLIDING:
        contents = slice_contents_for(spec.contents, operator.input_type)
        if contents is not None and slices_pay(contents, windows_per_record=assigner.size // assigner.slide):
            return SlicedWindowOperator(operator, spec, environment, contents)
    return AlignedWindowOperator(operator, spec, environment)


def slices_pay(contents: SliceContents, *, windows_per_record: int) -> bool:
    """Whether slices are less work than adding each record to every window that it is in."""
    return windows_per_record >= contents.pays_from


def _default_says_all(spec: WindowSpec) -> bool:
    """Whether every window fires at its end, and with late records, and that is all."""
    default = EventTimeTrigger if spec.assigner.is_event_time() else ProcessingTimeTrigger
    return (
        type(spec.trigger) is default
        and spec.evictor is None
        and getattr(spec.assigner, "window_stagger", WindowStagger.ALIGNED) is WindowStagger.ALIGNED
    )
