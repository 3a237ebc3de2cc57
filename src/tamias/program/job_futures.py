"""A job's handle as a job client wants it: what takes time comes as a future."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from tamias.config.job_id import JobID
from tamias.errors import JobCancelledError
from tamias.functions.job_execution_result import JobExecutionResult
from tamias.functions.job_status import JobStatus

if TYPE_CHECKING:
    from tamias.driver.job_handle import JobHandle, JobProgress
    from tamias.driver.savepoint_requests import Then

T = TypeVar("T")


class JobFutures:
    """Waits for a job on threads of its own, so that the program need not."""

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle
        self._result: Future[JobExecutionResult] | None = None

    @property
    def job_id(self) -> JobID:
        """The job's id."""
        return self._handle.job_id

    def status(self) -> JobStatus:
        """Where the job is in its life, now."""
        return self._handle.status()

    def accumulators(self) -> dict[str, Any]:
        """The accumulators as they are now."""
        return self._handle.accumulators()

    def metrics(self) -> dict[str, Any]:
        """The metrics as they are now."""
        return self._handle.metrics()

    def progress(self) -> JobProgress:
        """How far the job is."""
        return self._handle.progress()

    def cancel(self) -> Future[None]:
        """End the job; done when it is over."""
        self._handle.cancel()
        return _later(self._wait_for_cancelled)

    def savepoint(self, directory: str | None, *, native: bool, then: Then) -> Future[str]:
        """Take a savepoint; done with its path, or, when the job is to end with it, at the job's end."""
        return self._handle.request_savepoint(directory, native=native, then=then)

    def result(self) -> Future[JobExecutionResult]:
        """Done when the job ends, with its result or with what ended it."""
        if self._result is None:
            self._result = _later(self._handle.wait)
        return self._result

    def _wait_for_cancelled(self) -> None:
        try:
            self._handle.wait()
        except JobCancelledError:
            return


def _later(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # it cannot be given up: the job decides when it ends

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="tamias-job-future", daemon=True).start()
    return future
