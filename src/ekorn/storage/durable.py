"""Local files and directories that survive a crash of the machine, and names that are taken only once."""

from __future__ import annotations

import contextlib
import errno
import os

from ekorn.storage.result_modes import apply_file_mode, apply_folder_mode

__all__ = ["create_file", "make_directory", "rename_exclusive", "sync_directory", "sync_file"]

_NOT_OFFERED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)  # the file system has no fsync for directories
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def create_file(path: str, data: bytes, *, write_bytes: int | None = None) -> None:
    """Create a file in an existing directory and make the file and its name durable.

    A write that fails removes the file again. A crash may leave the file torn.

    Args:
        path: The path of the new file.
        data: The content.
        write_bytes: The largest number of bytes of one write; None writes everything at once.

    Raises:
        FileExistsError: The path exists.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    try:
        with open(descriptor, "wb", buffering=0) as file:
            apply_file_mode(descriptor)
            view, step = memoryview(data), write_bytes or len(data)
            while view:
                view = view[file.write(view[:step]) :]
            os.fsync(file.fileno())
    except BaseException:
        # On a full disk, an unfinished file would keep the disk full.
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    sync_directory(os.path.dirname(path))


def rename_exclusive(source: str, target: str) -> bool:
    """Rename a file unless the target exists. The caller syncs the directory.

    Returns:
        Whether the check for the target and the rename were one step. They are two steps on a file system without
        hard links: of two processes that rename at the same moment, the last one wins there.

    Raises:
        FileExistsError: The target exists. The source stays.
    """
    try:
        # `os.rename` would replace a target that another process created in the meantime; a link never does.
        os.link(source, target)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.rename(source, target)
        return False
    os.unlink(source)
    return True


def make_directory(path: str) -> None:
    """Create a directory and its missing parents, and make their names durable.

    A synced file is lost with its directory if the directory's own name was never synced.
    """
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    for directory in reversed(missing):
        try:
            os.mkdir(directory)
        except FileExistsError:
            if not os.path.isdir(directory):
                raise
        else:
            apply_folder_mode(directory)
        sync_directory(os.path.dirname(directory))


def sync_directory(path: str) -> None:
    """Make the names in a directory durable, if the file system supports it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except PermissionError:
        return  # A directory may be writable but not readable. Its names are as durable as its file system makes them.
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_OFFERED:
            raise
    finally:
        os.close(descriptor)


def sync_file(path: str) -> None:
    """Make the content of an existing file durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
