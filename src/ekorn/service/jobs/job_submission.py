"""The submission of a client, and the record that the service makes from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.job_id import JobID
from ekorn.config.settings.memory_settings import LEAST_SLOT_BYTES
from ekorn.errors import ConfigurationError
from ekorn.service.jobs.job_record import JobRecord

__all__ = ["ABOUT_TO_START", "Submission", "resumes", "script_of", "started_again", "submitted_record"]

ABOUT_TO_START = "it is about to start"


@dataclass(frozen=True)
class Submission:
    """What a client wants to run.

    Attributes:
        program: The id of a program that the service has.
        arguments: The arguments of the script.
        settings: Settings of the job's environments; the program's own win.
        parallelism: The default parallelism, which is also the number of slots that the job may take; None for that
            of the settings.
        slot_memory_bytes: How much memory each slot claims.
        job_id: The id of the job; None for that of the settings, or a new one.
        submission_id: The client's id of this request. A second request with the same id starts nothing: the client
            sent it again because it did not get the answer.
    """

    program: str
    arguments: Sequence[str] = ()
    settings: Mapping[str, str] | None = None
    parallelism: int | None = None
    slot_memory_bytes: int = 0
    job_id: str | None = None
    submission_id: str = ""


def submitted_record(wanted: Submission, now_ms: int) -> JobRecord:
    """Return the record of a job that waits for its start.

    Raises:
        ConfigurationError: A value is not one that a job can have.
    """
    settings = {str(key): str(value) for key, value in (wanted.settings or {}).items()}
    slots = _slots_of(wanted, settings)
    if wanted.slot_memory_bytes < 0 or 0 < wanted.slot_memory_bytes < LEAST_SLOT_BYTES:
        raise ConfigurationError(
            f"the memory of a slot is {wanted.slot_memory_bytes} bytes; it must be 0 (no claim and no limit), or at "
            f"least {LEAST_SLOT_BYTES}, which a slot needs to start"
        )
    job_id = _checked_id(wanted.job_id or settings.get(options.JOB_ID.key))
    script = script_of(wanted.program)
    settings |= {
        options.PARALLELISM.key: str(slots),
        options.MOST_SLOTS.key: str(slots),
        options.JOB_ID.key: job_id,
    }
    if wanted.slot_memory_bytes:
        settings |= {
            options.MEMORY_PROCESS_SIZE.key: f"{wanted.slot_memory_bytes} b",
            options.TASK_SLOTS.key: "1",  # a slot gets all that it claims
        }
    return JobRecord(
        job_id=job_id,
        name=script.removesuffix(".py"),
        program=wanted.program,
        script=script,
        arguments=tuple(wanted.arguments),
        settings=settings,
        slots=slots,
        slot_memory_bytes=wanted.slot_memory_bytes,
        submitted_ms=now_ms,
        submission_id=wanted.submission_id,
        why=ABOUT_TO_START,
    )


def script_of(program: str) -> str:
    """Return the name of the script in a program. The id of the program ends with it, after the digest."""
    return program[65:].removesuffix(".zip")


def resumes(wanted: Submission) -> bool:
    """Return whether a client wants to continue an earlier job without naming it.

    Raises:
        ConfigurationError: The setting is neither true nor false.
    """
    settings = dict(wanted.settings or {})
    is_named = wanted.job_id is not None or options.JOB_ID.key in settings
    return not is_named and options.RESUME.read(Configuration.from_dict(settings))


def _slots_of(wanted: Submission, settings: Mapping[str, str]) -> int:
    given = wanted.parallelism if wanted.parallelism is not None else settings.get(options.PARALLELISM.key, "1")
    try:
        slots = int(given)
    except ValueError:
        slots = 0
    if slots < 1:
        raise ConfigurationError(f"the parallelism is {given!r}; it must be at least 1")
    return slots


def _checked_id(given: str | None) -> str:
    try:
        return str(JobID.generate() if given is None else JobID(given))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


# These settings belong to one start of a program; the new job gets its own.
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
        submission_id: The client's id of its request.
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
