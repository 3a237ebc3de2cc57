"""The handle of a submitted job: what is seen of it, what is asked of it, and what it gives."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from ekorn.config.job_id import JobID
from ekorn.driver.checkpoints.savepoint_requests import Then
from ekorn.driver.display.job_progress import JobProgress
from ekorn.driver.job_log import JobLog
from ekorn.driver.job_requests import JobRequests
from ekorn.driver.job_results import JobResults
from ekorn.driver.job_view import JobView
from ekorn.driver.queries.state_reader import QueryAddress
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.results.job_status import JobStatus

__all__ = ["JobHandle"]

_log = logging.getLogger(__name__)


class JobHandle:
    """A submitted job of this process. Thread-safe.

    The parts of the driver take the view, the requests or the results. The methods are those that a program's
    `JobClient` calls, on jobs of this process and on jobs of a service alike.

    Attributes:
        view: What is seen of the job.
        requests: What is asked of it.
        results: What it gives.
        takes_requests_from_outside: Whether other processes of the user may reach the job.
        log: What happens to the job, for those who look later.
    """

    def __init__(self, job_id: JobID, job_name: str) -> None:
        self.view = JobView(job_id, job_name)
        self.requests = JobRequests()
        self.results = JobResults(self.view)
        self.takes_requests_from_outside = False
        self.log = JobLog()
        self._lock = threading.Lock()
        self._at_end: list[Callable[[JobStatus, bool], None]] = []
        self._is_over = False

    @property
    def job_id(self) -> JobID:
        """The id of the job."""
        return self.view.job_id

    @property
    def job_name(self) -> str:
        """The name of the job."""
        return self.view.job_name

    @property
    def queries_at(self) -> QueryAddress | None:
        """Where queries of the job's state are answered; None if they are not."""
        return self.view.queries_at

    def status(self) -> JobStatus:
        """Return the job's current status."""
        return self.view.status()

    def progress(self) -> JobProgress:
        """Return the job's progress as of the last epoch or checkpoint."""
        return self.view.progress()

    def metrics(self) -> dict[str, Any]:
        """Return the metrics as of the last epoch, by name (`JobView.metrics`)."""
        return self.view.metrics()

    def cancel(self) -> None:
        """Cancel the job and return at once. `wait` returns when the job is over."""
        self.requests.cancel()

    def request_savepoint(
        self, directory: str | None = None, *, native: bool = False, then: Then = "go on"
    ) -> Future[str]:
        """Request a savepoint (`JobRequests.request_savepoint`)."""
        return self.requests.request_savepoint(directory, native=native, then=then)

    def request_rescale(self, parallelism: int, directory: str | None = None) -> Future[str]:
        """Request another parallelism (`JobRequests.request_rescale`)."""
        return self.requests.request_rescale(parallelism, directory)

    def wait(self, timeout: float | None = None) -> JobExecutionResult:
        """Wait for the end of the job; raise what ended it (`JobResults.wait`)."""
        return self.results.wait(timeout)

    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators' values as of the last epoch."""
        return self.results.accumulators()

    def __repr__(self) -> str:
        return f"JobHandle({self.job_name!r}, {self.job_id}, {self.status().name})"

    def _repr_html_(self) -> str:
        return self.view._repr_html_()

    # ------------------------------------------------------------------------------------------- the end of the job

    def at_end(self, call: Callable[[JobStatus, bool], None]) -> None:
        """Add what `end` calls before it publishes the end of the job; called at once if the job is over.

        Args:
            call: Takes the final status, and whether a savepoint of the job may exist.
        """
        with self._lock:
            if not self._is_over:
                self._at_end.append(call)
                return
        call(self.status(), self.requests.savepoint_requested)

    def end(self, status: JobStatus, result: JobExecutionResult | None, error: BaseException | None) -> None:
        """Publish the end of the job, and refuse the requests that the loop has not taken. The loop calls it."""
        self._call_at_end(status)
        self.view.end(status)
        self.results.end(result, error)
        with self._lock:
            self._is_over = True
        self._call_at_end(status)  # what was added since
        self.requests.end(status)

    def _call_at_end(self, status: JobStatus) -> None:
        with self._lock:
            calls, self._at_end = self._at_end, []
        for call in calls:
            try:
                call(status, self.requests.savepoint_requested)
            except Exception:  # the job's outcome stands; what could not be released is in the log
                _log.exception("job %s: its background services could not be shut down cleanly", self.job_name)
