"""Check the paths and URLs that programs give to file sources and file sinks."""

from __future__ import annotations

import os
import re

from ekorn.errors import ConfigurationError
from ekorn.storage.locations import plain, scheme_of, shown
from ekorn.storage.remote_access import need_package_for

__all__ = ["input_address", "local_path"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/")


def input_address(path: str | os.PathLike[str], taken_by: str) -> str:
    """Return the address of a file or directory to read: an absolute local path, or a URL that storage opens.

    Args:
        path: The path or URL that the program gave.
        taken_by: The call that received the path, for error messages.

    Raises:
        TypeError: The argument is not a path.
        ConfigurationError: The text is empty, or has the form of neither a path nor a URL, or the package that opens
            the URL is not installed.
    """
    text = _text_of(path, taken_by)
    if scheme_of(text) in ("", "file"):
        return local_path(text, taken_by)
    need_package_for(text)
    return text


def local_path(path: str | os.PathLike[str], taken_by: str) -> str:
    """Return the absolute path of a local file or directory, given as a path or as a `file:` URL.

    Args:
        path: The path that the program gave.
        taken_by: The call that received the path, for error messages.

    Raises:
        TypeError: The argument is not a path.
        ConfigurationError: The path is empty, or not on a local file system.
    """
    text = _text_of(path, taken_by)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return os.path.abspath(text)
    if scheme[1].lower() != "file":
        raise ConfigurationError(
            f"{taken_by} cannot use {shown(text)!r}: {scheme[1]!r} file systems are not supported; "
            "give a local path or a file:// URL, for instance of a directory where that file system is mounted"
        )
    try:
        return os.path.abspath(plain(text))
    except ConfigurationError as error:
        raise ConfigurationError(f"{taken_by} cannot use the path: {error}") from None


def _text_of(path: str | os.PathLike[str], taken_by: str) -> str:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{taken_by} takes a path, got {path!r}")
    text = os.fspath(path)
    if not text:
        raise ConfigurationError(f"{taken_by} takes a path, but the path is empty")
    return text
