"""Handles on keyed state that time some of their accesses, for jobs that ask for it (`state.latency-track.*`).

A handle of a job that does not ask for it is the backend's own: nothing is added to its path.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, TypeVar, cast

from ekorn.config.settings.metric_settings import StateLatencySettings
from ekorn.functions.state.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from ekorn.functions.state.state_handles import (
    AggregatingState,
    FoldingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from ekorn.metrics.histogram import ValueHistogram
from ekorn.metrics.metricbase import MetricGroup
from ekorn.state.keyed_backend import KeyedStates

__all__ = ["TrackedStates"]

S = TypeVar("S")


# The methods of a handle that are timed, and the access in Flink's name of the metric: <kind>State<access>Latency.
_ACCESSES = {
    "value": {"value": "Get", "update": "Update", "clear": "Clear"},
    "list": {"get": "Get", "add": "Add", "add_all": "AddAll", "update": "Update", "clear": "Clear"},
    "map": {
        "get": "Get", "put": "Put", "put_all": "PutAll", "remove": "Remove", "contains": "Contains",
        "is_empty": "IsEmpty", "items": "EntriesInit", "keys": "KeysInit", "values": "ValuesInit", "clear": "Clear",
    },
    "reducing": {"get": "Get", "add": "Add", "clear": "Clear"},
    "aggregating": {"get": "Get", "add": "Add", "clear": "Clear"},
    "folding": {"get": "Get", "add": "Add", "clear": "Clear"},
}  # fmt: skip


def _timed(access: Callable[..., Any], histogram: ValueHistogram, every: int) -> Callable[..., Any]:
    """Return a function that makes an access, and times each one of a number, in nanoseconds."""
    left = 1  # Flink: the first access is timed

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left:
            return access(*arguments, **named)
        left = every
        started = perf_counter_ns()
        try:
            return access(*arguments, **named)
        finally:
            histogram.update(perf_counter_ns() - started)

    return call


class TrackedStates(KeyedStates):
    """Hands out handles that time accesses, and registers their histograms in the operator's group.

    Args:
        states: Hands out the handles behind them.
        metrics: The group of the operator's metrics.
        settings: How often, and under which names.
    """

    def __init__(self, states: KeyedStates, metrics: MetricGroup, settings: StateLatencySettings) -> None:
        self._states = states
        self._metrics = metrics
        self._settings = settings
        self._handles: dict[str, tuple[Any, Any]] = {}  # by the name of the state: the backend's handle, and ours

    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]:
        return self._handle(ValueState, self._states.value_state(descriptor), descriptor)

    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]:
        return self._handle(ListState, self._states.list_state(descriptor), descriptor)

    def map_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        return self._handle(MapState, self._states.map_state(descriptor), descriptor)

    def reducing_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        return self._handle(ReducingState, self._states.reducing_state(descriptor), descriptor)

    def aggregating_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        return self._handle(AggregatingState, self._states.aggregating_state(descriptor), descriptor)

    def folding_state(self, descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]:
        return self._handle(FoldingState, self._states.folding_state(descriptor), descriptor)

    def _handle(self, kind: type, state: S, descriptor: StateDescriptor) -> S:
        """Return a handle of a class of its own: its methods are functions, which spares a call on every access."""
        settings, metrics, name = self._settings, self._metrics, descriptor.name
        behind, known = self._handles.get(name, (None, None))
        if behind is state:
            return cast(S, known)  # some functions ask for their state with every record
        group = metrics.add_group("state_name", name) if settings.name_as_variable else metrics.add_group(name)
        methods = {}
        for method, access in _ACCESSES[descriptor.kind].items():
            histogram = group.histogram(f"{descriptor.kind}State{access}Latency", settings.history_size)
            methods[method] = staticmethod(_timed(getattr(state, method), histogram, settings.every))
        handle: S = type(f"Tracked{kind.__name__}", (kind,), methods)()
        self._handles[name] = state, handle
        return handle
