"""The settings of the standing service."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ekorn.config import environment_variables
from ekorn.config.configuration import Configuration
from ekorn.config.options import memory
from ekorn.config.options import service as options
from ekorn.config.settings.fields import filled_by, read_settings
from ekorn.config.settings.web_settings import WebSettings, web_settings
from ekorn.errors import ConfigurationError

__all__ = ["ClusterSettings", "ServiceSettings", "service_folder", "service_settings"]

_CLUSTER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def _cluster_id(given: str) -> str:
    if not _CLUSTER_ID.fullmatch(given):
        raise ConfigurationError(
            f"{options.HA_CLUSTER_ID.key} is {given!r}; a name may contain letters, digits, '_', '.' and '-'"
        )
    return given


@dataclass(frozen=True)
class ClusterSettings:
    """The settings that services share which stand by for each other.

    Attributes:
        directory: The directory that the services share.
        cluster_id: The name of their folder in it.
        lease_ms: How long their leader may be silent.
    """

    directory: str
    cluster_id: str = filled_by(options.HA_CLUSTER_ID, by=_cluster_id)
    lease_ms: int = filled_by(options.HA_LEASE)


@dataclass(frozen=True)
class ServiceSettings:
    """The settings of one service.

    Attributes:
        folder: The folder of the service.
        web: The settings of its web server.
        slots: How many slots its jobs have together.
        memory_bytes: How much memory the slots may claim together; None for any.
        bundle_bytes: The size of the largest program that it accepts.
        jobs_kept: How many ended jobs it remembers.
        programs_kept: How many programs it keeps that no remembered job needs.
        upgrade_restarts: How often an upgraded job may restart before its first checkpoint is complete.
        upgrade_time_ms: How long the first checkpoint of an upgraded job may take.
        cluster: The services that stand by for it; None for a service of its own.
        host: The name by which clients reach it; None for the address that it listens on.
        configuration: Every key, for people to look at.
    """

    folder: str
    web: WebSettings
    slots: int
    memory_bytes: int | None = filled_by(memory.MEMORY_PROCESS_SIZE)
    bundle_bytes: int = filled_by(options.SERVICE_BUNDLE_BYTES)
    jobs_kept: int = filled_by(options.SERVICE_JOBS_KEPT)
    programs_kept: int = filled_by(options.SERVICE_PROGRAMS_KEPT)
    upgrade_restarts: int = filled_by(options.SERVICE_UPGRADE_RESTARTS)
    upgrade_time_ms: int = filled_by(options.SERVICE_UPGRADE_TIME)
    cluster: ClusterSettings | None = None
    host: str | None = filled_by(options.SERVICE_ADDRESS)
    configuration: Mapping[str, str] = field(default_factory=dict)


def service_settings(configuration: Configuration) -> ServiceSettings:
    """Read the settings of the service.

    Raises:
        ConfigurationError: A value cannot be read.
    """
    return read_settings(
        ServiceSettings,
        configuration,
        folder=service_folder(configuration),
        web=web_settings(configuration, options.SERVICE_PORT.read(configuration)),
        slots=memory.TASK_SLOTS.read(configuration) or os.cpu_count() or 1,
        cluster=_cluster(configuration),
        configuration=configuration.to_dict(),
    )


def _cluster(configuration: Configuration) -> ClusterSettings | None:
    kind, key = options.HA_TYPE.read(configuration), options.HA_TYPE.key
    directory = options.HA_STORAGE_DIR.read(configuration)
    if kind == "none":
        return None
    if kind != "storage":
        raise ConfigurationError(
            f"{key} is {kind!r}: services of Ekorn need neither ZooKeeper nor Kubernetes to choose their leader; set "
            f"it to 'storage', and {options.HA_STORAGE_DIR.key} to a directory that all of them can reach"
        )
    if directory is None:
        raise ConfigurationError(f"{key} is 'storage': set {options.HA_STORAGE_DIR.key} to the shared directory")
    return read_settings(ClusterSettings, configuration, directory=directory)


def service_folder(configuration: Configuration) -> str:
    """Return the folder of the user's service."""
    named = options.SERVICE_DIR.read(configuration)
    if named is not None:
        return os.path.abspath(os.path.expanduser(named))
    home = environment_variables.variable(environment_variables.STATE_DIR) or os.path.expanduser("~/.local/state")
    return os.path.join(home, "ekorn")
