"""The runtime context of a function in a task of a DataSet program: with broadcast variables and cached files."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.config.configuration import Configuration
from ekorn.config.execution_config import ExecutionConfig
from ekorn.config.job_id import JobID
from ekorn.errors import DeploymentError, InvalidProgramError
from ekorn.functions.data_sets.data_set_functions import BroadcastVariableInitializer
from ekorn.functions.results.accumulating_context import AccumulatingContext
from ekorn.functions.runtime_context import DistributedCache
from ekorn.graph.job_graph import CachedFile
from ekorn.metrics.metricbase import MetricGroup
from ekorn.operators.contexts.subtask_context import StateStore
from ekorn.slot_protocol.cached_files import CONTENT, CachedFiles, checked, local_path
from ekorn.storage.scratch_folders import LocalFolder

if TYPE_CHECKING:
    from ekorn.batch.tasks.superstep import Superstep

__all__ = [
    "BroadcastVariables",
    "JobFiles",
    "TaskJobInfo",
    "TaskRuntimeContext",
    "WorkerCache",
    "packed_files",
    "shared_name",
]


_MOST_JOBS = 8  # the number of jobs whose copies a worker keeps
# By job; a folder is removed with its worker, or by a later job.
_copies: dict[str, tuple[LocalFolder, CachedFiles]] = {}
_PREFIX = "variable "
_MOST_KEPT = 64
_initialized: dict[tuple[int, str], tuple[list[Any], Any]] = {}  # by operator and variable: the records, and the result


@dataclass(frozen=True)
class JobFiles:
    """The files that a program registered, and the broadcasts of those that workers cannot see, by number."""

    files: tuple[CachedFile, ...] = ()
    archives: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskJobInfo:
    """What every task of a job knows about the job."""

    job_id: str
    job_name: str
    configuration: dict[str, str] = field(default_factory=dict)
    job_parameters: dict[str, str] = field(default_factory=dict)
    files: JobFiles = field(default_factory=JobFiles)
    all_frames: bool = False  # whether tracebacks show frames of this package too
    superstep: Superstep | None = None  # the superstep of the iteration that the task belongs to


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
        return type(None), ()  # a function that is pickled in a task is pickled without its context

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


def shared_name(name: str) -> str:
    """Return the name of a variable among what an operator's tasks share."""
    return _PREFIX + name


class BroadcastVariables:
    """The broadcast variables of one operator: data sets that its function reads whole.

    Spark sends the records once to each worker, and unpickles them once in each. All subtasks of the worker share the
    list.

    Args:
        operator_number: The number of the operator in its job.
        operator_name: Its name, for errors.
        shared: What the tasks of the operator share.
    """

    def __init__(self, operator_number: int, operator_name: str, shared: Mapping[str, Any]) -> None:
        self._operator = operator_number
        self._operator_name = operator_name
        self._lists: dict[str, list[Any]] = {
            name[len(_PREFIX) :]: each for name, each in shared.items() if name.startswith(_PREFIX)
        }

    def get(self, name: str) -> list[Any]:
        """Return the records of a variable.

        Raises:
            InvalidProgramError: The operator has no such variable.
        """
        if name not in self._lists:
            known = f", only {', '.join(map(repr, self._lists))}" if self._lists else ""
            raise InvalidProgramError(
                f"operator {self._operator_name!r} has no broadcast variable {name!r}{known}; "
                f"call with_broadcast_set(data_set, {name!r}) on it"
            )
        return self._lists[name]

    def initialized(
        self, name: str, initializer: BroadcastVariableInitializer[Any, Any] | Callable[[list[Any]], Any]
    ) -> Any:
        """Return what an initializer makes of a variable, once for all subtasks of the worker."""
        records = self.get(name)
        key = (self._operator, name)
        known = _initialized.get(key)
        if known is not None and known[0] is records:
            return known[1]
        _initialized.pop(key, None)  # drops the result of the previous superstep, or of a job that has ended
        if isinstance(initializer, BroadcastVariableInitializer):
            made = initializer.initialize_broadcast_variable(records)
        else:
            made = initializer(records)
        if len(_initialized) >= _MOST_KEPT:
            _initialized.clear()
        _initialized[key] = (records, made)
        return made


def packed_files(files: tuple[CachedFile, ...], broadcast: Callable[[bytes], Any] | None) -> JobFiles:
    """Return the files of a job for its tasks.

    Args:
        files: The files that the program registered.
        broadcast: Sends bytes to the workers; None if they are on this machine.

    Raises:
        FileNotFoundError: A file of this machine does not exist.
    """
    found = checked(files)
    archives = {}
    if broadcast is not None:
        for number, file in enumerate(found):
            path = local_path(file.path)
            if path is not None:
                packed = io.BytesIO()
                with tarfile.open(fileobj=packed, mode="w", dereference=True) as archive:
                    archive.add(path, arcname=CONTENT)
                archives[number] = broadcast(packed.getvalue())
    return JobFiles(found, archives)


class WorkerCache(DistributedCache):
    """The distributed cache in a Python worker of Spark: one copy of a job's files in each worker that asks for them.

    A path of the driver's machine is copied by workers of that machine. On a cluster the driver sends an archive as a
    broadcast, and each worker unpacks it. Other addresses are downloaded by each worker.
    """

    def __init__(self, job_id: str, files: JobFiles) -> None:
        self._job_id = job_id
        self._files = files

    def get_file(self, name: str) -> str:
        """Return the path of a file's copy; the first call in a worker makes the copies.

        Raises:
            UnsupportedOperationError: No file is registered under this name.
            DeploymentError: A file cannot be copied or downloaded.
        """
        return self._of_worker().path_of(name)

    def _of_worker(self) -> CachedFiles:
        if self._job_id not in _copies:
            while len(_copies) >= _MOST_JOBS:
                _copies.pop(next(iter(_copies)))[0].close()
            folder = LocalFolder(tempfile.gettempdir(), "ekorn-batch-files-")
            made = CachedFiles(folder.path)
            try:
                for number, archive in self._files.archives.items():
                    made.receive(number, self._files.files[number], archive.value, last=True, first=True)
                made.fetch(self._files.files)
            except (OSError, tarfile.TarError) as error:
                folder.close()
                raise DeploymentError(f"the cached files of the job cannot be copied: {error}") from error
            _copies[self._job_id] = (folder, made)
        return _copies[self._job_id][1]
