"""Folders of this user alone, in directories that other users can write to, such as `/tmp`.

Another user can create a folder under a name that can be predicted, or put a link there that leads to files of ours. So
a folder is used only if this user owns it, nobody else may enter it, and it is no link. Everything in it is reached
through the file descriptor of the open folder: nobody can exchange the folder after the check, and no link is followed.

A folder whose name cannot be predicted comes from `storage/scratch_folders.py`.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from ekorn.errors import UnsafeFolderError

__all__ = ["PrivateFolder", "create_private_file"]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # opening a pipe does not wait for its other end


class PrivateFolder:
    """An open folder that this user owns. Names are those of its own entries, never paths.

    Attributes:
        path: The path by which the folder was opened, for messages.
    """

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    @staticmethod
    @contextlib.contextmanager
    def opened(path: str, *, create: bool = True) -> Iterator[PrivateFolder]:
        """Open a folder, and create it, closed to other users, if it is missing.

        Links in the directory above are followed: the user or the administrator chose that directory.

        Raises:
            UnsafeFolderError: Another user owns the folder or may enter it, or it is a link or a file.
            FileNotFoundError: The folder is missing, and `create` is False.
            OSError: The folder cannot be created or opened.
        """
        if create:
            os.makedirs(os.path.dirname(os.path.abspath(path)), mode=0o700, exist_ok=True)
        with _opened(path, path, None, create=create) as folder:
            mode = stat.S_IMODE(os.fstat(folder._fd).st_mode)
            if mode & 0o077:
                raise UnsafeFolderError(path, f"other users can enter it: its mode is {mode:o}")
            yield folder

    @contextlib.contextmanager
    def below(self, name: str, *, create: bool = True) -> Iterator[PrivateFolder]:
        """Open a folder in this one, and create it if it is missing.

        Raises:
            UnsafeFolderError: Another user owns the folder, or it is a link or a file.
            FileNotFoundError: The folder is missing, and `create` is False.
            OSError: The folder cannot be created or opened.
        """
        with _opened(os.path.join(self.path, _plain(name)), name, self._fd, create=create) as folder:
            yield folder

    def names(self) -> list[str]:
        """Return the names of all entries, sorted."""
        return sorted(os.listdir(self._fd))

    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            OSError: The file is missing, is a link, or cannot be read.
        """
        with os.fdopen(os.open(_plain(name), os.O_RDONLY | _FILE, dir_fd=self._fd), "rb") as file:
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        """Create or replace a file.

        Raises:
            OSError: There is a link of this name, or the file cannot be written.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _FILE
        with os.fdopen(os.open(_plain(name), flags, 0o600, dir_fd=self._fd), "wb") as file:
            file.write(data)

    def delete(self, name: str) -> None:
        """Delete a file; a link is deleted itself, not the file to which it leads."""
        os.unlink(_plain(name), dir_fd=self._fd)

    def remove_if_empty(self, name: str) -> None:
        """Remove a folder in this one unless something is in it."""
        with contextlib.suppress(OSError):  # it is not empty, or it was never created
            os.rmdir(_plain(name), dir_fd=self._fd)


def create_private_file(path: str) -> None:
    """Create an empty file that only this user can read, for a writer that would create a file that anyone can read.

    Raises:
        FileExistsError: There is a file or a link of this name already.
        OSError: The file cannot be created.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600))


@contextlib.contextmanager
def _opened(shown: str, name: str, above: int | None, *, create: bool) -> Iterator[PrivateFolder]:
    """Open a folder, relative to the open folder above it if there is one; check that it is this user's."""
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above)
    try:
        fd = os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        raise
    except OSError as error:
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
            raise
        raise UnsafeFolderError(shown, _described(found)) from error
    try:
        found = os.fstat(fd)
        if found.st_uid != os.geteuid():
            raise UnsafeFolderError(shown, _described(found))
        yield PrivateFolder(shown, fd)
    finally:
        os.close(fd)


def _described(found: os.stat_result) -> str:
    if stat.S_ISLNK(found.st_mode):
        return f"it is a link of user {found.st_uid}"
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a folder"
    return f"user {found.st_uid} owns it"


def _plain(name: str) -> str:
    assert name not in ("", ".", "..") and "/" not in name and "\0" not in name, f"{name!r} is not the name of an entry"
    return name
