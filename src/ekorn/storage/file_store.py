"""The seam to storage: `FileStore`, one directory on some storage, opened by path or URL.

A `FileStore` is rooted in one directory and takes relative paths only, so a path read from a checkpoint cannot name a
file outside the directory. There are two kinds of files: state files, each written once under a name never used before,
and commit points, which appear whole or not at all (`publish`). The content of the files is not known here.

`LocalFiles`, `MemoryFiles` and `RemoteFiles` implement the protocol.
"""

from __future__ import annotations

import re
from typing import Protocol

from ekorn.errors import ConfigurationError
from ekorn.storage.local import LocalFiles
from ekorn.storage.locations import plain, scheme_of, shown
from ekorn.storage.memory import MemoryFiles
from ekorn.storage.remote import open_remote

__all__ = ["FileStore", "open_files"]


class FileStore(Protocol):
    """One directory on some storage. Every method may raise `OSError`; paths are relative, with `/` between parts.

    On an object store a file is an object, `publish` is a put, and a directory is a prefix of names.
    """

    @property
    def url(self) -> str:
        """The directory as shown to people and written to files: without credentials and options."""
        ...

    @property
    def address(self) -> str:
        """The directory in the form that `open_files` takes, for other processes. Never shown."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether `publish` checks the name and takes it in one step, so that one of two writers learns that it lost.

        On an object store without conditional writes these are two steps, and the last of two concurrent writers wins;
        `checkpoint/ownership.py` makes that harmless.
        """
        ...

    @property
    def in_process(self) -> bool:
        """Whether only this process can see the files."""
        ...

    def read(self, path: str) -> bytes:
        """Return the whole file; raise `FileNotFoundError` for a missing one."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create a file under a name never used before and make it durable. A crash may leave the file torn.

        A store that notices a taken name at no cost raises `FileExistsError`.
        """
        ...

    def publish(self, path: str, data: bytes) -> None:
        """Create a file whole or not at all and make it durable; raise `FileExistsError` for a taken name."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Create or replace a file; readers see the old file or the new one, whole."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory at the path."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes; raise `FileNotFoundError` for a missing one."""
        ...

    def list(self, directory: str = "") -> list[str]:
        """Return the sorted names directly in a directory; empty for a missing directory."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is no error."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a directory with its content; a missing one is no error."""
        ...

    def make_dirs(self, path: str) -> None:
        """Create a directory and its missing parents; an existing one is no error."""
        ...

    def below(self, path: str) -> FileStore:
        """Return the store rooted in a directory of this store."""
        ...


def open_files(address: str, *, write_buffer: int | None = None) -> FileStore:
    """Open the store of a directory given as a path or a URL.

    Local paths and `file://` are plain directories. `s3`, `gs`, `hdfs`, `viewfs`, `abfs` and their variants go through
    `pyarrow.fs`, every other scheme through `fsspec` (`pip install "ekorn[fsspec]"`, and the package of the scheme).
    Credentials come from the environment, as for these libraries themselves, or from the URL.

    Args:
        address: The path or URL.
        write_buffer: The largest number of bytes of one write to a local file; None writes a file at once. An object is
            always sent as a whole.

    Raises:
        ConfigurationError: The address cannot be read, its scheme is unknown, or the library for it is not installed.
    """
    if not address:
        raise ConfigurationError("no directory is given: a checkpoint directory is a local path or a URL")
    address = plain(address)
    if scheme_of(address):
        return open_remote(address)
    if address.startswith("memory:/"):
        # The files in the driver's memory. In another process the store is empty: state in memory travels inline.
        return MemoryFiles()
    if odd := re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/", address):
        raise ConfigurationError(f"{shown(address)!r} is neither a path nor a URL: write {odd[1]}://")
    return LocalFiles(address, write_buffer=write_buffer)
