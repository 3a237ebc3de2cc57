"""`JobClient`: the user's hold on a running job. The work is done by the job's handle."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from tamias.common.completable_future import CompletableFuture
from tamias.common.job_execution_result import JobExecutionResult
from tamias.common.job_id import JobID
from tamias.common.job_status import JobStatus

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

    def result(self) -> Future[JobExecutionResult]:
        """Done when the job ends, with its result or with what ended it."""
        ...

    def accumulators(self) -> dict[str, Any]:
        """The accumulators as they are now; each subtask's as of its last epoch."""
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

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """The accumulators as they are now."""
        return CompletableFuture.completed(self._handle.accumulators())

    def get_progress(self) -> Any:
        """How far the job is: a `tamias.job.handle.Progress` with epochs, records read, checkpoints and restarts.

        Flink has this in its web interface only.
        """
        return self._handle.progress()

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """A future of the job's result; it raises what ended the job."""
        return CompletableFuture(self._handle.result())

    def __repr__(self) -> str:
        return f"JobClient({self._handle.job_id})"
