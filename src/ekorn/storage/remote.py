"""`RemoteFiles`: a file store in a directory on remote storage.

The store needs three things of a storage: a put that shows an object whole or not at all (on file systems, a rename
instead), a get that sees the last put, and deletes. Listings serve to find and to clean up, never to commit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable
from typing import TypeVar

from ekorn.errors import ConfigurationError
from ekorn.faults import point
from ekorn.storage.access import Access
from ekorn.storage.locations import check_path, join, scheme_of, secrets_of, shown
from ekorn.storage.remote_access import RemoteCalls, open_access
from ekorn.storage.retry import Patience

__all__ = ["RemoteFiles", "open_remote"]

T = TypeVar("T")


def open_remote(address: str) -> RemoteFiles:
    """Open the store at a URL.

    Raises:
        ConfigurationError: No library knows the scheme, the library for it is not installed, or it refuses the URL.
    """
    scheme = scheme_of(address)
    access, path = open_access(address)
    if not path.strip("/"):
        raise ConfigurationError(
            f"{shown(address)!r} does not name a bucket or directory; write {scheme}://bucket/directory"
        )
    return RemoteFiles(access, path.rstrip("/"), address, in_process=scheme == "memory")


class RemoteFiles:
    """A file store in a directory on remote storage."""

    def __init__(
        self, access: Access, root: str, address: str, *, in_process: bool = False, patience: Patience | None = None
    ) -> None:
        self._access = access
        self._root = root
        self._address = address
        self._url = shown(address)
        self._in_process = in_process
        self._patience = patience
        self._calls = RemoteCalls(access, secrets_of(address), patience)

    @property
    def url(self) -> str:
        return self._url

    @property
    def address(self) -> str:
        return self._address

    @property
    def exclusive(self) -> bool:
        # Some storages offer a conditional put, but neither library offers it for all of them.
        return False

    @property
    def in_process(self) -> bool:
        return self._in_process

    def __repr__(self) -> str:
        return f"RemoteFiles({self.url!r})"

    def read(self, path: str) -> bytes:
        place = self._place(path)
        return self._call("read", path, lambda: self._access.get(place))

    def write(self, path: str, data: bytes) -> None:
        place = self._place(path)
        self._call("write", path, lambda: self._access.put(place, data))

    def publish(self, path: str, data: bytes) -> None:
        """Create a file whole or not at all. The check for an existing file is a separate step before the write."""
        place = self._place(path)
        existing = self._call("read", path, lambda: self._current(place))
        if existing is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), f"{self.url}/{path}")
        point("publish")
        self._call("publish", path, lambda: self._put_whole(place, data))

    def replace(self, path: str, data: bytes) -> None:
        place = self._place(path)
        self._call("replace", path, lambda: self._put_whole(place, data))

    def exists(self, path: str) -> bool:
        place = self._place(path)
        return self._call("look for", path, lambda: self._access.exists(place))

    def size(self, path: str) -> int:
        place = self._place(path)
        found = self._call("look for", path, lambda: self._access.size(place))
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self.url}/{path}")
        return found

    def list(self, directory: str = "") -> list[str]:
        place = self._place(directory) if directory else self._root
        return sorted(set(self._call("list", directory, lambda: self._access.names(place))))

    def delete(self, path: str) -> None:
        place = self._place(path)
        with contextlib.suppress(FileNotFoundError):
            self._call("delete", path, lambda: self._access.remove(place))

    def delete_tree(self, path: str) -> None:
        place = self._place(path)
        with contextlib.suppress(FileNotFoundError):
            self._call("delete", path, lambda: self._access.remove_tree(place))

    def make_dirs(self, path: str) -> None:
        place = self._place(path)
        self._call("create", path, lambda: self._access.make_dirs(place))

    def below(self, path: str) -> RemoteFiles:
        return RemoteFiles(
            self._access,
            self._place(path),
            join(self._address, path),
            in_process=self._in_process,
            patience=self._patience,
        )

    def _place(self, path: str) -> str:
        """Return the path in the form of the storage library."""
        return "/".join((self._root, *check_path(path)))

    def _current(self, place: str) -> bytes | None:
        try:
            return self._access.get(place)
        except FileNotFoundError:
            return None

    def _put_whole(self, place: str, data: bytes) -> None:
        if self._access.whole_puts:
            self._access.put(place, data)
            return
        draft = f"{place}.draft-{secrets.token_hex(8)}"
        try:
            self._access.put(draft, data)
            self._access.move(draft, place)
        except Exception:
            with contextlib.suppress(Exception):  # raise the first error, not that of the removal
                self._access.remove(draft)
            with contextlib.suppress(Exception):
                if self._current(place) == data:
                    return  # the rename succeeded, and only its response was lost
            raise

    def _call(self, verb: str, path: str, action: Callable[[], T]) -> T:
        return self._calls.call(action, verb=verb, url=f"{self._url}/{path}")
