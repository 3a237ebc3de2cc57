"""The runtime context that `open` is given, and the store of keyed state."""

from __future__ import annotations

from typing import Any

from ekorn.config.configuration import Configuration
from ekorn.config.execution_config import ExecutionConfig
from ekorn.config.job_id import JobID
from ekorn.errors import StateNotKeyed
from ekorn.functions.results.accumulating_context import AccumulatingContext
from ekorn.functions.runtime_context import DistributedCache
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.functions.state.state_stores import KeyedStateStore
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.state.keyed_backend import KeyedStateBackend, KeyedStates
from ekorn.state.tracked_states import TrackedStates


class StateStore(KeyedStateStore):
    """Gives access to the keyed state of an operator. An operator without keys has none."""

    def __init__(self, backend: KeyedStates | None) -> None:
        self._backend = backend

    def _state(self, descriptor: StateDescriptor) -> Any:
        if self._backend is None:
            raise StateNotKeyed(descriptor.name)
        return self._backend.state(descriptor)


class SubtaskContext(StateStore, AccumulatingContext):
    """The runtime context of one operator in one subtask."""

    def __init__(
        self,
        environment: SubtaskEnvironment,
        backend: KeyedStateBackend | None,
        metrics: MetricGroup,
        parameters: dict[str, str] | None = None,
    ) -> None:
        super().__init__(_timed(environment, backend, metrics))
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
    """Return the store that gives states to functions: the backend, or one that times accesses if asked to."""
    settings = environment.graph.settings.state_latency
    return backend if backend is None or settings is None else TrackedStates(backend, metrics, settings)


class _Cache(DistributedCache):
    def __init__(self, environment: SubtaskEnvironment) -> None:
        self._environment = environment

    def get_file(self, name: str) -> str:
        return self._environment.cached_file(name)
