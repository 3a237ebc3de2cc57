"""The runtime context that `open` is given, and the store of keyed state."""

from __future__ import annotations

from typing import Any

from ekorn.config.configuration import Configuration
from ekorn.config.execution_config import ExecutionConfig
from ekorn.config.job_id import JobID
from ekorn.errors import StateNotKeyed
from ekorn.functions.results.accumulating_context import AccumulatingContext
from ekorn.functions.runtime_context import DistributedCache
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
from ekorn.functions.state.state_stores import KeyedStateStore
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.state.keyed_backend import KeyedStateBackend, KeyedStates
from ekorn.state.tracked_states import TrackedStates

_CALLS = {  # by the kind of the state
    "value": "get_state",
    "list": "get_list_state",
    "map": "get_map_state",
    "reducing": "get_reducing_state",
    "aggregating": "get_aggregating_state",
    "folding": "get_folding_state",
}


def _checked_name(call: str, descriptor: Any, kind: type[StateDescriptor]) -> str:
    if isinstance(descriptor, kind):
        return descriptor.name
    use = f"; use {_CALLS[descriptor.kind]}()" if isinstance(descriptor, StateDescriptor) else ""
    raise TypeError(f"{call}() takes a {kind.__name__}, got {descriptor!r}{use}")


class StateStore(KeyedStateStore):
    """Gives access to the keyed state of an operator. An operator without keys has none."""

    def __init__(self, backend: KeyedStates | None, operator_name: str) -> None:
        self._backend = backend
        self._operator_name = operator_name

    def _keyed(self, state_name: str) -> KeyedStates:
        if self._backend is None:
            raise StateNotKeyed(state_name)
        return self._backend

    def get_state(self, state_descriptor: ValueStateDescriptor) -> ValueState[Any]:
        name = _checked_name("get_state", state_descriptor, ValueStateDescriptor)
        return self._keyed(name).value_state(state_descriptor)

    def get_list_state(self, state_descriptor: ListStateDescriptor) -> ListState[Any]:
        name = _checked_name("get_list_state", state_descriptor, ListStateDescriptor)
        return self._keyed(name).list_state(state_descriptor)

    def get_map_state(self, state_descriptor: MapStateDescriptor) -> MapState[Any, Any]:
        name = _checked_name("get_map_state", state_descriptor, MapStateDescriptor)
        return self._keyed(name).map_state(state_descriptor)

    def get_reducing_state(self, state_descriptor: ReducingStateDescriptor) -> ReducingState[Any]:
        name = _checked_name("get_reducing_state", state_descriptor, ReducingStateDescriptor)
        return self._keyed(name).reducing_state(state_descriptor)

    def get_aggregating_state(self, state_descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]:
        name = _checked_name("get_aggregating_state", state_descriptor, AggregatingStateDescriptor)
        return self._keyed(name).aggregating_state(state_descriptor)

    def get_folding_state(self, state_descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]:
        name = _checked_name("get_folding_state", state_descriptor, FoldingStateDescriptor)
        return self._keyed(name).folding_state(state_descriptor)


class SubtaskContext(StateStore, AccumulatingContext):
    """The runtime context of one operator in one subtask."""

    def __init__(
        self,
        environment: SubtaskEnvironment,
        backend: KeyedStateBackend | None,
        operator_name: str,
        metrics: MetricGroup,
        parameters: dict[str, str] | None = None,
    ) -> None:
        super().__init__(_timed(environment, backend, metrics), operator_name)
        self.accumulators = environment.accumulators
        self._environment = environment
        self._metrics = metrics
        self._parameters = parameters or {}

    def get_task_name(self) -> str:
        return self._environment.vertex.name

    def get_task_name_with_subtasks(self) -> str:
        return self._environment.name

    def get_number_of_parallel_subtasks(self) -> int:
        return self._environment.vertex.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._environment.vertex.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._environment.index

    def get_attempt_number(self) -> int:
        return self._environment.attempt

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._environment.graph.settings.job_parameters.get(key, default_value)

    def get_operator_parameters(self) -> Configuration:
        return Configuration.from_dict(self._parameters)

    def get_metrics_group(self) -> MetricGroup:
        return self._metrics

    def get_job_id(self) -> JobID:
        return JobID(self._environment.job_id)

    def get_execution_config(self) -> ExecutionConfig:
        settings = self._environment.graph.settings
        config = ExecutionConfig()
        config.set_parallelism(self._environment.vertex.parallelism)
        config.set_max_parallelism(self._environment.vertex.max_parallelism)
        config.set_auto_watermark_interval(settings.auto_watermark_interval_ms)
        config.set_global_job_parameters(dict(settings.job_parameters))
        if settings.object_reuse:
            config.enable_object_reuse()
        return config

    def get_distributed_cache(self) -> DistributedCache:
        return _Cache(self._environment)


def _timed(
    environment: SubtaskEnvironment, backend: KeyedStateBackend | None, metrics: MetricGroup
) -> KeyedStates | None:
    """Return what hands out states to functions: the backend itself, unless the job asks for latencies of accesses."""
    settings = environment.graph.settings.state_latency
    return backend if backend is None or settings is None else TrackedStates(backend, metrics, settings)


class _Cache(DistributedCache):
    def __init__(self, environment: SubtaskEnvironment) -> None:
        self._environment = environment

    def get_file(self, name: str) -> str:
        return self._environment.cached_file(name)
