"""The name of a job: what the program gives, what the configuration says, or a default."""

from __future__ import annotations

from ekorn.config import options
from ekorn.config.configuration import Configuration

__all__ = ["chosen_job_name"]


def chosen_job_name(given: str | None, configuration: Configuration, default: str) -> str:
    """Return the name of a job, the first that is not empty.

    Raises:
        TypeError: The program gives something else than a string.
        ValueError: The name contains the character NUL, at which some of the programs that show a name cut it off.
    """
    name = given or options.JOB_NAME.read(configuration) or default
    if not isinstance(name, str):
        raise TypeError(f"a job's name is a string, got {name!r}")
    if "\0" in name:
        raise ValueError(f"a job's name cannot contain the character NUL, got {name!r}")
    return name
