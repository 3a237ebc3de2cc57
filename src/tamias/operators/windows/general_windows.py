"""Windows in general: any assigner, trigger and evictor, with allowed lateness.

The state of a window is its contents, its trigger's state and timers, the state that its function keeps for it, and,
where windows merge, its place among the windows its key has open. All of it is state per key and window, and none of
it is left when the window is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tamias.codegen.chain_operator import Emit
from tamias.codegen.code_builder import CodeBuilder
from tamias.errors import UnsupportedOperationError
from tamias.functions.assigner_contract import MergingWindowAssigner, WindowAssigner
from tamias.functions.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from tamias.functions.time_assigners import no_timestamp
from tamias.functions.trigger_contract import Trigger, TriggerResult
from tamias.graph.job_graph import Operator
from tamias.graph.specs import ListContents, WindowSpec
from tamias.metrics.metricbase import MetricGroup
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.keys import generate_key
from tamias.operators.operator import RuntimeOperator
from tamias.operators.timers import Timers
from tamias.operators.windows.calls import CallFunction, EmitValue, WindowCall
from tamias.operators.windows.contents import Kept
from tamias.operators.windows.eviction import Eviction
from tamias.operators.windows.late import LateRecords
from tamias.operators.windows.layout_translation import out_of_slices, to_general
from tamias.operators.windows.layouts import GENERAL, IN_ROCKSDB, check_layout
from tamias.operators.windows.merging import MergingWindows
from tamias.operators.windows.window_codec import codec_for
from tamias.state.keyed_backend import KeyedStates, RestoredTables
from tamias.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


class WindowOperator(RuntimeOperator):
    """Any windows of a keyed stream."""

    needs_out = True

    def __init__(
        self, operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment, *, tight_on_heap: bool = False
    ) -> None:
        super().__init__(operator, environment)
        assert self.backend is not None, "the stream graph puts windows on keyed streams only"
        self._spec = spec
        self._layout = IN_ROCKSDB if tight_on_heap else GENERAL
        self._assigner = spec.assigner
        self._trigger = spec.trigger
        self._event_time = spec.assigner.is_event_time()
        self._codec = codec_for(spec.assigner.get_window_serializer())
        self._cell, self._window_cell = self.backend.cell, self.backend.window_cell
        self.timers = Timers(self.backend, self._window_cell, environment.clock, prefix="_window/timers", windowed=True)
        self._late = LateRecords(self, spec.late_tag)
        self._call = self._make_call()
        self._functions = tuple(f for f in (getattr(spec.contents, "function", None), spec.function) if f is not None)

    def _make_call(self) -> WindowCall:
        spec = self._spec
        if spec.function is None:
            return EmitValue(self)
        listed, merging = isinstance(spec.contents, ListContents), isinstance(spec.assigner, MergingWindowAssigner)
        return CallFunction(self, spec.function, self.timers, merging=merging, listed=listed)

    def functions(self) -> Iterable[Any]:
        return self._functions

    def translate(self, tables: RestoredTables) -> None:
        if self._layout == IN_ROCKSDB:
            out_of_slices(tables, self._spec, self)
            to_general(tables, self._spec)

    def open(self) -> None:
        assert self.backend is not None
        spec, backend = self._spec, self.backend
        check_layout(backend, self._layout)
        self.timers.open()
        states = backend.in_windows("_window/")
        name = self._layout.removeprefix("_window/")
        contents = ListContents() if spec.evictor is not None else spec.contents
        self._kept = Kept(states, contents, name, self.operator.input_type)
        self._merging = None
        if isinstance(spec.assigner, MergingWindowAssigner):
            self._merging = MergingWindows(backend, spec.assigner, self._codec)
        context = self.runtime_context()
        self._assigner_context = _AssignerContext(self.timers, context)
        self._trigger_context = TriggerContext(self.timers, backend.in_windows("trigger/"), context.get_metrics_group())
        self._eviction = None
        if spec.evictor is not None:
            self._eviction = Eviction(spec.evictor, spec.contents, self.timers, context.get_metrics_group())
        super().open()

    # ------------------------------------------------------------------------------------------------ records

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        code.line(f"{code.bind(self._add, 'add')}({value}, {time})")

    def _add(self, value: Any, time_ms: int | None) -> None:
        if time_ms is None and self._event_time:
            raise no_timestamp(value)
        at_ms = MIN_TIMESTAMP if time_ms is None else time_ms
        skipped = True
        for assigned in self._assigner.assign_windows(value, at_ms, self._assigner_context):
            window = assigned if self._merging is None else self._merging.add(assigned, self._merge)
            if self._is_over(window):
                if self._merging is not None:
                    self._merging.retire(window)
                continue
            skipped = False
            self._enter(window)
            self._kept.add(value if self._eviction is None else (value, time_ms))
            self._apply(window, self._trigger.on_element(value, at_ms, window, self._trigger_context), time_ms)
            self._register_cleanup(window)
        if skipped and self._event_time and at_ms + self._spec.lateness_ms <= self.timers.watermark_ms:
            self._late.take(value, time_ms)

    def _enter(self, window: Any) -> None:
        """Make a window of the current key the current window."""
        self._window_cell[0] = (self._cell[0], self._codec.encode(window))

    def _apply(self, window: Any, decision: TriggerResult, time_ms: int | None) -> None:
        if decision is TriggerResult.CONTINUE:
            return
        if decision.is_fire():
            self._emit(window, time_ms)
        if decision.is_purge():
            self._kept.clear()

    def _emit(self, window: Any, time_ms: int | None) -> None:
        contents = self._kept.get()
        if contents is None:
            return
        key = self._cell[0]
        if self._eviction is None:
            self._call.fire(key, window, contents, time_ms)
        else:
            left = self._eviction.fire(contents, window, lambda result: self._call.fire(key, window, result, time_ms))
            self._kept.replace(left)

    # --------------------------------------------------------------------------------------------------- time

    def on_watermark(self, watermark_ms: int) -> None:
        self.timers.advance_watermark(watermark_ms, self._on_event_time)

    def on_clock(self, now_ms: int) -> None:
        self.timers.advance_clock(now_ms, self._on_processing_time)

    def next_timer_ms(self) -> int | None:
        return self.timers.next_timer_ms()

    def end_key(self) -> None:
        self.timers.end_key(self._on_event_time, self._on_processing_time)

    def _on_event_time(self, entry: tuple[Any, Any], time_ms: int) -> None:
        self._on_timer(entry, time_ms, self._trigger.on_event_time, event_time=True)

    def _on_processing_time(self, entry: tuple[Any, Any], time_ms: int) -> None:
        self._on_timer(entry, time_ms, self._trigger.on_processing_time, event_time=False)

    def _on_timer(
        self, entry: tuple[Any, Any], time_ms: int, ask: Callable[[int, Any, Any], TriggerResult], *, event_time: bool
    ) -> None:
        self._cell[0] = entry[0]
        self._window_cell[0] = entry
        window = self._codec.decode(entry[1])
        if self._merging is not None and not self._merging.has(window):
            return  # a trigger left a timer behind a window that was merged into another
        emitted_ms = time_ms if event_time else window.max_timestamp()
        self._apply(window, ask(time_ms, window, self._trigger_context), emitted_ms)
        if event_time is self._event_time and time_ms == self._cleanup_ms(window):
            self._forget(window)

    def _cleanup_ms(self, window: Any) -> int:
        """When every trace of a window goes; MAX_TIMESTAMP for never."""
        last: int = window.max_timestamp()
        # Flink: Java clamps on overflow. Python integers do not overflow, so clamp by hand.
        return min(last + self._spec.lateness_ms, MAX_TIMESTAMP) if self._event_time else last

    def _is_over(self, window: Any) -> bool:
        return self._event_time and self._cleanup_ms(window) <= self.timers.watermark_ms

    def _register_cleanup(self, window: Any) -> None:
        time_ms = self._cleanup_ms(window)
        if time_ms == MAX_TIMESTAMP:
            return  # a window without end
        if self._event_time:
            self.timers.register_event_time_timer(time_ms)
        else:
            self.timers.register_processing_time_timer(time_ms)

    def _delete_cleanup(self, window: Any) -> None:
        if self._event_time:
            self.timers.delete_event_time_timer(self._cleanup_ms(window))
        else:
            self.timers.delete_processing_time_timer(self._cleanup_ms(window))

    def _forget(self, window: Any) -> None:
        """A window is over: nothing of it stays."""
        self._kept.clear()
        self._trigger.clear(window, self._trigger_context)
        if self._merging is not None:
            self._merging.retire(window)
        self._call.clear(window)

    # ------------------------------------------------------------------------------------------------ merging

    def _merge(self, becomes: Any, replaced: list[Any]) -> None:
        """Some windows of the current key become one: their contents, timers and trigger state go over to it."""
        if self._is_over(becomes):
            raise UnsupportedOperationError(
                f"the windows {replaced!r} merged into {becomes!r}, which is over already; "
                "a merging assigner must not make a window that ends before the watermark"
            )
        key, encode = self._cell[0], self._codec.encode
        target = (key, encode(becomes))
        others = [w for w in replaced if w != becomes]
        sources = [(key, encode(w)) for w in others]
        self._enter(becomes)
        self._trigger_context.merged = sources
        self._trigger.on_merge(becomes, self._trigger_context)
        for window in others:
            self._enter(window)
            self._trigger.clear(window, self._trigger_context)
            self._delete_cleanup(window)
        self._kept.merge(target, sources)


class TriggerContext(Trigger.OnMergeContext):
    """What triggers are handed: timers and state of the current key and window."""

    def __init__(self, timers: Timers, states: KeyedStates, metrics: MetricGroup) -> None:
        self._states = states
        self._metrics = metrics
        self._handles: dict[str, Any] = {}
        self.merged: list[Any] = []
        self._timers = timers
        self._cell = timers.cell

    def get_current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def get_metric_group(self) -> MetricGroup:
        return self._metrics

    def get_current_watermark(self) -> int:
        return self._timers.watermark_ms

    def register_processing_time_timer(self, time: int) -> None:
        self._timers.register_processing_time_timer(time)

    def register_event_time_timer(self, time: int) -> None:
        self._timers.register_event_time_timer(time)

    def delete_processing_time_timer(self, time: int) -> None:
        self._timers.delete_processing_time_timer(time)

    def delete_event_time_timer(self, time: int) -> None:
        self._timers.delete_event_time_timer(time)

    def get_partitioned_state(self, state_descriptor: StateDescriptor) -> Any:
        handle = self._handles.get(state_descriptor.name)
        if handle is None:
            handle = self._handles[state_descriptor.name] = _state(self._states, state_descriptor)
        return handle

    def merge_partitioned_state(self, state_descriptor: StateDescriptor) -> None:
        self.get_partitioned_state(state_descriptor).merge(self._cell[0], self.merged)


def _state(states: KeyedStates, descriptor: StateDescriptor) -> Any:
    match descriptor:
        case ValueStateDescriptor():
            return states.value_state(descriptor)
        case ListStateDescriptor():
            return states.list_state(descriptor)
        case MapStateDescriptor():
            return states.map_state(descriptor)
        case ReducingStateDescriptor():
            return states.reducing_state(descriptor)
        case AggregatingStateDescriptor():
            return states.aggregating_state(descriptor)
        case FoldingStateDescriptor():
            return states.folding_state(descriptor)
        case _:
            raise TypeError(f"{descriptor!r} declares no kind of state that is known")


class _AssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, timers: Timers, runtime_context: Any) -> None:
        self._timers = timers
        self._runtime_context = runtime_context

    def get_current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def get_runtime_context(self) -> Any:
        return self._runtime_context
