"""Reports a job's failure to the user."""

from __future__ import annotations

import linecache
import re

from ekorn.errors import (
    EkornError,
    JobExecutionError,
    PendingFileLost,
    RestoreError,
    StateMigrationError,
    UserFunctionError,
)
from ekorn.storage.long_texts import cut_texts

__all__ = ["job_error", "keeps_checkpoints", "text_of"]


def job_error(
    job_name: str, error: BaseException, *, log_path: str | None, restarts: int, refusal: str | None
) -> JobExecutionError:
    """Return the error that the user sees.

    Args:
        job_name: The job.
        error: The failure of the last attempt.
        log_path: The path of the engine's log.
        restarts: How often the job was restarted before.
        refusal: Why the restart strategy refused another restart.
    """
    if not restarts and isinstance(error, UserFunctionError) and not error.reaches_outside:
        refusal = None  # a restart would meet the same exception, so the refusal of one is no help to the user
    if isinstance(error, UserFunctionError):
        failed = JobExecutionError.from_user_error(
            job_name,
            error,
            user_traceback=_with_source_lines(error.traceback_text),
            log_path=log_path,
            restarts=restarts,
            restart_description=refusal,
        )
    else:
        failed = JobExecutionError(
            job_name,
            text_of(error) if isinstance(error, EkornError) else f"{type(error).__name__}: {text_of(error)}",
            log_path=log_path,
            restarts=restarts,
            restart_description=refusal,
        )
    failed.cause = error
    return failed


def text_of(error: BaseException) -> str:
    """Return the text of a failure, cut if it is long. Every text of a failure in the driver is made here."""
    if isinstance(error, UserFunctionError):
        return str(error)  # it was cut in the slot
    try:
        return cut_texts(str(error))[0]
    except Exception:  # a broken __str__ must not hide the failure
        return type(error).__name__


def keeps_checkpoints(error: BaseException) -> bool:
    """Return whether the checkpoints of a job that an error ended are kept, whatever their retention.

    They are if they could not be restored, or their output could not be committed: what they hold is nowhere else.
    """
    if isinstance(error, UserFunctionError):
        return error.original_type in _names(*_NOT_TAKEN_OVER)
    return isinstance(error, _NOT_TAKEN_OVER)


_NOT_TAKEN_OVER = (PendingFileLost, RestoreError, StateMigrationError)


def _names(*kinds: type[BaseException]) -> set[str]:
    """Return the names of classes of errors and of all their subclasses."""
    return {kind.__name__ for kind in kinds}.union(*(_names(*kind.__subclasses__()) for kind in kinds))


_FRAME = re.compile(r'( +)File "(.+)", line (\d+), in ')


def _with_source_lines(text: str) -> str:
    """Return a traceback with the source lines that only the driver knows: those of a notebook's cells."""
    lines = text.split("\n")
    shown = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        shown.append(line)
        frame = _FRAME.match(line)
        if frame is not None and not after.startswith(f"{frame[1]}  "):
            source = linecache.getline(frame[2], int(frame[3])).strip()
            shown += [f"{frame[1]}  {source}"] if source else []
    return "\n".join(shown)
