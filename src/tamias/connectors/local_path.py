"""Paths of files as connectors take them: local, plain or as a file: URL."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from tamias.errors import ConfigurationError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):/")


def local_path(path: str | os.PathLike[str], taken_by: str) -> str:
    """The absolute path of a local file or directory.

    Args:
        path: as the program gave it.
        taken_by: the call it was given to, for errors.

    Raises:
        TypeError: It is not a path.
        ConfigurationError: It is empty, or not on a local file system.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{taken_by} takes a path, got {path!r}")
    text = os.fspath(path)
    if not text:
        raise ConfigurationError(f"{taken_by} takes a path, but it is empty")
    scheme = _SCHEME.match(text)
    if scheme is None:
        return os.path.abspath(text)
    if scheme[1].lower() != "file":
        raise ConfigurationError(
            f"{taken_by} cannot use {text!r}: there is no connection to {scheme[1]!r} file systems; "
            "give a local path or a file:// URL, for instance of a directory where that file system is mounted"
        )
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise ConfigurationError(
            f"{taken_by} cannot use {text!r}: it names the host {parts.netloc!r}; a local path is file:///path"
        )
    # Only what follows the scheme: a '#' or '?' is part of a file's name here.
    return os.path.abspath(unquote(text[scheme.end(1) + 1 :].removeprefix("//").removeprefix(parts.netloc)))
