"""Recognises a job that fails with one error again and again, so that its log says so."""

from __future__ import annotations

from ekorn.errors import UserFunctionError

__all__ = ["RepeatedFailures"]


class RepeatedFailures:
    """Counts failures in a row that have the same operator and the same error.

    >>> failures = RepeatedFailures()
    >>> failures.advice_after(ValueError("no price"))
    ''
    >>> failures.advice_after(ValueError("no price"))  # doctest: +ELLIPSIS
    '; the same error ended 2 attempts in a row: a restart does not help ...'
    """

    def __init__(self) -> None:
        self._last: tuple[str, ...] | None = None
        self._count = 0

    def advice_after(self, error: BaseException) -> str:
        """Return what to add to the log line of a failure: nothing, unless the failure repeats the one before."""
        identity = _identity(error)
        self._count = self._count + 1 if identity == self._last else 1
        self._last = identity
        if self._count == 1:
            return ""
        return (
            f"; the same error ended {self._count} attempts in a row: a restart does not help against a record "
            "that the program cannot process. Cancel the job, correct the function and resume from the last "
            "checkpoint, or set ekorn.on-record-error"
        )


def _identity(error: BaseException) -> tuple[str, ...]:
    if isinstance(error, UserFunctionError):
        return (error.operator_name, error.original_type, error.original_message)
    return (type(error).__name__, str(error))
