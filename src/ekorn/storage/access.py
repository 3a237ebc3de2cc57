"""The protocol by which ekorn uses a storage library. The adapters are `arrow_access.py` and `fsspec_access.py`.

An adapter takes paths in the form of its library and raises the errors of its library. Only the adapter knows these
errors, so the adapter decides which of them are final (`is_final`).
"""

from __future__ import annotations

from typing import BinaryIO, NamedTuple, Protocol

__all__ = ["Access", "FileEntry", "OpenedDirectory"]


class FileEntry(NamedTuple):
    """One file of a recursive listing; the path is relative to the directory that was listed."""

    path: str
    size_bytes: int


class Access(Protocol):
    """One storage, reached through one library."""

    whole_puts: bool  # whether an object appears only when its put is complete

    def get(self, path: str) -> bytes:
        """Return the whole object.

        Raises:
            FileNotFoundError: There is no such object.
        """

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading; the stream can seek.

        Raises:
            FileNotFoundError: There is no such file.
        """

    def put(self, path: str, data: bytes) -> None:
        """Create or replace an object."""

    def open_output(self, path: str) -> BinaryIO:
        """Create a file to write; it exists when the stream is closed. The stream cannot seek."""

    def copy(self, source: str, target: str) -> None:
        """Copy a file within the storage. Called only if `whole_puts` is True: the copy appears when it is complete."""

    def move(self, source: str, target: str) -> None:
        """Rename a file over the target. Called only if `whole_puts` is False."""

    def size(self, path: str) -> int | None:
        """Return the size of a file in bytes, or None if there is no such file."""

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory at the path."""

    def names(self, path: str) -> list[str]:
        """Return the names directly in a directory; empty for a missing directory."""

    def files_below(self, path: str, *, recursive: bool) -> list[FileEntry]:
        """Return the files of a directory, with those of its subdirectories if `recursive`; empty for a missing one."""

    def download(self, path: str, target: str) -> None:
        """Copy a file, or a directory with its content, to a local path."""

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            FileNotFoundError: There is no such file.
        """

    def remove_tree(self, path: str) -> None:
        """Remove a directory with its content.

        Raises:
            FileNotFoundError: There is no such directory.
        """

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents."""

    def is_final(self, error: Exception) -> bool:
        """Return whether the same call would raise the same error again a moment later."""

    def to_url(self, path: str) -> str:
        """Return a path as it is written in a URL for this library."""

    def from_url(self, url_path: str) -> str:
        """Return the path that `to_url` was given."""


class OpenedDirectory(NamedTuple):
    """A directory on a storage: the access to the storage, and the path of the directory in the library's form."""

    access: Access
    path: str
