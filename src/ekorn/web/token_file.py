"""The file with the token of a web server: made once, readable by its owner only."""

from __future__ import annotations

import os
import secrets

from ekorn.errors import ConfigurationError
from ekorn.storage.key_file import read_key_file

__all__ = ["read_token", "token_in"]

_OPTION = "ekorn.web.token-file"
_LEAST = 16  # characters


def read_token(path: str) -> bytes:
    """Return the token in a file.

    Raises:
        ConfigurationError: The file is missing or open to other users, or holds no token.
    """
    token = read_key_file(path, _OPTION).strip()
    if len(token) < _LEAST or not token.isascii() or b"\n" in token:
        raise ConfigurationError(
            f"{_OPTION}: {path!r} does not contain a token: one line of at least {_LEAST} ASCII characters is needed"
        )
    return token


def token_in(path: str) -> bytes:
    """Return the token in a file; make the file, with a new token, if it is missing.

    Raises:
        ConfigurationError: The file is open to other users, or holds no token.
        OSError: The file cannot be made.
    """
    if not os.path.exists(path):
        # The file appears with its content: a second process that starts now reads the same token or makes the file.
        fresh = f"{path}.{os.getpid()}-{secrets.token_hex(4)}"
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass  # another process was faster, and its token counts
        finally:
            os.unlink(fresh)
    return read_token(path)
