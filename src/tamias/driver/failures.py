"""What a failure means: whether trying again may help, and how it is told to the user."""

from __future__ import annotations

from tamias.errors import (
    CorruptFileError,
    Fenced,
    JobExecutionError,
    RestoreError,
    StateMigrationError,
    TamiasError,
    UserFunctionError,
)

__all__ = ["job_error", "may_be_retried"]

_NEVER_RETRIED = {"StateMigrationError", "RestoreError", "InvalidProgramError", "StateNotKeyed", "ConfigurationError"}


def may_be_retried(error: BaseException) -> bool:
    """False for what would only happen again: a mistake in the program, state that does not fit, a lost claim."""
    if isinstance(error, UserFunctionError) and error.original_type in _NEVER_RETRIED:
        return False
    return isinstance(error, CorruptFileError) or not isinstance(error, (RestoreError, StateMigrationError, Fenced))


def job_error(
    job_name: str, error: BaseException, *, log_path: str | None, restarts: int, refusal: str | None
) -> JobExecutionError:
    """How a job's failure reaches the user.

    Args:
        job_name: The job.
        error: What failed it.
        log_path: Where the engine's log lies.
        restarts: How often it was restarted before.
        refusal: Why it was not restarted once more.
    """
    if isinstance(error, UserFunctionError):
        return JobExecutionError.from_user_error(
            job_name, error, log_path=log_path, restarts=restarts, restart_description=refusal
        )
    return JobExecutionError(
        job_name,
        str(error) if isinstance(error, TamiasError) else f"{type(error).__name__}: {error}",
        log_path=log_path,
        restarts=restarts,
        restart_description=refusal,
    )
