"""How a job ended, noted before its checkpoints are deleted.

A service starts a job again whose driver was lost. A driver that is lost between the deletion of the checkpoints and
its last answers has finished the job, and the service could not tell. The service therefore lets its drivers note the
outcome where it looks, before they delete anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ekorn.functions.results.job_status import JobStatus

__all__ = ["JobOutcome", "note_outcome", "note_outcomes_with", "outcomes_are_noted"]


@dataclass(frozen=True)
class JobOutcome:
    """The end of a job.

    Attributes:
        job_id: The id of the job.
        status: The status that it ended with.
        savepoint: The savepoint that the job stopped with; None if it ended in another way.
    """

    job_id: str
    status: JobStatus
    savepoint: str | None


_note: Callable[[JobOutcome], None] | None = None


def note_outcomes_with(note: Callable[[JobOutcome], None] | None) -> None:
    """Set what notes the outcomes of the jobs of this process; None for nothing. It may raise `OSError`."""
    global _note  # noqa: PLW0603 - the process of a driver has one supervisor
    _note = note


def outcomes_are_noted() -> bool:
    """Return whether the outcomes of the jobs of this process are noted."""
    return _note is not None


def note_outcome(outcome: JobOutcome) -> None:
    """Note how a job ended.

    Raises:
        OSError: It could not be noted.
    """
    if _note is not None:
        _note(outcome)
