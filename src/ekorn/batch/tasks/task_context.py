"""The runtime context of a function in a task of a DataSet program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ekorn.batch.tasks.broadcast_variables import BroadcastVariables
from ekorn.batch.tasks.job_files import JobFiles, WorkerCache
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.config.configuration import Configuration
from ekorn.config.execution_config import ExecutionConfig
from ekorn.config.job_id import JobID
from ekorn.functions.data_sets.data_set_functions import BroadcastVariableInitializer
from ekorn.functions.results.accumulating_context import AccumulatingContext
from ekorn.functions.runtime_context import DistributedCache
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.contexts.subtask_context import StateStore

if TYPE_CHECKING:
    from ekorn.batch.tasks.superstep import Superstep

__all__ = ["TaskJobInfo", "TaskRuntimeContext"]


@dataclass(frozen=True)
class TaskJobInfo:
    """What every task of a job knows of it."""

    job_id: str
    job_name: str
    configuration: dict[str, str] = field(default_factory=dict)
    job_parameters: dict[str, str] = field(default_factory=dict)
    files: JobFiles = field(default_factory=JobFiles)
    superstep: Superstep | None = None  # of the iteration that the task belongs to


class TaskRuntimeContext(StateStore, AccumulatingContext):
    """The runtime context of one operator in one subtask. It has no state."""

    def __init__(self, facts: TaskJobInfo, operator: TaskOperator, index: int, parallelism: int, attempt: int) -> None:
        super().__init__(None)
        self._facts = facts
        self._operator = operator
        self._index = index
        self._parallelism = parallelism
        self._attempt = attempt
        self._variables = BroadcastVariables(operator.number, operator.name, operator.shared)
        self._metrics = MetricGroup()
        self.accumulators = {}

    @property
    def aggregates(self) -> dict[str, Any]:
        """Return the values that the function gave to aggregators of an iteration, by name."""
        return {}

    def __reduce__(self) -> Any:
        return type(None), ()  # a function that is pickled in a task leaves its context there

    def get_task_name(self) -> str:
        return self._operator.name

    def get_task_name_with_subtasks(self) -> str:
        return f"{self._operator.name} ({self._index + 1}/{self._parallelism})"

    def get_number_of_parallel_subtasks(self) -> int:
        return self._parallelism

    def get_max_number_of_parallel_subtasks(self) -> int:
        return self._parallelism

    def get_index_of_this_subtask(self) -> int:
        return self._index

    def get_attempt_number(self) -> int:
        return self._attempt

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return self._facts.job_parameters.get(key, default_value)

    def get_operator_parameters(self) -> Configuration:
        return Configuration.from_dict(self._operator.parameters)

    def get_metrics_group(self) -> MetricGroup:
        return self._metrics

    def get_job_id(self) -> JobID:
        return JobID(self._facts.job_id)

    def get_execution_config(self) -> ExecutionConfig:
        return ExecutionConfig(Configuration.from_dict(self._facts.configuration))

    def get_broadcast_variable(self, name: str) -> list[Any]:
        return self._variables.get(name)

    def get_broadcast_variable_with_initializer(
        self, name: str, initializer: BroadcastVariableInitializer[Any, Any] | Callable[[list[Any]], Any]
    ) -> Any:
        return self._variables.initialized(name, initializer)

    def get_distributed_cache(self) -> DistributedCache:
        return WorkerCache(self._facts.job_id, self._facts.files)
