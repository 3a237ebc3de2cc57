"""The folder of a service: it allows one service at a time, and tells clients where the service is."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import IO

from ekorn.errors import ConfigurationError
from ekorn.service.jobs.job_store import write_private
from ekorn.storage.private_folder import PrivateFolder
from ekorn.web.serving import Serving

__all__ = ["LOCK_FILE", "RUNNING_FILE", "TOKEN_FILE", "ServiceFolder", "is_locked"]

RUNNING_FILE = "service.json"
TOKEN_FILE = "token"
LOCK_FILE = "lock"
_TRIES = 20
_TRY_AGAIN_S = 0.05


class ServiceFolder:
    """The folder of the service that runs in this process.

    Raises:
        ConfigurationError: Another service has the folder.
        UnsafeFolderError: Another user owns the folder, or may enter it.
    """

    def __init__(self, folder: str) -> None:
        with PrivateFolder.opened(folder):
            pass
        self.path = Path(folder)
        self._lock = _locked(self.path)

    @property
    def token_file(self) -> Path:
        """The file with the token of the REST API, unless the settings name one."""
        return self.path / TOKEN_FILE

    def announce(self, serving: Serving, certificate_file: str | None) -> None:
        """Write down where the service is found."""
        running = {"pid": os.getpid(), "address": serving.address, "token_file": serving.token_file}
        running["local_address"] = serving.local_address  # does not leave the machine if the server speaks plain HTTP
        running["certificate_file"] = certificate_file
        write_private(self.path / RUNNING_FILE, json.dumps(running).encode())

    def close(self) -> None:
        """Release the folder for the next service."""
        (self.path / RUNNING_FILE).unlink(missing_ok=True)
        self._lock.close()


def _locked(folder: Path) -> IO[bytes]:
    lock = open(os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "rb+")  # noqa: SIM115
    for _ in range(_TRIES):  # a command that looks for the service holds the lock briefly
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError:
            time.sleep(_TRY_AGAIN_S)
    lock.close()
    raise ConfigurationError(f"a service is already running in {str(folder)!r} (ekorn.service.dir)")


def is_locked(folder: Path) -> bool:
    """Return whether a service runs in a folder. The system releases the lock of a service that is killed.

    Raises:
        FileNotFoundError: None ever ran there.
    """
    with open(folder / LOCK_FILE, "rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
