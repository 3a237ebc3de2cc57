"""Gives every job of a program that a service runs an id of its own.

The service knows a program by the id of its first job. The ids of further jobs follow from it, so that a program that
is run again finds their checkpoints.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace

from ekorn.config import options
from ekorn.config.job_id import JobID
from ekorn.config.settings.job_settings import JobSettings
from ekorn.errors import ConfigurationError

__all__ = ["numbered"]

_executions = itertools.count(1)


def numbered(settings: JobSettings) -> JobSettings:
    """Return the settings of a job with its own id, if a service runs the program; else unchanged.

    Raises:
        ConfigurationError: The program may run one job only.
    """
    if settings.executions is None:
        return settings
    number = next(_executions)
    if number == 1:
        return settings
    if settings.executions == "one":
        raise ConfigurationError(
            "the program calls execute() a second time; a service with standbys runs programs with one job, since a "
            "program that is started again would repeat the jobs that have ended: submit a program for each job "
            f"(high-availability.type; {options.EXECUTIONS.key})"
        )
    return replace(settings, job_id=further_id(settings.job_id, number))


def further_id(first: JobID, number: int) -> JobID:
    """Return the id of a further job of a program.

    >>> str(further_id(JobID("0" * 32), 2))
    'edd378b96da97a88133dcefd836f2267'
    """
    return JobID(hashlib.sha256(f"{first}/{number}".encode()).hexdigest()[:32])
