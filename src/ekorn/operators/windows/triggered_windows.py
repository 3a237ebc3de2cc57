"""The operator of windows with any assigner, trigger and evictor: it asks the trigger for every record and timer.

The state of a window is its contents, its trigger's state and timers, the state that its function keeps for it, and,
where windows merge, its entry among the open windows of its key. All of it is keyed state per window, and nothing of it
is left when the window is over. In RocksDB this operator also runs windows with their default trigger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import UnsupportedOperationError
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.functions.windows.assigner_contract import MergingWindowAssigner, WindowAssigner
from ekorn.functions.windows.trigger_contract import Trigger, TriggerResult
from ekorn.functions.windows.window_arithmetic import SessionGap, WindowGrid
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import ListContents, WindowSpec
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_key
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.results import LateRecords
from ekorn.operators.time.missing_timestamps import missing_timestamp
from ekorn.operators.time.timers import Timers
from ekorn.operators.windows.combinable_contents import slice_contents_for
from ekorn.operators.windows.contents_state import ContentsState, EvictedContentsState, EvictorContext
from ekorn.operators.windows.evaluation import CallWindowFunction, EmitContents, Evaluator, functions_of
from ekorn.operators.windows.open_windows import MergingWindows, OpenWindows, PlainWindows, codec_for
from ekorn.operators.windows.saved_slices import SavedSlices
from ekorn.operators.windows.saved_windows import (
    DEFAULT_IN_ROCKSDB,
    TRIGGERED,
    SavedDefaultInRocksDB,
    SavedLayout,
    SavedPanes,
    SavedSessions,
    check_layout,
    check_merging,
    check_size,
    translate,
)
from ekorn.state.keyed_backend import KeyedStates, RestoredTables
from ekorn.state.kinds import KINDS, kind_of
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


class TriggeredWindowOperator(RuntimeOperator):
    """Any windows of a keyed stream.

    `default` is the arithmetic of windows with their default trigger: their checkpoints restore on either backend.
    """

    needs_out = True

    def __init__(
        self,
        operator: Operator,
        spec: WindowSpec,
        environment: SubtaskEnvironment,
        *,
        default: WindowGrid | SessionGap | None = None,
    ) -> None:
        super().__init__(operator, environment)
        assert self.backend is not None, "the stream graph puts windows on keyed streams only"
        self._spec = spec
        self._default = default
        self._layout_name = TRIGGERED if default is None else DEFAULT_IN_ROCKSDB
        self._assigner = spec.assigner
        self._trigger = spec.trigger
        self._event_time = spec.assigner.is_event_time()
        self._codec = codec_for(spec.assigner.get_window_serializer())
        self._cell, self._window_cell = self.backend.cell, self.backend.window_cell
        self.timers = Timers(self.backend, self._window_cell, environment.clock, prefix="_window/timers", windowed=True)
        if self._event_time:
            self._register_timer = self.timers.register_event_time_timer
            self._delete_timer = self.timers.delete_event_time_timer
        else:
            self._register_timer = self.timers.register_processing_time_timer
            self._delete_timer = self.timers.delete_processing_time_timer
        self._late = LateRecords(self, spec.late_tag)
        self._evaluator = self._make_evaluator()
        self._functions = functions_of(spec)

    def _make_evaluator(self) -> Evaluator:
        spec = self._spec
        if spec.function is None:
            return EmitContents(self)
        is_list, merging = isinstance(spec.contents, ListContents), isinstance(spec.assigner, MergingWindowAssigner)
        return CallWindowFunction(self, spec.function, self.timers, merging=merging, is_list=is_list)

    def functions(self) -> Iterable[Any]:
        return self._functions

    def translate(self, tables: RestoredTables) -> None:
        others: list[SavedLayout] = []
        if isinstance(self._default, SessionGap):
            others = [SavedSessions()]
        elif isinstance(self._default, WindowGrid):
            sliced = slice_contents_for(self._spec.contents, self.operator.input_type)
            max_parallelism = self.environment.vertex.max_parallelism
            # A window that is in a pane has emitted what its slices hold, so panes come first.
            others = [
                SavedPanes(),
                SavedSlices(self._default, sliced, self.states, self.key_groups(), max_parallelism),
            ]
        translate(tables, SavedDefaultInRocksDB(self._spec), others)

    def open(self) -> None:
        assert self.backend is not None
        spec, backend, context = self._spec, self.backend, self.runtime_context()
        metrics = context.get_metrics_group()
        merging = isinstance(spec.assigner, MergingWindowAssigner)
        check_layout(backend, self._layout_name)
        check_merging(backend, self._layout_name, merging=merging)
        if isinstance(self._default, WindowGrid):
            check_size(backend, self._layout_name, self._default.size_ms)
        self.timers.open()
        states, name = backend.in_windows("_window/"), self._layout_name.removeprefix("_window/")
        record_type = self.operator.input_type
        self._contents: ContentsState | EvictedContentsState
        if spec.evictor is None:
            self._contents = ContentsState(states, spec.contents, name, record_type)
        else:
            evictor_context = EvictorContext(self.timers, metrics)
            self._contents = EvictedContentsState(
                states, spec.contents, name, record_type, spec.evictor, evictor_context
            )
        self._open_windows: OpenWindows = PlainWindows()
        if isinstance(spec.assigner, MergingWindowAssigner):
            self._open_windows = MergingWindows(backend, spec.assigner, self._codec, self._merge)
        self._assigner_context = AssignerContext(self.timers, context)
        self._trigger_context = TriggerContext(self.timers, backend.in_windows("trigger/"), metrics)
        super().open()

    # ------------------------------------------------------------------------------------------------ records

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        code.line(f"{code.bind(self._add, 'add')}({value}, {time})")

    def _add(self, value: Any, time_ms: int | None) -> None:
        if time_ms is None and self._event_time:
            raise missing_timestamp(value, self.environment)
        at_ms = MIN_TIMESTAMP if time_ms is None else time_ms
        missed = True
        for assigned in self._assigner.assign_windows(value, at_ms, self._assigner_context):
            window = self._open_windows.add(assigned)
            if self._is_over(window):
                self._open_windows.retire(window)
                continue
            missed = False
            self._enter(window)
            self._contents.add(value, time_ms)
            decision = self._trigger.on_element(value, at_ms, window, self._trigger_context)
            if decision is not TriggerResult.CONTINUE:
                self._apply(window, decision, time_ms)
            self._register_cleanup(window)
        if missed and self._event_time and at_ms + self._spec.lateness_ms <= self.timers.watermark_ms:
            self._late.take(value, time_ms)

    def _enter(self, window: Any) -> None:
        """Make a window of the current key the current window."""
        self._window_cell[0] = (self._cell[0], self._codec.encode(window))

    def _apply(self, window: Any, decision: TriggerResult, time_ms: int | None) -> None:
        if decision.is_fire():
            key, evaluate = self._cell[0], self._evaluator.evaluate
            self._contents.fire(window, lambda contents: evaluate(key, window, contents, time_ms))
        if decision.is_purge():
            self._contents.clear()

    # --------------------------------------------------------------------------------------------------- time

    def on_watermark(self, watermark_ms: int) -> None:
        self.timers.advance_watermark(watermark_ms, self._on_event_time, self.relief)

    def on_clock(self, now_ms: int) -> None:
        self.timers.advance_clock(now_ms, self._on_processing_time, self.relief)

    def next_timer_ms(self) -> int | None:
        return self.timers.next_timer_ms()

    def end_key(self) -> None:
        self.timers.end_key(self._on_event_time, self._on_processing_time, self.relief)

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
        if not self._open_windows.has(window):
            return  # a trigger left a timer behind a window that was merged into another
        emitted_ms = time_ms if event_time else window.max_timestamp()
        self._apply(window, ask(time_ms, window, self._trigger_context), emitted_ms)
        if event_time is self._event_time and time_ms == self._cleanup_ms(window):
            self._drop(window)

    def _cleanup_ms(self, window: Any) -> int:
        """Return the time at which all state of a window is dropped; MAX_TIMESTAMP means never."""
        last: int = window.max_timestamp()
        # Flink: Java clamps on overflow. Python integers do not overflow, so clamp by hand.
        return min(last + self._spec.lateness_ms, MAX_TIMESTAMP) if self._event_time else last

    def _is_over(self, window: Any) -> bool:
        return self._event_time and self._cleanup_ms(window) <= self.timers.watermark_ms

    def _register_cleanup(self, window: Any) -> None:
        time_ms = self._cleanup_ms(window)
        if time_ms != MAX_TIMESTAMP:
            self._register_timer(time_ms)

    def _drop(self, window: Any) -> None:
        """Drop all state of a window that is over."""
        self._contents.clear()
        self._trigger.clear(window, self._trigger_context)
        self._open_windows.retire(window)
        self._evaluator.clear(window)

    # ------------------------------------------------------------------------------------------------ merging

    def _merge(self, becomes: Any, replaced: list[Any]) -> None:
        """Merge contents, timers and trigger state of windows of the current key into the window that replaces them."""
        if self._is_over(becomes):
            raise UnsupportedOperationError(
                f"the windows {replaced!r} merged into {becomes!r}, which has already ended; "
                "a merging assigner must not create a window that ends before the watermark"
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
            self._delete_timer(self._cleanup_ms(window))
        self._contents.merge(target, sources)


class TriggerContext(Trigger.OnMergeContext):
    """Timers and state of the current key and window. `merged` are the windows that are being merged."""

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
    if kind_of(descriptor) is None:
        *names, last = KINDS
        kinds = f"{', '.join(names)} or {last}"
        raise TypeError(f"get_partitioned_state() needs a descriptor of {kinds} state, got {descriptor!r}")
    return states.state(descriptor)


class AssignerContext(WindowAssigner.WindowAssignerContext):
    def __init__(self, timers: Timers, runtime_context: Any) -> None:
        self._timers = timers
        self._runtime_context = runtime_context

    def get_current_processing_time(self) -> int:
        return self._timers.current_processing_time()

    def get_runtime_context(self) -> Any:
        return self._runtime_context
