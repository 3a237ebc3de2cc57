"""The choice of a window operator and of its layout, taken once while a chain is built."""

from __future__ import annotations

from functools import partial

from ekorn.functions.windows.window_arithmetic import SessionGap, WindowGrid
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import WindowSpec
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.windows.combinable_contents import slice_contents_for
from ekorn.operators.windows.layout import MakeLayout
from ekorn.operators.windows.pane_layout import PaneLayout
from ekorn.operators.windows.session_layout import SessionLayout
from ekorn.operators.windows.slice_contents import SliceContents
from ekorn.operators.windows.slice_layout import SliceLayout
from ekorn.operators.windows.time_windows import TimeWindowOperator
from ekorn.operators.windows.triggered_windows import TriggeredWindowOperator
from ekorn.types.type_information import TypeInformation


def build_window_operator(operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment) -> RuntimeOperator:
    """Build the operator of a window."""
    arithmetic = default_arithmetic(spec)
    if arithmetic is None or environment.on_rocksdb:  # RocksDB keeps windows where it keeps state, not in heap tables
        return TriggeredWindowOperator(operator, spec, environment, default=arithmetic)
    return TimeWindowOperator(operator, spec, environment, layout_for(spec, arithmetic, operator.input_type))


def default_arithmetic(spec: WindowSpec) -> WindowGrid | SessionGap | None:
    """Return the arithmetic of windows that fire at their end and with late records only, or None for all others."""
    if spec.evictor is not None:
        return None
    if not spec.trigger.fires_only_at_window_end(event_time=spec.assigner.is_event_time()):
        return None
    return spec.assigner.arithmetic()


def layout_for(spec: WindowSpec, arithmetic: WindowGrid | SessionGap, input_type: TypeInformation | None) -> MakeLayout:
    """Return what makes the layout of windows with their default trigger."""
    if isinstance(arithmetic, SessionGap):
        return partial(SessionLayout, gap=arithmetic)
    sliced = slice_contents_for(spec.contents, input_type)
    if sliced is not None and slices_pay(sliced, windows_per_record=arithmetic.size_ms // arithmetic.slide_ms):
        return partial(SliceLayout, grid=arithmetic, contents=sliced)
    return partial(PaneLayout, grid=arithmetic, sliced=sliced)


def slices_pay(contents: SliceContents, *, windows_per_record: int) -> bool:
    """Return whether slices are less work than adding each record to every window that holds it."""
    return windows_per_record >= contents.min_windows_per_record
