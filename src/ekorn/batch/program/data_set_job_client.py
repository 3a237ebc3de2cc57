"""`DataSetJobClient`: a DataSet program that runs on a thread of its own while the main program continues."""

from __future__ import annotations

import atexit
import contextlib
import math
import sys
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

from ekorn.config.job_id import JobID
from ekorn.errors import JobCancelledError, OutputsPartlyVisibleError
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.results.job_status import JobStatus
from ekorn.program.running.completable_future import CompletableFuture

__all__ = ["DataSetJobClient"]

# Cancel again at this interval: a plan is several Spark jobs, and may be about to start the next one.
_CANCEL_AGAIN_S = 0.2
_PATIENCE_S = 30.0  # how long a program that ends waits for its cancelled job


class DataSetJobClient:
    """Watches and controls a program that ``execute_async`` has started. Every method returns at once.

    Args:
        job_id: The job's id.
        job_name: The job's name.
        run: Runs the program to its end; is given an event that is set when the program is cancelled.
        cancel: Cancels what the program does on Spark now.
    """

    def __init__(
        self,
        job_id: str,
        job_name: str,
        run: Callable[[threading.Event], JobExecutionResult],
        cancel: Callable[[], None],
    ) -> None:
        self._job_id = JobID(job_id)
        self._job_name = job_name
        self._run = run
        self._cancel = cancel
        self._is_cancelled = threading.Event()
        self._result: Future[JobExecutionResult] = Future()
        self._result.set_running_or_notify_cancel()  # the job decides when it ends
        self._context = copy_context()  # a test of this thread may run plans in process
        threading.Thread(
            target=copy_context().run, args=(self._run_to_end,), name=f"ekorn-{job_id}", daemon=True
        ).start()
        atexit.register(_end_running, weakref.ref(self))

    def get_job_id(self) -> JobID:
        """Return the job's id."""
        return self._job_id

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return a future of the job's current status."""
        return CompletableFuture.completed(self._status())

    def cancel(self) -> CompletableFuture[None]:
        """Cancel the job: its sinks leave nothing. The future is done when the job has ended.

        A job that is already making its sinks visible continues to its end, and is FINISHED.
        """
        self._is_cancelled.set()
        ended: Future[None] = Future()
        ended.set_running_or_notify_cancel()
        threading.Thread(
            target=self._context.copy().run, args=(self._complete_at_end, ended), name="ekorn-cancel", daemon=True
        ).start()
        return CompletableFuture(ended)

    def get_accumulators(self) -> CompletableFuture[dict[str, Any]]:
        """Return a future of the accumulators' values, which are known when the job has ended."""
        values: Future[dict[str, Any]] = Future()
        values.set_running_or_notify_cancel()

        def take(result: Future[JobExecutionResult]) -> None:
            error = result.exception()
            if error is not None:
                values.set_exception(error)
            else:
                values.set_result(result.result().get_all_accumulator_results())

        self._result.add_done_callback(take)
        return CompletableFuture(values)

    def get_job_execution_result(self) -> CompletableFuture[JobExecutionResult]:
        """Return a future of the job's result. The future raises what ended the job."""
        return CompletableFuture(self._result)

    def end_with_program(self) -> None:
        """Cancel the job if it still runs when the program ends, and say so."""
        if self._result.done():
            return
        print(
            f"ekorn: the program ended while job {self._job_name!r} was running, so the job ends too; to wait for it, "
            "call client.get_job_execution_result().result()",
            file=sys.stderr,
        )
        self._is_cancelled.set()
        # Runs on this thread, because no thread can start at this time.
        self._context.copy().run(self._cancel_until_ended, _PATIENCE_S)

    def __repr__(self) -> str:
        return f"DataSetJobClient({self._job_name!r}, {self._job_id}, {self._status().name})"

    def _status(self) -> JobStatus:
        if not self._result.done():
            return JobStatus.CANCELLING if self._is_cancelled.is_set() else JobStatus.RUNNING
        error = self._result.exception()
        if error is None:
            return JobStatus.FINISHED
        return JobStatus.CANCELED if isinstance(error, JobCancelledError) else JobStatus.FAILED

    def _run_to_end(self) -> None:
        try:
            result = self._run(self._is_cancelled)
        except BaseException as error:
            if self._is_cancelled.is_set() and not isinstance(error, OutputsPartlyVisibleError):
                self._result.set_exception(JobCancelledError(self._job_name))
            else:
                self._result.set_exception(error)
        else:
            self._result.set_result(result)

    def _complete_at_end(self, ended: Future[None]) -> None:
        self._cancel_until_ended()
        ended.set_result(None)

    def _cancel_until_ended(self, patience_s: float = math.inf) -> None:
        done = threading.Event()
        self._result.add_done_callback(lambda _: done.set())
        limit = time.monotonic() + patience_s
        while not done.is_set() and time.monotonic() < limit:
            with contextlib.suppress(Exception):  # the session has ended, and the job with it
                self._cancel()
            done.wait(_CANCEL_AGAIN_S)


def _end_running(reference: weakref.ref[DataSetJobClient]) -> None:
    client = reference()
    if client is not None:
        client.end_with_program()
