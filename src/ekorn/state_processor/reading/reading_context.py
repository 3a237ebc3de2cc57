"""The runtime context of functions that read a savepoint: its states, and nothing of a job."""

from __future__ import annotations

from typing import Any, NoReturn

from ekorn.clock import Clock
from ekorn.config.configuration import Configuration
from ekorn.config.execution_config import ExecutionConfig
from ekorn.config.job_id import JobID
from ekorn.errors import StateError, UnsupportedOperationError
from ekorn.functions.results.accumulators import Accumulator, DoubleCounter, Histogram, IntCounter, LongCounter
from ekorn.functions.runtime_context import DistributedCache, RuntimeContext
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.contexts.subtask_context import StateStore
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state_processor.reading.stored_savepoint import StoredOperator

__all__ = ["ReadingContext"]


class ReadingContext(StateStore, RuntimeContext):
    """Hands out the states of an operator while a function is opened, and notes which were asked for."""

    def __init__(self, backend: KeyedStateBackend, stored: StoredOperator, subtask_index: int, clock: Clock) -> None:
        super().__init__(backend)
        self.asked_for: dict[str, None] = {}
        self._stored = stored
        self._subtask_index = subtask_index
        self._metrics = MetricGroup(clock, {})
        self._is_open = True

    def seal(self) -> None:
        """Refuse to hand out further states: the keys that are read follow from the states that are registered."""
        self._is_open = False

    def _state(self, descriptor: StateDescriptor) -> Any:
        name = descriptor.name
        if not self._is_open:
            raise StateError(
                f"state {name!r} is requested after open(): register all states in open(), because they determine "
                "which keys are read"
            )
        self._stored.state(name)
        self.asked_for[name] = None
        return super()._state(descriptor)

    def get_task_name(self) -> str:
        return self._stored.metadata.name

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._stored.metadata.name} ({self._subtask_index + 1})"

    def get_number_of_parallel_subtasks(self) -> int:
        return self._stored.metadata.parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._stored.metadata.max_parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._subtask_index

    def get_attempt_number(self) -> int:
        return 0

    def get_job_parameter(self, key: str, default_value: str) -> str:
        _not_here("get_job_parameter")

    def get_operator_parameters(self) -> Configuration:
        return Configuration()

    def get_metrics_group(self) -> MetricGroup:
        return self._metrics

    def get_job_id(self) -> JobID:
        _not_here("get_job_id")

    def get_execution_config(self) -> ExecutionConfig:
        return ExecutionConfig()

    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        _not_here("add_accumulator")

    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        _not_here("get_accumulator")

    def get_int_counter(self, name: str) -> IntCounter:
        _not_here("get_int_counter")

    def get_long_counter(self, name: str) -> LongCounter:
        _not_here("get_long_counter")

    def get_double_counter(self, name: str) -> DoubleCounter:
        _not_here("get_double_counter")

    def get_histogram(self, name: str) -> Histogram:
        _not_here("get_histogram")

    def get_distributed_cache(self) -> DistributedCache:
        _not_here("get_distributed_cache")


def _not_here(call: str) -> NoReturn:
    raise UnsupportedOperationError(
        f"{call}() is not available where a savepoint is read: use it in a function after the reader"
    )
