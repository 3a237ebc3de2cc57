"""Starts the program of a job again from a savepoint, as a job of its own."""

from __future__ import annotations

from ekorn.config import options
from ekorn.service.jobs.job_record import JobRecord
from ekorn.service.jobs.job_submission import Submission

__all__ = ["started_again"]

# What belongs to one start of a program: the new job gets its own.
_OF_ONE_START = frozenset(
    option.key
    for option in (
        options.JOB_ID,
        options.WEB_SOCKET,
        options.RESTORE_PATH,
        options.ONLY_CONTINUE,
        options.RESUME,
        options.RESTORE_IGNORE_UNCLAIMED,
        options.RESTORE_CLAIM_MODE,
    )
)


def started_again(
    record: JobRecord,
    savepoint: str,
    parallelism: int | None = None,
    *,
    ignore_unclaimed: bool = False,
    submission_id: str = "",
) -> Submission:
    """Return the submission that runs the program of a job again, with its arguments and settings.

    The job itself is left as it is, also if it still runs. The savepoint stays the user's: it is not claimed.

    Args:
        record: The job.
        savepoint: The savepoint or retained checkpoint to start from.
        parallelism: Another default parallelism; None for that of the job.
        ignore_unclaimed: Whether state that no operator of the program claims is left out.
        submission_id: What the client calls its request.
    """
    settings = {key: value for key, value in record.settings.items() if key not in _OF_ONE_START}
    settings[options.RESTORE_PATH.key] = savepoint
    if ignore_unclaimed:
        settings[options.RESTORE_IGNORE_UNCLAIMED.key] = "true"
    return Submission(
        program=record.program,
        arguments=record.arguments,
        settings=settings,
        parallelism=parallelism,
        slot_memory_bytes=record.slot_memory_bytes,
        submission_id=submission_id,
    )
