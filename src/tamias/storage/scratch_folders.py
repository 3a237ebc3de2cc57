"""Folders for working state on local disk, and what becomes of those whose process was killed.

A process holds a lock on `<folder>.lock` as long as it uses the folder; the system drops the lock with the process,
also when it is killed. Whoever makes a folder first removes those beside it that nobody holds. Locks, unlike process
ids, are the same for all containers that share a disk.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile

try:
    import fcntl
except ImportError:  # not on Windows: there folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

_PREFIX = "tamias-state-"
_LOCK = ".lock"


class LocalFolder:
    """A folder of this process's own; removed when it is closed, or by somebody else when the process is gone."""

    def __init__(self, directory: str) -> None:
        """Make one in a directory, which is made if need be.

        Raises:
            OSError: It cannot be made.
        """
        os.makedirs(directory, exist_ok=True)
        _remove_abandoned(directory)
        self.path, self._lock = _claim(directory)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(self.path + _LOCK)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _claim(directory: str) -> tuple[str, int | None]:
    while True:
        path = tempfile.mktemp(prefix=_PREFIX, dir=directory)
        try:
            lock = os.open(path + _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        except FileExistsError:
            continue
        if _hold(lock, path + _LOCK):
            os.mkdir(path, 0o700)
            return path, lock
        os.close(lock)  # somebody took it for abandoned before it was held


def _hold(lock: int, path: str) -> bool:
    """Lock a file that is open, if nobody else has and it is still the one of that name."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.fstat(lock).st_ino == os.stat(path).st_ino
    except OSError:
        return False


def _remove_abandoned(directory: str) -> None:
    if fcntl is None:
        return
    for name in os.listdir(directory):
        if not (name.startswith(_PREFIX) and name.endswith(_LOCK)):
            continue
        path = os.path.join(directory, name)
        try:
            lock = os.open(path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            continue  # gone meanwhile, or another user's
        try:
            if _hold(lock, path):
                shutil.rmtree(path.removesuffix(_LOCK), ignore_errors=True)
                os.unlink(path)
        except OSError:
            continue  # it cannot be removed; the next one tries again
        finally:
            os.close(lock)
