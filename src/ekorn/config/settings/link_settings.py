"""The settings of the connections between driver, slots and Spark's tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ekorn.config import options
from ekorn.config.configuration import Configuration

__all__ = ["LinkSettings", "link_settings"]


@dataclass(frozen=True)
class LinkSettings:
    """Which connections are encrypted, and with which certificate.

    Attributes:
        encryption: `auto` encrypts connections that can leave the machine, `required` every TCP connection.
        certificate_file: A PEM file with certificate and private key; None: the driver makes a certificate for the job.
    """

    encryption: Literal["auto", "required", "off"] = "auto"
    certificate_file: str | None = None


def link_settings(configuration: Configuration) -> LinkSettings:
    """Read the settings of connections from a configuration."""
    return LinkSettings(
        encryption=options.LINK_ENCRYPTION.read(configuration),
        certificate_file=options.LINK_CERTIFICATE_FILE.read(configuration),
    )
