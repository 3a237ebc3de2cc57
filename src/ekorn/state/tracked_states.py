"""Handles on keyed state that time some of their accesses, for jobs that ask for it (`state.latency-track.*`).

A handle of a job that does not ask for it is the backend's own: nothing is added to its path.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from ekorn.config.settings.metric_settings import StateLatencySettings
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.metrics.histogram import ValueHistogram
from ekorn.metrics.metricbase import MetricGroup
from ekorn.state.keyed_backend import KeyedStates
from ekorn.state.kinds import KINDS

__all__ = ["TrackedStates"]


def _timed(access: Callable[..., Any], histogram: ValueHistogram, every: int) -> Callable[..., Any]:
    """Return a function that makes an access, and times one of every `every` accesses, in nanoseconds."""
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
        # By the name of the state: the backend's handle, and the timing one.
        self._handles: dict[str, tuple[Any, Any]] = {}

    def state(self, descriptor: StateDescriptor) -> Any:
        """Return a handle of a class made for this state.

        Its methods are plain functions, which saves a call per access.
        """
        state = self._states.state(descriptor)
        settings, metrics, name = self._settings, self._metrics, descriptor.name
        behind, known = self._handles.get(name, (None, None))
        if behind is state:
            return known  # some functions ask for their state with every record
        group = metrics.add_group("state_name", name) if settings.name_as_variable else metrics.add_group(name)
        kind, methods = KINDS[descriptor.kind], {}
        for method, access in kind.timed.items():
            histogram = group.histogram(f"{kind.name}State{access}Latency", settings.history_size)
            methods[method] = staticmethod(_timed(getattr(state, method), histogram, settings.every))
        handle = type(f"Tracked{kind.interface.__name__}", (kind.interface,), methods)()
        self._handles[name] = state, handle
        return handle
