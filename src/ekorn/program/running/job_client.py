"""`JobClient`: what a program holds of a job it has started, with PyFlink's names and futures."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ekorn.config.choices import SavepointFormatType
from ekorn.config.job_id import JobID
from ekorn.errors import JobCancelledError
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.results.job_status import JobStatus
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.running.completable_future import CompletableFuture

if TYPE_CHECKING:  # importing ekorn.common must not import the driver
    from ekorn.driver.checkpoints.savepoint_requests import Then
    from ekorn.driver.display.job_progress import JobProgress
    from ekorn.driver.queries.state_reader import QueryAddress

__all__ = ["JobClient"]

T = TypeVar("T")


class ControlledJob(Protocol):
    """What a client needs of a job, whether the job runs in this process or in a service."""

    @property
    def job_id(self) -> JobID:
        """The id of the job."""

    @property
    def job_name(self) -> str:
        """The name of the job."""

    @property
    def queries_at(self) -> QueryAddress | None:
        """Where queries of the job's state are answered."""

    def status(self) -> JobStatus:
        """Return the status of the job."""

    def cancel(self) -> None:
        """Cancel the job and return at once."""

    def wait(self, timeout: float | None = None) -> JobExecutionResult:
        """Wait for the end of the job; raise what ended it."""

    def request_savepoint(
        self, directory: str | None = None, *, native: bool = False, then: Then = "go on"
    ) -> Future[str]:
        """Request a savepoint; the future has its path."""

    def request_rescale(self, parallelism: int, directory: str | None = None) -> Future[str]:
        """Request another parallelism; the future has the checkpoint that the job went on from."""

    def accumulators(self) -> dict[str, Any]:
        """Return the values of the accumulators."""

    def metrics(self) -> dict[str, Any]:
        """Return the metrics."""

    def progress(self) -> JobProgress:
        """Return the progress of the job."""

    def _repr_html_(self) -> str: ...


class JobClient(SuggestsMethods):
    """Watches and controls a job that ``execute_async`` has started.

    Every method returns at once. What takes time is in the future that the method returns.
    """

    def __init__(self, handle: ControlledJob) -> None:
        self._handle = handle
        self._result: Future[JobExecutionResult] | None = None

    def get_job_id(self) -> JobID:
        """Return the job's id."""
        return self._handle.job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return a future of the job's current status."""
        return CompletableFuture.completed(self._handle.status())

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job without a savepoint. The future is done when the job is CANCELED."""
        self._handle.cancel()
        return CompletableFuture(_in_background(self._wait_for_cancelled))

    def trigger_savepoint(
        self,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType = SavepointFormatType.CANONICAL,
    ) -> CompletableFuture[str]:
        """Take a savepoint while the job keeps running. If the savepoint fails, the job keeps running as well.

        Args:
            savepoint_directory: The directory in which a new directory `savepoint-...` is made; None for the default.
            format_type: Readable by all state backends, or by the job's own only.

        Returns:
            A future of the savepoint's path.

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
        """End the job with a savepoint: nothing is read after it, and sinks commit everything that came before it.

        Args:
            advance_to_end_of_event_time: Drain the job first: event time advances to its end, so that all windows and
                event-time timers fire, and functions finish. Use it for a job that is not to be resumed, since the
                savepoint then holds no open windows. Without it, windows and timers are saved as they are.
            savepoint_directory: The directory in which a new directory `savepoint-...` is made; None for the default.
            format_type: Readable by all state backends, or by the job's own only.

        Returns:
            A future of the savepoint's path, done when the job is FINISHED.
        """
        return self._savepoint(savepoint_directory, format_type, "drain" if advance_to_end_of_event_time else "stop")

    def cancel_with_savepoint(
        self,
        savepoint_directory: str | None = None,
        format_type: SavepointFormatType = SavepointFormatType.CANONICAL,
    ) -> CompletableFuture[str]:
        """Take a savepoint, then cancel the job. The future has the savepoint's path and is done at CANCELED.

        The job may have written records between the savepoint and its end: prefer `stop_with_savepoint`. If the
        savepoint fails, the job keeps running.
        """
        return self._savepoint(savepoint_directory, format_type, "cancel")

    def rescale(self, parallelism: int, savepoint_directory: str | None = None) -> CompletableFuture[str]:
        """Let the job go on at another parallelism, in the same driver and under the same id.

        A checkpoint is taken while records flow. Then the job stands still for a moment, takes a last checkpoint, and
        goes on from it with other subtasks. Operators whose parallelism the program sets keep it.

        Flink has this in its REST API only.

        Args:
            parallelism: The default parallelism.
            savepoint_directory: Go on from a savepoint in this directory. By default the job goes on from a checkpoint
                if it takes any, and else from a savepoint in its default directory or in a temporary one.

        Returns:
            A future of the path that the job went on from. It raises `RescaleError` with the reason if the job goes on
            as it was: the parallelism is above the max parallelism, there are too few slots, or the job could not be
            deployed with it.
        """
        if isinstance(parallelism, bool) or not isinstance(parallelism, int):
            raise TypeError(f"a parallelism must be an int, got {parallelism!r}")
        where = None if savepoint_directory is None else os.fspath(savepoint_directory)
        return CompletableFuture(self._handle.request_rescale(parallelism, where))

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return a future of the accumulators' values as of the last epoch."""
        return CompletableFuture.completed(self._handle.accumulators())

    def get_metrics(self) -> dict[str, Any]:
        """Return the metrics as of the last epoch, while the job runs and after its end.

        ``<operator>.<subtask>.<metric>`` is the metric of one subtask. ``<operator>.<metric>`` is the metric of all
        subtasks: counters, meters and gauges are added, distributions combined. A chain has ``numRecordsIn`` and the
        like under its name. The job has its checkpoints and restarts under ``job.``.

        Flink has this in its web interface and reporters only.
        """
        return self._handle.metrics()

    def get_progress(self) -> JobProgress:
        """Return the job's progress: epochs, records read, checkpoints and restarts.

        Flink has this in its web interface only.
        """
        return self._handle.progress()

    def get_queryable_state_address(self) -> QueryAddress | None:
        """Return host, port and token for a `QueryableStateClient`; None unless `queryable-state.enable` is set."""
        return self._handle.queries_at

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return a future of the job's result. The future raises what ended the job."""
        if self._result is None:
            self._result = _in_background(self._handle.wait)
        return CompletableFuture(self._result)

    def __repr__(self) -> str:
        handle = self._handle
        return f"JobClient({handle.job_name!r}, {handle.job_id}, {handle.status().name})"

    def _repr_html_(self) -> str:
        return self._handle._repr_html_()

    # ------------------------------------------------------------------------------------------------------- details

    def _savepoint(self, directory: Any, format_type: SavepointFormatType, then: Then) -> CompletableFuture[str]:
        if not isinstance(format_type, SavepointFormatType):
            raise TypeError(f"expected a SavepointFormatType, got {format_type!r}")
        where = None if directory is None else os.fspath(directory)
        native = format_type is SavepointFormatType.NATIVE
        return CompletableFuture(self._handle.request_savepoint(where, native=native, then=then))

    def _wait_for_cancelled(self) -> None:
        try:
            self._handle.wait()
        except JobCancelledError:
            return


def _in_background(work: Callable[[], T]) -> Future[T]:
    """Run `work` on a thread of its own and return a future of its result."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # the job decides when it ends, so the future cannot be cancelled

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="ekorn-job-future", daemon=True).start()
    return future
