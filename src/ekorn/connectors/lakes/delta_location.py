"""Where a Delta table lies, for the library deltalake and for the slots that write its files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from ekorn.connectors.files.file_addresses import input_address
from ekorn.connectors.lakes.data_folders import DataFolder, RemoteFolder, SharedFolder
from ekorn.errors import ConfigurationError
from ekorn.storage.locations import options_of, scheme_of, secrets_of, shown

__all__ = ["DeltaLocation", "load_delta"]

_S3 = ("s3", "s3a")


@dataclass(frozen=True)
class DeltaLocation:
    """The address of a table.

    Attributes:
        address: A path, or a URL that may carry credentials and options, as for checkpoints.
    """

    address: str = field(repr=False)

    @classmethod
    def of(cls, table_path: str | os.PathLike[str], taken_by: str) -> DeltaLocation:
        """Return the location that a program gave.

        Raises:
            ConfigurationError: It is neither a path nor a URL of S3.
        """
        address = input_address(table_path, taken_by)
        if scheme_of(address) not in ("", *_S3):
            raise ConfigurationError(
                f"{taken_by} cannot use {shown(address)!r}: give a path, a file:// URL or an s3:// URL"
            )
        return cls(address)

    @property
    def url(self) -> str:
        """The location for deltalake and for people, without credentials."""
        return shown(self.address)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may hold."""
        return secrets_of(self.address)

    @property
    def options(self) -> dict[str, str] | None:
        """What deltalake needs beside the URL. What the address does not say is taken from the environment.

        >>> DeltaLocation("s3://key:s%2Fcret@lake/t?scheme=http&endpoint_override=localhost:9000").options
        ... # doctest: +NORMALIZE_WHITESPACE
        {'AWS_ACCESS_KEY_ID': 'key', 'AWS_SECRET_ACCESS_KEY': 's/cret', 'AWS_ENDPOINT_URL': 'http://localhost:9000',
         'AWS_ALLOW_HTTP': 'true'}
        """
        if scheme_of(self.address) not in _S3:
            return None
        said = options_of(self.address)
        found: dict[str, str] = {}
        user, _, _ = urlsplit(self.address).netloc.rpartition("@")
        if user:
            key, _, secret = user.partition(":")
            found |= {"AWS_ACCESS_KEY_ID": unquote(key), "AWS_SECRET_ACCESS_KEY": unquote(secret)}
        if "region" in said:
            found["AWS_REGION"] = said["region"]
        if "endpoint_override" in said:
            scheme = said.get("scheme", "https")
            found["AWS_ENDPOINT_URL"] = f"{scheme}://{said['endpoint_override']}"
            if scheme == "http":
                found["AWS_ALLOW_HTTP"] = "true"
        return found

    def table(self, version: int | None = None) -> Any:
        """Open the table at a version; None is the newest."""
        return load_delta().DeltaTable(self.url, version=version, storage_options=self.options)

    def folder(self) -> DataFolder:
        """Return the folder of the table for files."""
        return RemoteFolder(self.address) if scheme_of(self.address) else SharedFolder(self.address)


def load_delta() -> Any:
    """Return the package deltalake.

    Raises:
        ConfigurationError: It is not installed.
    """
    try:
        import deltalake
    except ImportError:
        raise ConfigurationError("Delta tables need deltalake, in every process: pip install 'ekorn[delta]'") from None
    return deltalake
