"""The folder where processes of one user find the user's jobs on this machine: sockets and tokens."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ekorn.errors import ConfigurationError, UnsafeFolderError
from ekorn.storage.private_folder import PrivateFolder

__all__ = ["runtime_folder"]


def runtime_folder() -> Path:
    """Return the folder with the sockets of this user's jobs; create it, closed to other users, if need be.

    The folder is `EKORN_RUNTIME_DIR`, else a folder `ekorn` below `XDG_RUNTIME_DIR`, else one in the temporary
    directory.

    Raises:
        ConfigurationError: Another user owns the folder, or may enter it.
    """
    given, session = os.environ.get("EKORN_RUNTIME_DIR"), os.environ.get("XDG_RUNTIME_DIR")
    if given:
        folder = Path(given)
    elif session and os.path.isdir(session):
        folder = Path(session) / "ekorn"
    else:
        folder = Path(tempfile.gettempdir()) / f"ekorn-{os.getuid()}"
    try:
        with PrivateFolder.opened(str(folder)):
            return folder
    except UnsafeFolderError as error:
        raise ConfigurationError(
            f"there is no safe folder for the sockets of jobs (EKORN_RUNTIME_DIR): {error}"
        ) from error
