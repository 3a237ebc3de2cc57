"""The handle of a submitted job: its status, its result, what it collects, how to cancel it or ask for a savepoint."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from tamias.config.job_id import JobID
from tamias.driver.savepoint_requests import SavepointRequest, Then
from tamias.errors import AccumulatorError, ConfigurationError, JobCancelledError, TamiasError
from tamias.functions.job_execution_result import JobExecutionResult
from tamias.functions.job_status import JobStatus


@dataclass(frozen=True)
class JobProgress:
    """How far a job is, for people to watch."""

    status: JobStatus = JobStatus.CREATED
    attempt: int = 0
    epochs: int = 0
    records_read: int = 0
    last_epoch_ms: float = 0.0
    last_epoch_records: int = 0
    checkpoints_completed: int = 0
    checkpoints_failed: int = 0
    last_checkpoint_id: int | None = None
    last_checkpoint_bytes: int = 0
    last_checkpoint_ms: float = 0.0
    last_checkpoint_path: str | None = None
    restarts: int = 0
    last_failure: str | None = None
    watermark: int | None = None
    slot_pids: tuple[int, ...] = ()
    savepoints_completed: int = 0
    last_savepoint_path: str | None = None


_END = object()


@dataclass
class JobHandle:
    """A job that was submitted. Safe to use from any thread."""

    job_id: JobID
    job_name: str
    _progress: JobProgress = field(default_factory=JobProgress)
    _ended: threading.Event = field(default_factory=threading.Event)
    _cancel: threading.Event = field(default_factory=threading.Event)
    _collected: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    _accumulators: dict[str, Any] = field(default_factory=dict)
    _result: JobExecutionResult | None = None
    _error: BaseException | None = None
    _on_cancel: Callable[[], None] | None = None
    _metrics: Callable[[], dict[str, Any]] | None = None
    savepoint_directory: str | None = None  # where savepoints go that are asked for without one
    _requests: list[SavepointRequest] = field(default_factory=list)
    _requests_lock: threading.Lock = field(default_factory=threading.Lock)
    _on_request: Callable[[], None] | None = None
    _before_end: Callable[[], None] | None = None

    def status(self) -> JobStatus:
        """Where the job is in its life."""
        return self._progress.status

    def progress(self) -> JobProgress:
        """How far the job is."""
        return self._progress

    def cancel(self) -> None:
        """End the job without waiting for its input; returns at once, `wait` tells when it is over."""
        self._cancel.set()
        if self._on_cancel is not None:
            self._on_cancel()

    def wait(self, timeout: float | None = None) -> JobExecutionResult:
        """Wait for the end.

        Raises:
            JobExecutionError: the job failed.
            JobCancelledError: it was cancelled.
            TimeoutError: it is still running.
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"job {self.job_name!r} is still {self.status().name} after {timeout} s")
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def request_savepoint(
        self, directory: str | None = None, *, native: bool = False, then: Then = "go on"
    ) -> Future[str]:
        """Ask for a savepoint; the future has its path, or says why there is none.

        Args:
            directory: Where to put it; None for the default directory of the job.
            native: In the format of the state backend, instead of the one that all backends read.
            then: `go on`; `stop` to finish without reading more; `drain` to finish as if the input had ended, which
                lets event time go to its end; `cancel`. When the job is to end, the future is done at its end.

        Raises:
            ConfigurationError: Neither a directory nor a default.
        """
        directory = directory or self.savepoint_directory
        if directory is None:
            raise ConfigurationError(
                "no directory for the savepoint: give one, or set a default "
                "(env.set_default_savepoint_directory, execution.checkpointing.savepoint-dir)"
            )
        request = SavepointRequest(directory, native, then)
        with self._requests_lock:
            if self._ended.is_set():
                request.job_ended(self.status())
            else:
                self._requests.append(request)
        if self._on_request is not None:
            self._on_request()
        return request.future

    def accumulators(self) -> dict[str, Any]:
        """The accumulators' values as of the last epoch."""
        return {name: a.get_local_value() for name, a in self._accumulators.items()}

    def metrics(self) -> dict[str, Any]:
        """The metrics' values as of the last epoch, by name; those of the job itself begin with `job.`."""
        progress = self._progress
        own = {
            "job.numRestarts": progress.restarts,
            "job.numberOfCompletedCheckpoints": progress.checkpoints_completed,
            "job.numberOfFailedCheckpoints": progress.checkpoints_failed,
            "job.lastCheckpointSize": progress.last_checkpoint_bytes,
            "job.lastCheckpointDuration": progress.last_checkpoint_ms,
            "job.lastCheckpointExternalPath": progress.last_checkpoint_path,
        }
        return own | (self._metrics() if self._metrics is not None else {})

    def collected(self) -> Iterator[Any]:
        """The records of a collecting job, as they come; ends with the job, and raises what it failed with."""
        while (item := self._collected.get()) is not _END:
            yield item
        if self._error is not None and not isinstance(self._error, JobCancelledError):
            raise self._error

    # ------------------------------------------------------------------------------ for the loop that runs the job

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody called `cancel`."""
        return self._cancel.is_set()

    def wait_for_cancel(self, seconds: float) -> bool:
        """Sleep, but not past a `cancel`."""
        return self._cancel.wait(seconds)

    def on_cancel(self, call: Callable[[], None]) -> None:
        """What to do, on the canceller's thread, when `cancel` is called."""
        self._on_cancel = call

    def on_request(self, call: Callable[[], None]) -> None:
        """What to do, on the asking thread, when a savepoint is requested."""
        self._on_request = call

    def before_end(self, call: Callable[[], None]) -> None:
        """What to do when the job is over and nobody has heard of it yet."""
        self._before_end = call

    def take_requests(self) -> list[SavepointRequest]:
        """The savepoints asked for since the last call."""
        with self._requests_lock:
            taken, self._requests = self._requests, []
        return taken

    def update(self, progress: JobProgress) -> None:
        """Publish progress."""
        self._progress = progress

    def deliver(self, records: list[Any]) -> None:
        """Hand over collected records."""
        for record in records:
            self._collected.put(record)

    def end(self, status: JobStatus, result: JobExecutionResult | None, error: BaseException | None) -> None:
        """The job is over."""
        if self._before_end is not None:
            self._before_end()
        self._progress = replace(self._progress, status=status)
        self._result, self._error = result, error
        self._collected.put(_END)
        with self._requests_lock:
            self._ended.set()
        for request in self.take_requests():
            request.job_ended(status)

    def publish_metrics(self, values: Callable[[], dict[str, Any]]) -> None:
        """Who knows the metrics of the subtasks; called by any thread."""
        self._metrics = values

    def set_accumulators(self, merged: dict[str, Any]) -> None:
        """Publish the merged accumulators."""
        self._accumulators = merged


def merge_accumulators(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One accumulator per name out of those of all subtasks.

    Raises:
        AccumulatorError: two different kinds under one name.
    """
    merged: dict[str, Any] = {}
    for part in parts:
        for name, accumulator in part.items():
            found = merged.get(name)
            if found is None:
                merged[name] = accumulator.clone()
            elif type(found) is not type(accumulator):
                raise AccumulatorError(
                    f"accumulator {name!r} is a {type(found).__name__} in one operator and a "
                    f"{type(accumulator).__name__} in another; give them different names"
                )
            else:
                try:
                    found.merge(accumulator)
                except TamiasError:
                    raise
                except Exception as error:
                    raise AccumulatorError(f"accumulator {name!r} could not be merged: {error}") from error
    return merged
