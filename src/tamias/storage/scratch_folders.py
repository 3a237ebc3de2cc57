"""Folders for working state on local disk, and the removal of folders that killed processes left behind.

A process holds a lock on `<folder>.lock` for as long as it uses the folder. The operating system releases the lock when
the process ends, also when the process is killed. Before a process creates a folder it removes the folders beside it
that no process has locked. Containers that share a disk see the same locks, but not the same process ids.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile

try:
    import fcntl
except ImportError:  # on Windows, where the folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

_PREFIX = "tamias-state-"
_LOCK = ".lock"


class LocalFolder:
    """A folder of this process: removed by `close`, or by another process once this process is gone."""

    def __init__(self, directory: str) -> None:
        """Create a folder in a directory; the directory is created if it is missing.

        Raises:
            OSError: The folder cannot be created.
        """
        os.makedirs(directory, exist_ok=True)
        _remove_abandoned(directory)
        self.path, self._lock = _claim(directory)

    def close(self) -> None:
        """Remove the folder and release its lock."""
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
        os.close(lock)  # another process removed it as abandoned before it was locked


def _hold(lock: int, path: str) -> bool:
    """Lock an open file; return False if another process has locked it, or the path now leads to another file."""
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
            continue  # removed in the meantime, or owned by another user
        try:
            if _hold(lock, path):
                shutil.rmtree(path.removesuffix(_LOCK), ignore_errors=True)
                os.unlink(path)
        except OSError:
            continue  # the folder cannot be removed now; the next process tries again
        finally:
            os.close(lock)
