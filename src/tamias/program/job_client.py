"""`JobClient`: the user's hold on a running job. The work is done by the job's handle."""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import Any, Protocol

from tamias.config.job_id import JobID
from tamias.config.savepoint_format import SavepointFormatType
from tamias.functions.job_execution_result import JobExecutionResult
from tamias.functions.job_status import JobStatus
from tamias.program.completable_future import CompletableFuture

__all__ = ["JobClient", "JobHandle"]


class JobHandle(Protocol):
    """What a job offers to its client. Calls return at once; what takes time is in the future they return."""

    @property
    def job_id(self) -> JobID:
        """The job's id."""
        ...

    def status(self) -> JobStatus:
        """Where the job is in its life, now."""
        ...

    def cancel(self) -> Future[None]:
        """End the job without a savepoint; done when it is CANCELED."""
        ...

    def savepoint(self, directory: str | None, *, native: bool, then: Any) -> Future[str]:
        """Take a savepoint, and go on, stop, drain or cancel; done with its path, when the job is to end at its end."""
        ...

    def result(self) -> Future[JobExecutionResult]:
        """Done when the job ends, with its result or with what ended it."""
        ...

    def accumulators(self) -> dict[str, Any]:
        """The accumulators as they are now; each subtask's as of its last epoch."""
        ...

    def metrics(self) -> dict[str, Any]:
        """The metrics as they are now, by name; each subtask's as of its last epoch."""
        ...

    def progress(self) -> Any:
        """How far the job is: epochs, records, checkpoints, restarts."""
        ...


class JobClient:
    """What ``execute_async`` returns."""

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle

    def get_job_id(self) -> JobID:
        """The job's id."""
        return self._handle.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Where the job is in its life."""
        return CompletableFuture.completed(self._handle.status())

    def cancel(self) -> CompletableFuture[None]:
        """End the job without a savepoint; done when it is CANCELED."""
        return CompletableFuture(self._handle.cancel())

    def trigger_savepoint(
        self,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType = SavepointFormatType.CANONICAL,
    ) -> CompletableFuture[str]:
        """Take a savepoint while the job goes on; a future of its path. Should it fail, the job goes on as well.

        Args:
            savepoint_directory: Where to put it, in a new directory `savepoint-...`; None for the default directory.
            format_type: Readable by all state backends, or by the job's own.

        Raises:
            ConfigurationError: No directory is given, and there is no default.
        """
        return self._savepoint(savepoint_directory, format_type, "go on")

    def stop_with_savepoint(
        self,
        advance_to_end_of_event_time: bool,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType = SavepointFormatType.CANONICAL,
    ) -> CompletableFuture[str]:
        """End the job with a savepoint: nothing is read after it, and its sinks commit all that came before.

        Args:
            advance_to_end_of_event_time: Drain the job first: event time goes to its end, so that all windows and
                event-time timers fire, and functions finish. For a job that is not to be resumed, since windows that
                were still open are closed in the savepoint. Otherwise windows and timers stay as they are in it.
            savepoint_directory: Where to put it; None for the default directory.
            format_type: Readable by all state backends, or by the job's own.

        Returns:
            A future of the savepoint's path, done when the job is FINISHED.
        """
        return self._savepoint(savepoint_directory, format_type, "drain" if advance_to_end_of_event_time else "stop")

    def cancel_with_savepoint(
        self,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType = SavepointFormatType.CANONICAL,
    ) -> CompletableFuture[str]:
        """Take a savepoint, then cancel the job; a future of the savepoint's path, done when the job is CANCELED.

        Records between the two may have been put out: prefer `stop_with_savepoint`. Should the savepoint fail, the job
        goes on.
        """
        return self._savepoint(savepoint_directory, format_type, "cancel")

    def _savepoint(self, directory: Any, format_type: SavepointFormatType, then: str) -> CompletableFuture[str]:
        if not isinstance(format_type, SavepointFormatType):
            raise TypeError(f"expected a SavepointFormatType, got {format_type!r}")
        where = None if directory is None else os.fspath(directory)
        native = format_type is SavepointFormatType.NATIVE
        return CompletableFuture(self._handle.savepoint(where, native=native, then=then))

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The accumulators as they are now."""
        return CompletableFuture.completed(self._handle.accumulators())

    def get_metrics(self) -> dict[str, Any]:
        """The metrics as of the last epoch, while the job runs and after it.

        ``<operator>.<subtask>.<metric>`` is one subtask's, ``<operator>.<metric>`` all subtasks' together: counters,
        meters and gauges are added, distributions combined. Chains have ``numRecordsIn`` and the like under their
        name, the job has its checkpoints and restarts under ``job.``.

        Flink has this in its web interface and reporters only.
        """
        return self._handle.metrics()

    def get_progress(self) -> Any:
        """How far the job is: a `JobProgress` with epochs, records read, checkpoints and restarts.

        Flink has this in its web interface only.
        """
        return self._handle.progress()

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """A future of the job's result; it raises what ended the job."""
        return CompletableFuture(self._handle.result())

    def __repr__(self) -> str:
        return f"JobClient({self._handle.job_id})"
