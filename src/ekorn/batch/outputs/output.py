"""The seam between the planner and what a sink writes to, and the outputs that a program defines itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ekorn.types.record_text import record_text
from ekorn.types.type_information import TypeInformation

__all__ = ["FormatOutput", "FunctionFormat", "Output", "OutputFormat", "PrintFormat", "SinkSubtask", "WriteResult"]


class SinkSubtask(NamedTuple):
    """The subtask of a sink, and the job that it belongs to."""

    number: int
    parallelism: int
    job_id: str


class WriteResult(NamedTuple):
    """What one subtask wrote, for `Output.commit`. Of a task that Spark repeats, only one result arrives."""

    subtask: int
    written: Any


class Output(Protocol):
    """Something that subtasks write to and that the driver makes visible at the end.

    Spark may run a task again, or twice at the same time. Only what the results name counts.
    """

    def begin(self, parallelism: int) -> None:
        """Check that the output can be written. Called in the driver, before anything runs."""
        ...

    def write(self, records: Iterable[Any], subtask: SinkSubtask) -> Any:
        """Write the records of a partition, and return what `commit` needs to know. Called in a task."""
        ...

    def commit(self, results: Sequence[WriteResult], job_id: str, parallelism: int) -> None:
        """Make visible what was written. Called in the driver, when all sinks of the job have been written."""
        ...

    def abort(self, job_id: str, parallelism: int) -> None:
        """Remove what was written. Called in the driver after a failure."""
        ...


T = TypeVar("T")


class OutputFormat(ABC, Generic[T]):
    """Output of `data_set.output`. Each subtask has an object of its own.

    Spark runs a task again after a failure, so `open` must begin the part of a subtask again. Output that must appear
    at once, or only if all subtasks succeed, belongs in `finalize_global`.
    """

    def initialize_global(self, parallelism: int) -> None:
        """Prepare the output. Called once, in the driver, before anything is written."""

    @abstractmethod
    def open(self, task_number: int, num_tasks: int) -> None:
        """Begin to write in a subtask."""

    @abstractmethod
    def write_record(self, record: T) -> None:
        """Write a record."""

    def close(self) -> None:
        """End writing in a subtask. Also called after a failure."""

    def finalize_global(self, parallelism: int) -> None:
        """Complete the output. Called once, in the driver, when all sinks of the job have been written."""

    def try_cleanup_on_error(self) -> None:
        """Remove what was written. Called in the driver after a failure."""


@dataclass(frozen=True, eq=False)
class FormatOutput:
    """Writes to an `OutputFormat`."""

    format: OutputFormat[Any]

    def begin(self, parallelism: int) -> None:
        """Prepare the output."""
        self.format.initialize_global(parallelism)

    def write(self, records: Iterable[Any], subtask: SinkSubtask) -> None:
        """Write the records of a partition."""
        try:
            self.format.open(subtask.number, subtask.parallelism)
            write = self.format.write_record
            for record in records:  # hot
                write(record)
        finally:
            self.format.close()

    def commit(self, results: Sequence[WriteResult], job_id: str, parallelism: int) -> None:
        """Complete the output."""
        self.format.finalize_global(parallelism)

    def abort(self, job_id: str, parallelism: int) -> None:
        """Remove what was written."""
        self.format.try_cleanup_on_error()


class FunctionFormat(OutputFormat[Any]):
    """Calls a function with each record."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def open(self, task_number: int, num_tasks: int) -> None:
        pass

    def write_record(self, record: Any) -> None:
        self._function(record)


class PrintFormat(OutputFormat[Any]):
    """Prints each record where its subtask runs, after a prefix: as Flink, with the subtask if there are several."""

    def __init__(self, prefix: str, type_info: TypeInformation | None) -> None:
        self._prefix = prefix
        self._type_info = type_info
        self._begin = ""

    def open(self, task_number: int, num_tasks: int) -> None:
        parts = [self._prefix] if self._prefix else []
        if num_tasks > 1:
            parts.append(str(task_number + 1))
        self._begin = ":".join(parts) + "> " if parts else ""

    def write_record(self, record: Any) -> None:
        print(self._begin + record_text(self._type_info, record))
