"""The contexts that triggers and assigners get from the triggered window operator."""

from __future__ import annotations

from typing import Any

from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.functions.windows.assigner_contract import WindowAssigner
from ekorn.functions.windows.trigger_contract import Trigger
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.time.timers import Timers
from ekorn.state.keyed_backend import KeyedStates
from ekorn.state.kinds import KINDS, kind_of


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
