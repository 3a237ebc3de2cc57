"""The settings of the standing service."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ekorn.config import environment_variables
from ekorn.config.configuration import Configuration
from ekorn.config.options import service as options
from ekorn.config.settings.web_settings import WebSettings, web_settings
from ekorn.errors import ConfigurationError

__all__ = ["ClusterSettings", "ServiceSettings", "service_folder", "service_settings"]

_CLUSTER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class ClusterSettings:
    """What services have in common that stand by for each other.

    Attributes:
        directory: The directory that they share.
        cluster_id: The name of their folder in it.
        lease_ms: How long their leader may be silent.
    """

    directory: str
    cluster_id: str = "default"
    lease_ms: int = 15_000


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
        programs_kept: How many programs it keeps that no remembered job needs.
        cluster: The services that it stands by for; None for a service of its own.
        host: The name by which it is reached; None for the address that it listens on.
        configuration: Every key, for people to look at.
    """

    folder: str
    web: WebSettings
    slots: int
    memory_bytes: int | None = None
    bundle_bytes: int = 256 << 20
    jobs_kept: int = 100
    programs_kept: int = 100
    cluster: ClusterSettings | None = None
    host: str | None = None
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
        programs_kept=options.SERVICE_PROGRAMS_KEPT.read(configuration),
        cluster=_cluster(configuration),
        host=options.SERVICE_ADDRESS.read(configuration),
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
            f"it to 'storage', and {options.HA_STORAGE_DIR.key} to a directory that all of them reach"
        )
    if directory is None:
        raise ConfigurationError(f"{key} is 'storage': set {options.HA_STORAGE_DIR.key} to the directory")
    cluster_id = options.HA_CLUSTER_ID.read(configuration)
    if not _CLUSTER_ID.fullmatch(cluster_id):
        raise ConfigurationError(
            f"{options.HA_CLUSTER_ID.key} is {cluster_id!r}; a name has letters, digits, '_', '.' and '-'"
        )
    return ClusterSettings(directory, cluster_id, options.HA_LEASE.read(configuration))


def service_folder(configuration: Configuration) -> str:
    """Return the folder of the user's service."""
    named = options.SERVICE_DIR.read(configuration)
    if named is not None:
        return os.path.abspath(os.path.expanduser(named))
    home = environment_variables.variable(environment_variables.STATE_DIR) or os.path.expanduser("~/.local/state")
    return os.path.join(home, "ekorn")
