"""The seam to a file system: one directory on some storage, opened by path or URL.

A `FileStore` is rooted in one directory and takes relative paths only, so that nothing read from a checkpoint can name
a file outside it. Two kinds of file exist: state files, written once under a name nobody had before, and commit points,
which appear whole or not at all (`publish`). What the bytes mean is not known here.
"""

from __future__ import annotations

import re
from typing import Protocol

from tamias.errors import ConfigurationError
from tamias.storage.local import LocalFiles
from tamias.storage.locations import plain, scheme_of, shown
from tamias.storage.memory import MemoryFiles


class FileStore(Protocol):
    """One directory on some storage. Every method may raise `OSError`; paths are relative, with `/` between parts.

    An object store offers the same: a file is an object, `publish` a put, a directory a prefix of names.
    """

    @property
    def url(self) -> str:
        """The directory as it is shown to people and kept in files: without credentials and options."""
        ...

    @property
    def address(self) -> str:
        """The directory in the form `open_files` takes: how another process opens the same store. Never shown."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether `publish` refuses a taken name in one step, so that of two writers one learns that it lost.

        Where it is not (an object store without conditional writes), the check and the write are two steps, and the
        last of two writers at the same moment wins; see `checkpoint/ownership.py` for what makes that harmless.
        """
        ...

    @property
    def in_process(self) -> bool:
        """Whether only this process can see it."""
        ...

    def read(self, path: str) -> bytes:
        """The whole file; `FileNotFoundError` when there is none."""
        ...

    def write(self, path: str, data: bytes) -> None:
        """Create a file under a name never used before, and make it durable. A crash may leave it torn.

        A store that can tell for nothing raises `FileExistsError` when the name is taken all the same.
        """
        ...

    def publish(self, path: str, data: bytes) -> None:
        """Create a file whole or not at all, and durable; `FileExistsError` when the name is taken."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """As `publish`, but over what is there: readers see the old file or the new one."""
        ...

    def exists(self, path: str) -> bool:
        """True when there is a file or directory of that name."""
        ...

    def size(self, path: str) -> int:
        """Bytes in a file; `FileNotFoundError` when there is none."""
        ...

    def list(self, directory: str = "") -> list[str]:
        """Sorted names of what is directly in a directory; empty when there is no such directory."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file; a missing one is fine."""
        ...

    def delete_tree(self, path: str) -> None:
        """Remove a directory with all it holds; a missing one is fine."""
        ...

    def make_dirs(self, path: str) -> None:
        """Create a directory and those above it; existing ones are fine."""
        ...

    def below(self, path: str) -> FileStore:
        """The store rooted in a directory of this one."""
        ...


def open_files(address: str, *, write_buffer: int | None = None) -> FileStore:
    """The store for a directory given as a path or a URL.

    Local paths and `file://` are plain directories. `s3`, `gs`, `hdfs`, `viewfs`, `abfs` and their variants go through
    `pyarrow.fs`, every other scheme through `fsspec` (`pip install 'tamias[fsspec]'`, and the package of the scheme).
    Credentials come from the environment, as for these libraries themselves, or from the URL.

    Args:
        address: The path or URL.
        write_buffer: How many bytes are written to a file of a directory at once; None for all. An object is always
            sent as a whole.

    Raises:
        ConfigurationError: The address cannot be read, its scheme is unknown, or what opens it is not installed.
    """
    if not address:
        raise ConfigurationError("no directory given: a checkpoint directory is a local path or a URL")
    address = plain(address)
    scheme = scheme_of(address)
    if not scheme and address.startswith("memory:/"):
        return MemoryFiles()  # of the driver: from elsewhere it looks empty, and what it holds travels by itself
    if not scheme and (odd := re.match(r"([A-Za-z][A-Za-z0-9+.-]+):/", address)):
        raise ConfigurationError(f"{shown(address)!r} is neither a path nor a URL: write {odd[1]}://")
    if scheme:
        if "#" in address:
            raise ConfigurationError(f"an address of {scheme}:// cannot have a '#' in it: write %23")
        from tamias.storage.remote import open_remote

        return open_remote(address)
    return LocalFiles(address, write_buffer=write_buffer)
