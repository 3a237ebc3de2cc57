"""Reads a file that holds a secret, and refuses a file that another user owns or can read."""

from __future__ import annotations

import os
import stat

from ekorn.errors import ConfigurationError

__all__ = ["read_key_file"]


def read_key_file(path: str, option: str) -> bytes:
    """Return the content of a key file.

    Args:
        path: The file.
        option: The key of the option that names the file, for error messages.

    Raises:
        ConfigurationError: The file cannot be read, belongs to another user, or is open to other users.
    """
    prefix = f"{option}: {path!r}"
    try:
        # The checks are made on the open file, so that nobody can put another file in its place between two steps.
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ConfigurationError(f"{prefix} is not a regular file")
            if found.st_uid not in (os.geteuid(), 0):
                raise ConfigurationError(f"{prefix} belongs to user {found.st_uid}; give a file of this user")
            if found.st_mode & 0o077:
                mode = stat.S_IMODE(found.st_mode)
                raise ConfigurationError(f"{prefix} is open to other users (mode {mode:04o}); run chmod 600 on it")
            return file.read()
    except OSError as error:
        raise ConfigurationError(f"{prefix} cannot be read: {error.strerror}; give a readable key file") from error
