"""The two exceptions that unwind an attempt of a job before its input ends."""

from __future__ import annotations

from ekorn.driver.job_requests import JobRequests
from ekorn.engine.protocol import Failure

__all__ = ["AttemptFailed", "Cancelled", "check_cancelled", "raise_failure"]


class Cancelled(Exception):
    """The job was cancelled."""


class AttemptFailed(Exception):
    """An attempt failed. The restart strategy decides what happens next."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


def check_cancelled(requests: JobRequests) -> None:
    """Raise `Cancelled` if a cancellation of the job was requested."""
    if requests.cancel_requested:
        raise Cancelled


def raise_failure(failure: Failure | None) -> None:
    """Raise what an engine reported, if it reported a failure."""
    if failure is not None:
        raise AttemptFailed(failure)
