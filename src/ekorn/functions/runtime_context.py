"""`RuntimeContext`: tells a function where it runs, and gives access to state, metrics and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ekorn.errors import InvalidProgramError
from ekorn.functions.operator_parameters import OperatorParameters
from ekorn.functions.state.state_stores import KeyedStateStore

if TYPE_CHECKING:
    from ekorn.config.execution_config import ExecutionConfig
    from ekorn.config.job_id import JobID
    from ekorn.functions.data_sets.data_set_functions import BroadcastVariableInitializer
    from ekorn.functions.results.accumulators import Accumulator, DoubleCounter, Histogram, IntCounter, LongCounter
    from ekorn.metrics.metricbase import MetricGroup


class DistributedCache(ABC):
    """Gives access to local copies of the files registered with `env.register_cached_file`."""

    @abstractmethod
    def get_file(self, name: str) -> str:
        """Return the path of the local copy of a file or directory; treat the copy as read-only."""


class RuntimeContext(KeyedStateStore, OperatorParameters):
    """Passed to `Function.open`; valid as long as the function lives."""

    @abstractmethod
    def get_task_name(self) -> str:
        """Return the name of the vertex (the chain of operators) that the function runs in."""

    @abstractmethod
    def get_task_name_with_subtasks(self) -> str:
        """Return the name of the vertex with the subtask: ``Map (2/3)`` for the second of three."""

    @abstractmethod
    def get_number_of_parallel_subtasks(self) -> int:
        """Return the operator's parallelism."""

    @abstractmethod
    def get_max_number_of_parallel_subtasks(self) -> int:
        """Return the operator's maximum parallelism."""

    @abstractmethod
    def get_index_of_this_subtask(self) -> int:
        """Return the index of this subtask, from 0."""

    @abstractmethod
    def get_attempt_number(self) -> int:
        """Return the number of restarts before this attempt: 0 on the first attempt."""

    @abstractmethod
    def get_job_parameter(self, key: str, default_value: str) -> str:
        """Return a global job parameter, or the default if it is not set."""

    @abstractmethod
    def get_metrics_group(self) -> MetricGroup:
        """Return the group in which the function registers its metrics."""

    @abstractmethod
    def get_job_id(self) -> JobID:
        """Return the id of the running job."""

    @abstractmethod
    def get_execution_config(self) -> ExecutionConfig:
        """Return the settings of the job."""

    @abstractmethod
    def add_accumulator(self, name: str, accumulator: Accumulator[Any, Any]) -> None:
        """Register an accumulator; a second accumulator under the same name is an error."""

    @abstractmethod
    def get_accumulator(self, name: str) -> Accumulator[Any, Any]:
        """Return the accumulator that this subtask registered under a name."""

    @abstractmethod
    def get_int_counter(self, name: str) -> IntCounter:
        """Return the counter under a name; create it on first use."""

    @abstractmethod
    def get_long_counter(self, name: str) -> LongCounter:
        """Return the counter under a name; create it on first use."""

    @abstractmethod
    def get_double_counter(self, name: str) -> DoubleCounter:
        """Return the counter under a name; create it on first use."""

    @abstractmethod
    def get_histogram(self, name: str) -> Histogram:
        """Return the histogram under a name; create it on first use."""

    def get_broadcast_variable(self, name: str) -> list[Any]:
        """Return all records of a data set that `with_broadcast_set` gave to the operator of a DataSet program.

        All subtasks of a worker share the list, so it must not be changed. A stream has broadcast state in its place.
        """
        raise InvalidProgramError(
            f"streams have no broadcast variables, such as {name!r}; connect a broadcast stream, and keep its records "
            "in state"
        )

    def get_broadcast_variable_with_initializer(
        self, name: str, initializer: BroadcastVariableInitializer[Any, Any] | Callable[[list[Any]], Any]
    ) -> Any:
        """Return what an initializer makes of a broadcast variable, once for all subtasks of a worker."""
        return self.get_broadcast_variable(name)

    @abstractmethod
    def get_distributed_cache(self) -> DistributedCache:
        """Return the access to the files registered with `env.register_cached_file`."""
