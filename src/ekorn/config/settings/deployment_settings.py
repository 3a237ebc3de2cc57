"""The settings of where a job runs and how it is reached: connections, queryable state and Python dependencies."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ekorn.config import options
from ekorn.config.settings.fields import filled_by
from ekorn.errors import ConfigurationError

__all__ = ["LinkSettings", "PythonArchive", "PythonDependencies", "QueryableSettings"]


@dataclass(frozen=True)
class LinkSettings:
    """Which connections of driver, slots and Spark's tasks are encrypted, and with which certificate.

    Attributes:
        encryption: `auto` encrypts connections that can leave the machine, `required` every TCP connection.
        certificate_file: A PEM file with certificate and private key; None: the driver makes a certificate for the job.
    """

    encryption: Literal["auto", "required", "off"] = filled_by(options.LINK_ENCRYPTION)
    certificate_file: str | None = filled_by(options.LINK_CERTIFICATE_FILE)


def _ip_address(host: str) -> str:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ConfigurationError(f"{options.QUERYABLE_STATE_HOST.key} is {host!r}; give an IP address") from None
    return host


@dataclass(frozen=True)
class QueryableSettings:
    """Whether and where the driver answers queries of state.

    Attributes:
        enabled: Whether the driver answers queries.
        host: The IP address that the driver listens on.
        ports: The ports to try, in this order; 0 is any free one.
        token_file: The file with the token of clients; None: the driver makes a token.
        timeout_ms: How long a query waits for user code.
    """

    enabled: bool = filled_by(options.QUERYABLE_STATE)
    host: str = filled_by(options.QUERYABLE_STATE_HOST, by=_ip_address)
    ports: tuple[int, ...] = filled_by(options.QUERYABLE_STATE_PORTS)
    token_file: str | None = filled_by(options.QUERYABLE_STATE_TOKEN_FILE)
    timeout_ms: int = filled_by(options.QUERYABLE_STATE_TIMEOUT)


@dataclass(frozen=True)
class PythonArchive:
    """An archive that is unpacked into the slots' working directory.

    Attributes:
        path: The path of the archive.
        target_dir: The folder to unpack it to, below the working directory; None takes the archive's file name.
    """

    path: str
    target_dir: str | None = None


def _archives(entries: Iterable[str]) -> tuple[PythonArchive, ...]:
    parted = (entry.partition("#") for entry in entries)
    return tuple(PythonArchive(path, target or None) for path, _, target in parted)


def _requirements_file(entry: str | None) -> str | None:
    return (entry or "").partition("#")[0] or None


def _requirements_folder(entry: str | None) -> str | None:
    return (entry or "").partition("#")[2] or None


@dataclass(frozen=True)
class PythonDependencies:
    """The dependencies of a job's slots beside the program itself.

    `engine/slots/interpreter.py` unpacks and installs them on the driver's machine.

    Attributes:
        files: Entries of the import path: a .py file, a folder, a zip.
        archives: Archives to unpack.
        executable: The interpreter that runs the slots; None takes the driver's.
        requirements_file: A requirements.txt whose packages are installed for the slots.
        requirements_cache_dir: A folder with the packages, for machines that cannot reach an index.
    """

    files: tuple[str, ...] = filled_by(options.PYTHON_FILES)
    archives: tuple[PythonArchive, ...] = filled_by(options.PYTHON_ARCHIVES, by=_archives)
    executable: str | None = filled_by(options.PYTHON_EXECUTABLE)
    requirements_file: str | None = filled_by(options.PYTHON_REQUIREMENTS, by=_requirements_file)
    requirements_cache_dir: str | None = filled_by(options.PYTHON_REQUIREMENTS, by=_requirements_folder)
