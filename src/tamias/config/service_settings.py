"""The settings of the standing service."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from tamias.config import environment_variables
from tamias.config.configuration import Configuration
from tamias.config.options import service as options
from tamias.config.web_settings import WebSettings, web_settings

__all__ = ["ServiceSettings", "service_folder", "service_settings"]


@dataclass(frozen=True)
class ServiceSettings:
    """What the service runs with.

    Attributes:
        folder: The folder of the service.
        web: Where it listens.
        slots: How many slots its jobs have together.
        memory_bytes: How much memory the slots may claim together; None for any.
        bundle_bytes: The largest program that it accepts.
        jobs_kept: How many ended jobs it remembers.
        configuration: Every key, for people to look at.
    """

    folder: str
    web: WebSettings
    slots: int
    memory_bytes: int | None = None
    bundle_bytes: int = 256 << 20
    jobs_kept: int = 100
    configuration: Mapping[str, str] = field(default_factory=dict)


def service_settings(configuration: Configuration) -> ServiceSettings:
    """Read the settings of the service.

    Raises:
        ConfigurationError: A value cannot be read.
    """
    return ServiceSettings(
        folder=service_folder(configuration),
        web=web_settings(configuration, options.SERVICE_PORT.read(configuration)),
        slots=options.SERVICE_SLOTS.read(configuration) or os.cpu_count() or 1,
        memory_bytes=options.SERVICE_MEMORY.read(configuration),
        bundle_bytes=options.SERVICE_BUNDLE_BYTES.read(configuration),
        jobs_kept=options.SERVICE_JOBS_KEPT.read(configuration),
        configuration=configuration.to_dict(),
    )


def service_folder(configuration: Configuration) -> str:
    """Return the folder of the user's service."""
    named = options.SERVICE_DIR.read(configuration)
    if named is not None:
        return os.path.abspath(os.path.expanduser(named))
    home = environment_variables.variable(environment_variables.STATE_DIR) or os.path.expanduser("~/.local/state")
    return os.path.join(home, "tamias")
