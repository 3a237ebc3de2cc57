"""Reports a job's failure to the user."""

from __future__ import annotations

from tamias.errors import JobExecutionError, TamiasError, UserFunctionError

__all__ = ["job_error"]


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
    if isinstance(error, UserFunctionError):
        failed = JobExecutionError.from_user_error(
            job_name, error, log_path=log_path, restarts=restarts, restart_description=refusal
        )
    else:
        failed = JobExecutionError(
            job_name,
            str(error) if isinstance(error, TamiasError) else f"{type(error).__name__}: {error}",
            log_path=log_path,
            restarts=restarts,
            restart_description=refusal,
        )
    failed.cause = error
    return failed
