"""The seam between the planner and what a sink writes to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

__all__ = ["Output", "SinkSubtask", "WriteResult"]


class SinkSubtask(NamedTuple):
    """The subtask of a sink, and the job that it belongs to."""

    number: int
    parallelism: int
    job_id: str


class WriteResult(NamedTuple):
    """What one subtask wrote, as `Output.commit` takes it. Of an attempt that Spark repeats, one result arrives."""

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
