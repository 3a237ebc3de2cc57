"""What a job gives to its program: its outcome, the collected records and the accumulators."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from ekorn.driver.job_view import JobView
from ekorn.driver.output.collect_queue import CollectQueue
from ekorn.errors import JobCancelledError
from ekorn.functions.results.job_execution_result import JobExecutionResult

__all__ = ["JobResults"]


class JobResults:
    """The results of one job. The job loop publishes them; any thread reads them or waits for them.

    Args:
        view: The job, for messages about it.

    Attributes:
        collected: The collected records that wait for the program.
    """

    def __init__(self, view: JobView) -> None:
        self.collected = CollectQueue()
        self._view = view
        self._accumulators: dict[str, Any] = {}
        self._ended = threading.Event()
        self._result: JobExecutionResult | None = None
        self._error: BaseException | None = None
        self._after_end: Callable[[], None] = lambda: None

    def wait(self, timeout: float | None = None) -> JobExecutionResult:
        """Wait for the end of the job, and until its last line is shown.

        Raises:
            JobExecutionError: The job failed.
            JobCancelledError: The job was cancelled.
            TimeoutError: The job is still running after `timeout` seconds.
        """
        if not self._ended.wait(timeout):
            raise TimeoutError(f"job {self._view.job_name!r} is still {self._view.status().name} after {timeout} s")
        self._after_end()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return self._result

    def wait_for_end(self, timeout_s: float | None) -> bool:
        """Wait for the end of the job, for any time if the timeout is None; return whether it has come."""
        return self._ended.wait(timeout_s)

    def records(self) -> Iterator[Any]:
        """Yield the records of a collecting job as they come; end with the job, and raise the error it failed with."""
        while (run := self.collected.take()) is not None:
            yield from run.records()
        if self._error is not None and not isinstance(self._error, JobCancelledError):
            raise self._error

    def accumulators(self) -> dict[str, Any]:
        """Return the accumulators' values as of the last epoch."""
        return {name: a.get_local_value() for name, a in self._accumulators.items()}

    def merged_accumulators(self) -> dict[str, Any]:
        """Return the accumulators as of the last epoch, each merged over all subtasks."""
        return dict(self._accumulators)

    def after_end(self, call: Callable[[], None]) -> None:
        """Set what `wait` calls once the job has ended."""
        self._after_end = call

    # ------------------------------------------------------------------------------ for the loop that runs the job

    def set_accumulators(self, merged: dict[str, Any]) -> None:
        """Publish the merged accumulators."""
        self._accumulators = merged

    def end(self, result: JobExecutionResult | None, error: BaseException | None) -> None:
        """Publish the outcome, and let everything go on that waits for it."""
        self._result, self._error = result, error
        self.collected.end()
        self._ended.set()
