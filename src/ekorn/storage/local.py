"""`LocalFiles`: a file store in a directory of this machine, or of a mounted file system."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from pathlib import Path

from ekorn.errors import ConfigurationError
from ekorn.faults import point
from ekorn.storage.durable import create_file, make_directory, rename_exclusive, sync_directory
from ekorn.storage.locations import check_path

__all__ = ["LocalFiles"]


class LocalFiles:
    """A file store in a local directory.

    Args:
        root: The directory.
        write_buffer: The largest number of bytes of one write; None writes a file at once.
    """

    def __init__(self, root: str | Path, *, write_buffer: int | None = None) -> None:
        self._root = os.path.abspath(root)
        self._write_buffer = write_buffer
        self._exclusive = True  # until a rename shows that the file system has no hard links

    @property
    def url(self) -> str:
        return self._root

    @property
    def address(self) -> str:
        return self._root

    @property
    def exclusive(self) -> bool:
        return self._exclusive

    @property
    def in_process(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"LocalFiles({self._root!r})"

    def read(self, path: str) -> bytes:
        with open(self._locate(path), "rb") as file:
            return file.read()

    def write(self, path: str, data: bytes) -> None:
        create_file(self._locate_new(path), data, write_bytes=self._write_buffer)

    def publish(self, path: str, data: bytes) -> None:
        target = self._locate_new(path)
        draft = self._draft(target, data)
        try:
            point("publish")
            # Without hard links two drivers of one job could both publish; checkpoint/ownership.py prevents that.
            self._exclusive = rename_exclusive(draft, target) and self._exclusive
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
        sync_directory(os.path.dirname(target))

    def replace(self, path: str, data: bytes) -> None:
        target = self._locate_new(path)
        draft = self._draft(target, data)
        try:
            os.replace(draft, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
        sync_directory(os.path.dirname(target))

    def exists(self, path: str) -> bool:
        try:
            os.stat(self._locate(path))  # `os.path.exists` takes every error for a missing file
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

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
            os.unlink(target)  # the target of the link does not belong to this store
        elif os.path.lexists(target):
            shutil.rmtree(target)

    def make_dirs(self, path: str) -> None:
        make_directory(self._locate(path))

    def below(self, path: str) -> LocalFiles:
        return LocalFiles(self._locate(path), write_buffer=self._write_buffer)

    def _join(self, path: str) -> str:
        return os.path.join(self._root, *check_path(path))

    def _locate(self, path: str, *, follow_last: bool = True) -> str:
        """Return the absolute path; refuse a path whose symbolic links lead out of the root."""
        target = self._join(path)
        root = os.path.realpath(self._root)
        real = os.path.realpath(target if follow_last else os.path.dirname(target))
        if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
            raise ConfigurationError(
                f"{target!r} is outside {self._root!r}: symbolic links that lead outside are refused"
            )
        return target

    def _locate_new(self, path: str) -> str:
        target = self._locate(path)
        make_directory(os.path.dirname(target))
        return target

    def _draft(self, target: str, data: bytes) -> str:
        draft = f"{target}.draft-{secrets.token_hex(8)}"
        create_file(draft, data, write_bytes=self._write_buffer)
        return draft
