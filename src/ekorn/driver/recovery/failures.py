"""Reports a job's failure to the user."""

from __future__ import annotations

import linecache
import re

from ekorn.errors import EkornError, JobExecutionError, PendingFileLost, UserFunctionError
from ekorn.storage.long_texts import cut_texts

__all__ = ["is_lost_output", "job_error", "text_of"]


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
        refusal = None  # a restart would meet the same exception, so it is no advice
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


def is_lost_output(error: BaseException) -> bool:
    """Return whether an attempt failed because output that waits for its commit is lost."""
    if isinstance(error, UserFunctionError):
        return error.original_type == PendingFileLost.__name__
    return isinstance(error, PendingFileLost)


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
