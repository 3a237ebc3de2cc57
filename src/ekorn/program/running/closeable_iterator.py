"""`CloseableIterator`: the records that `execute_and_collect` brings to the program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ekorn.errors import JobCancelledError, JobExecutionError
from ekorn.program.running.job_client import JobClient

if TYPE_CHECKING:
    from types import TracebackType

    from ekorn.driver.job_handle import JobHandle


class CloseableIterator:
    """Iterates over collected records while the job runs. Closing the iterator stops the job.

    Use it in a ``with`` statement, or call `close`, unless it is read to its end. The error of a failed job is raised
    after the records that were collected before the failure. The job waits when it is far ahead of the program
    (``ekorn.collect.buffer-size``).
    """

    def __init__(self, handle: JobHandle) -> None:
        self._handle = handle
        self._records = iter(handle.results.records())
        self._ended = False

    @property
    def job_client(self) -> JobClient:
        """The client of the job that collects the records."""
        return JobClient(self._handle)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        try:
            return next(self._records)
        except StopIteration:
            self._ended = True
            self._handle.wait()  # raises the error of a failed job
            raise
        except BaseException:
            self.close()
            raise

    def next(self) -> Any:
        """Wait for the next record and return it. Raises `StopIteration` at the end."""
        return next(self)

    def close(self) -> None:
        """Stop the job if it is running. Records that were not read are lost."""
        if not self._ended:
            self._ended = True
            self._handle.cancel()
            with contextlib.suppress(JobCancelledError, JobExecutionError):
                self._handle.wait()  # returns when the job has released everything
            self._handle.results.collected.clear()

    def __repr__(self) -> str:
        handle = self._handle
        waiting = f"{handle.results.collected.count} records wait to be read"
        return f"CloseableIterator({handle.job_name!r}, {handle.status().name}, {waiting})"

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
