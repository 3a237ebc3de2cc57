"""Recognises a job that fails repeatedly in the same way, and says whether the program or the machine is at fault."""

from __future__ import annotations

from ekorn.errors import SlotMemoryError, UserFunctionError

__all__ = ["RepeatedFailures"]

_CERTAIN = 3  # after so many failures of one kind in a row, chance is no explanation


class RepeatedFailures:
    """Counts failures in a row of one kind.

    Two exceptions of the program are of one kind if class, operator and line of the program are the same, whatever the
    record and the message. Two slots that exceed one setting of memory fail in one way, whatever they used. Other
    failures are of one kind if class and message are the same. The third failure of a kind gets the advice in full,
    later ones get it in short.

    >>> failures = RepeatedFailures()
    >>> failures.advice_after(ValueError("no price"))
    ''
    >>> failures.advice_after(ValueError("no price"))
    '; the same failure ended 2 attempts in a row'
    """

    def __init__(self) -> None:
        self._last: tuple[str | None, ...] | None = None
        self._count = 0

    def advice_after(self, error: BaseException) -> str:
        """Return what to add to the log line of a failure: nothing, unless the failure is like the one before."""
        kind = _kind(error)
        self._count = self._count + 1 if kind == self._last else 1
        self._last = kind
        if self._count == 1:
            return ""
        said = f"; the same failure ended {self._count} attempts in a row"
        if self._count < _CERTAIN:
            return said
        return said + (_fault(error) if self._count == _CERTAIN else _fault_in_short(error))


def _kind(error: BaseException) -> tuple[str | None, ...]:
    if isinstance(error, SlotMemoryError):
        return (type(error).__name__, error.raised_by)
    if not isinstance(error, UserFunctionError):
        return (type(error).__name__, str(error))
    if error.program_line is not None:
        return (error.original_type, error.operator_name, error.uid, error.program_line)
    return (error.original_type, error.operator_name, error.uid, error.record_preview, error.original_message)


def _fault(error: BaseException) -> str:
    """Return what is at fault for a repeated failure and how to go on; nothing if that is not known."""
    if isinstance(error, SlotMemoryError):
        return (
            f": the memory that a slot may use is too little for this job, so restarts do not help; raise "
            f"{error.raised_by} and start the program again with ekorn run --resume"
        )
    if not isinstance(error, UserFunctionError) or error.program_line is None:
        return ""
    if error.reaches_outside:
        return f": {error.program_line} does not get what it asks for; look at the file, service or memory that it uses"
    skip = "" if error.record_preview is None else "set ekorn.on-record-error to skip to leave such records out; "
    return (
        f": the program is at fault, not the machine, so restarts do not help. The line is {error.program_line}. End "
        "the job (Ctrl-C keeps its checkpoints), correct the function and start the program again with ekorn run "
        f"--resume; {skip}or set restart-strategy.type to none to end the job at its first failure"
    )


def _fault_in_short(error: BaseException) -> str:
    """Return what is at fault, for a failure whose advice the log has already."""
    if isinstance(error, SlotMemoryError):
        return f": restarts do not help until {error.raised_by} is raised"
    if isinstance(error, UserFunctionError) and error.program_line is not None and not error.reaches_outside:
        return f": restarts do not help until {error.program_line} is corrected"
    return _fault(error)
