"""Settings of file formats that PyFlink takes as a `Configuration` for Hadoop."""

from __future__ import annotations

from typing import Any

from ekorn.config.configuration import Configuration
from ekorn.errors import ConfigurationError

__all__ = ["file_properties"]


def file_properties(taken_by: str, given: Configuration | None, known: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a format: those given, and the defaults of the others.

    Raises:
        ConfigurationError: A setting is given that the format does not know.
    """
    settings = given.to_dict() if given is not None else {}
    unknown = sorted(settings.keys() - known.keys())
    if unknown:
        offered = f"; it knows {', '.join(sorted(known))}" if known else ""
        raise ConfigurationError(f"{taken_by} does not know the setting {unknown[0]!r}{offered}; leave it out")
    return known | settings
