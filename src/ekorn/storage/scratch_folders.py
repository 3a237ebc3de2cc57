"""Folders for working state on local disk, and the removal of folders that killed processes left behind.

A process holds a lock on `<folder>.lock` for as long as it uses the folder. The operating system releases the lock when
the process ends, also when the process is killed. Before a process creates a folder it removes the folders beside it
that no process has locked. Containers that share a disk see the same locks, but not the same process ids.

The directory may be one that other users can write to, such as `/tmp`. A folder is removed only if this user owns it
and its lock: another user can create a lock beside a folder of ours, or put a link in place of a folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile

try:
    import fcntl
except ImportError:  # on Windows, where folders of killed processes are not removed
    fcntl = None  # type: ignore[assignment]

_LOCK = ".lock"


class LocalFolder:
    """A folder of this process: removed by `close`, or by another process once this process is gone."""

    def __init__(self, directory: str, prefix: str = "ekorn-state-") -> None:
        """Create a folder in a directory; the directory is created if it is missing.

        Args:
            directory: Where the folder is created, and where abandoned folders are removed.
            prefix: How the names of this kind of folder begin.

        Raises:
            OSError: The folder cannot be created.
        """
        os.makedirs(directory, exist_ok=True)
        _remove_abandoned(directory, prefix)
        self.path, self._lock = _claim(directory, prefix)

    def close(self) -> None:
        """Remove the folder and release its lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.keep()

    def keep(self) -> None:
        """Leave the folder to the user: without its lock file, no process takes it for an abandoned one."""
        with contextlib.suppress(OSError):
            os.unlink(self.path + _LOCK)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _claim(directory: str, prefix: str) -> tuple[str, int | None]:
    while True:
        path = tempfile.mktemp(prefix=prefix, dir=directory)
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


def _remove_abandoned(directory: str, prefix: str) -> None:
    if fcntl is None:
        return
    for name in os.listdir(directory):
        if not (name.startswith(prefix) and name.endswith(_LOCK)):
            continue
        path = os.path.join(directory, name)
        try:
            lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue  # removed in the meantime, a link, or owned by another user
        try:
            if os.fstat(lock).st_uid == os.geteuid() and _hold(lock, path):
                _remove_own(path.removesuffix(_LOCK))
                os.unlink(path)
        except OSError:
            continue  # the folder cannot be removed now; the next process tries again
        finally:
            os.close(lock)


def _remove_own(path: str) -> None:
    """Remove a folder if it is this user's. `rmtree` follows no link, neither below the folder nor in its place."""
    with contextlib.suppress(FileNotFoundError):  # its process was killed before it created the folder
        if os.lstat(path).st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
