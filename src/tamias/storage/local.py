"""A directory of this machine, or of a mounted file system, as a store."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from pathlib import Path

from tamias.errors import ConfigurationError
from tamias.faults import point
from tamias.storage.locations import check_path

__all__ = ["LocalFiles"]


class LocalFiles:
    """A directory of this machine, or of a mounted file system.

    Args:
        root: The directory.
        write_buffer: How many bytes are handed over to the file system at once; None for a whole file.
    """

    def __init__(self, root: str | Path, *, write_buffer: int | None = None) -> None:
        self._root = os.path.abspath(root)
        self._write_buffer = write_buffer
        self._links = True

    @property
    def url(self) -> str:
        return self._root

    @property
    def address(self) -> str:
        return self._root

    @property
    def exclusive(self) -> bool:
        return self._links

    @property
    def in_process(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"LocalFiles({self._root!r})"

    def read(self, path: str) -> bytes:
        with open(self._locate(path), "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        self._create(self._locate_new(path), data)

    def publish(self, path: str, data: bytes) -> None:
        target = self._locate_new(path)
        draft = self._draft(target, data)
        try:
            point("publish")
            # A rename would replace what another writer published in the meantime; a link never does.
            os.link(draft, target)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            # This file system has no hard links. The check and the rename are not one step here, which leaves a
            # window for two drivers on one job; ownership closes it (checkpoint/ownership.py).
            self._links = False
            if os.path.lexists(target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
            os.rename(draft, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
        _sync_directory(os.path.dirname(target))

    def replace(self, path: str, data: bytes) -> None:
        target = self._locate_new(path)
        draft = self._draft(target, data)
        try:
            os.replace(draft, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
        _sync_directory(os.path.dirname(target))

    def exists(self, path: str) -> bool:
        return os.path.exists(self._locate(path))

    def size(self, path: str) -> int:
        found = os.stat(self._locate(path))
        if not stat.S_ISREG(found.st_mode):
            raise FileNotFoundError(errno.ENOENT, "not a file", self._join(path))
        return found.st_size

    def list(self, directory: str = "") -> list[str]:
        try:
            return sorted(os.listdir(self._locate(directory) if directory else self._root))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def delete(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._locate(path, follow_last=False))

    def delete_tree(self, path: str) -> None:
        target = self._locate(path, follow_last=False)
        if os.path.islink(target):
            os.unlink(target)  # what it points to is not ours to delete
        elif os.path.lexists(target):
            shutil.rmtree(target)

    def make_dirs(self, path: str) -> None:
        _make_directories(self._locate(path))

    def below(self, path: str) -> LocalFiles:
        return LocalFiles(self._locate(path), write_buffer=self._write_buffer)

    def _join(self, path: str) -> str:
        return os.path.join(self._root, *check_path(path))

    def _locate(self, path: str, *, follow_last: bool = True) -> str:
        """The absolute path, refused when a symbolic link on the way leads out of the root."""
        target = self._join(path)
        root = os.path.realpath(self._root)
        real = os.path.realpath(target if follow_last else os.path.dirname(target))
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise ConfigurationError(f"{target!r} leads out of {self._root!r}: symbolic links to outside are refused")
        return target

    def _locate_new(self, path: str) -> str:
        target = self._locate(path)
        _make_directories(os.path.dirname(target))
        return target

    def _draft(self, target: str, data: bytes) -> str:
        draft = f"{target}.draft-{secrets.token_hex(8)}"
        self._create(draft, data)
        return draft

    def _create(self, target: str, data: bytes) -> None:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                view, piece = memoryview(data), self._write_buffer or len(data)
                while view:
                    view = view[file.write(view[:piece]) :]
                os.fsync(file.fileno())
        except BaseException:
            # A full disk must not be kept full by what could not be finished.
            with contextlib.suppress(OSError):
                os.unlink(target)
            raise
        _sync_directory(os.path.dirname(target))


def _make_directories(path: str) -> None:
    """Create directories, and make their names durable: a synced file in a lost directory is lost."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        parent = os.path.dirname(path)
        if parent == path:
            break
        path = parent
    for directory in reversed(missing):
        os.makedirs(directory, exist_ok=True)
        _sync_directory(os.path.dirname(directory))


def _sync_directory(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return  # a directory we may write to but not open; its entries are as durable as its file system makes them
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):  # not offered by this file system
            raise
    finally:
        os.close(descriptor)
