"""What a function is told about where it runs, and where it gets state, metrics and files from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tamias.functions.state_stores import KeyedStateStore

if TYPE_CHECKING:
    from tamias.config.configuration import Configuration
    from tamias.config.execution_config import ExecutionConfig
    from tamias.config.job_id import JobID
    from tamias.functions.accumulators import Accumulator, DoubleCounter, Histogram, IntCounter, LongCounter
    from tamias.metrics.metricbase import MetricGroup


class DistributedCache(ABC):
    """The files registered with `env.register_cached_file`, as copies on this machine."""

    @abstractmethod
    def get_file(self, name: str) -> str:
        """Path of the local copy of a file or folder; treat it as read-only."""


class RuntimeContext(KeyedStateStore):
    """Handed to `Function.open`; keep it for as long as the function lives."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Name of the vertex (the chain of operators) the function runs in."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Return the same with the subtask: ``Map (2/3)`` for the second of three."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Return the operator's parallelism."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the operator's maximum parallelism."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Number of this subtask, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """0 on the first attempt, one more after each restart."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a global job parameter, or the default."""

    @abstractmethod
    def get_operator_parameters(self) -> Configuration:
        """What the operator was given `with_parameters`; empty if nothing."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Where the function registers its metrics."""

    @abstractmethod
    def get_job_id(self) -> JobID:
        """Return the running job's id."""

    @abstractmethod
    def get_execution_config(self) -> ExecutionConfig:
        """Return the settings the job runs with."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register an accumulator; a second one under the same name is an error."""

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        """Return the accumulator registered in this subtask under a name."""

    @abstractmethod
    def get_int_counter(self, name: str) -> IntCounter:
        """Return the counter under a name, made on first use."""

    @abstractmethod
    def get_long_counter(self, name: str) -> LongCounter:
        """Return the counter under a name, made on first use."""

    @abstractmethod
    def get_double_counter(self, name: str) -> DoubleCounter:
        """Return the counter under a name, made on first use."""

    @abstractmethod
    def get_histogram(self, name: str) -> Histogram:
        """Return the histogram under a name, made on first use."""

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """Return the files registered with `env.register_cached_file`."""
