"""Which operator runs a window: one of the tight ones where the default trigger says all, else the general one."""

from __future__ import annotations

from tamias.contracts.triggers import EventTimeTrigger, ProcessingTimeTrigger
from tamias.contracts.window_assigners import (
    DynamicEventTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from tamias.contracts.windows import WindowStagger
from tamias.graph.job_graph import Operator
from tamias.graph.specs import WindowSpec
from tamias.runtime.operators.aligned_windows import AlignedWindowOperator
from tamias.runtime.operators.base import RuntimeOperator
from tamias.runtime.operators.session_windows import SessionWindowOperator
from tamias.runtime.operators.window import WindowOperator
from tamias.runtime.place import Place

# Exact types: a subclass may do something else.
_ALIGNED = (
    TumblingEventTimeWindows,
    SlidingEventTimeWindows,
    TumblingProcessingTimeWindows,
    SlidingProcessingTimeWindows,
)
_SESSIONS = (
    EventTimeSessionWindows,
    DynamicEventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    DynamicProcessingTimeSessionWindows,
)


def window_operator(operator: Operator, spec: WindowSpec, place: Place) -> RuntimeOperator:
    """Make the operator of a window."""
    if place.state_backend != "rocksdb" and _default_says_all(spec):
        if type(spec.assigner) in _ALIGNED:
            return AlignedWindowOperator(operator, spec, place)
        if type(spec.assigner) in _SESSIONS:
            return SessionWindowOperator(operator, spec, place)
    return WindowOperator(operator, spec, place)


def _default_says_all(spec: WindowSpec) -> bool:
    """Whether every window fires at its end, and with late records, and that is all."""
    default = EventTimeTrigger if spec.assigner.is_event_time() else ProcessingTimeTrigger
    return (
        type(spec.trigger) is default
        and spec.evictor is None
        and getattr(spec.assigner, "window_stagger", WindowStagger.ALIGNED) is WindowStagger.ALIGNED
    )
