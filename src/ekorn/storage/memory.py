"""`MemoryFiles`: a file store in the memory of this process."""

from __future__ import annotations

import errno
import os
import threading
from typing import TypeVar

from ekorn.storage.locations import check_path

__all__ = ["MemoryFiles"]


class MemoryFiles:
    """A file store in the memory of this process: for tests, and for checkpoints that may be lost with the driver."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}
        self._directories: set[str] = set()
        self._lock = threading.Lock()
        self._prefix = ""

    @property
    def url(self) -> str:
        return f"memory:/{self._prefix.rstrip('/')}"

    @property
    def address(self) -> str:
        return self.url

    @property
    def exclusive(self) -> bool:
        return True

    @property
    def in_process(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"MemoryFiles({self.url!r})"

    def read(self, path: str) -> bytes:
        return _found(self._files.get(self._key(path)), path)

    def write(self, path: str, data: bytes) -> None:
        self.publish(path, data)

    def publish(self, path: str, data: bytes) -> None:
        key = self._key(path)
        with self._lock:
            if key in self._files:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            self._files[key] = bytes(data)

    def replace(self, path: str, data: bytes) -> None:
        with self._lock:
            self._files[self._key(path)] = bytes(data)

    def exists(self, path: str) -> bool:
        key = self._key(path)
        with self._lock:
            known = (*self._files, *self._directories)
        return any(name == key or name.startswith(key + "/") for name in known)

    def size(self, path: str) -> int:
        return len(_found(self._files.get(self._key(path)), path))

    def list(self, directory: str = "") -> list[str]:
        inside = self._key(directory) + "/" if directory else self._prefix
        with self._lock:
            known = [*self._files, *self._directories]
        return sorted({key[len(inside) :].split("/")[0] for key in known if key.startswith(inside)})

    def delete(self, path: str) -> None:
        with self._lock:
            self._files.pop(self._key(path), None)

    def delete_tree(self, path: str) -> None:
        key = self._key(path)
        with self._lock:
            for name in [k for k in self._files if k == key or k.startswith(key + "/")]:
                del self._files[name]
            self._directories -= {k for k in self._directories if k == key or k.startswith(key + "/")}

    def make_dirs(self, path: str) -> None:
        with self._lock:
            self._directories.add(self._key(path))

    def below(self, path: str) -> MemoryFiles:
        view = MemoryFiles()
        view._files, view._directories, view._lock = self._files, self._directories, self._lock
        view._prefix = self._key(path) + "/"
        return view

    def _key(self, path: str) -> str:
        return self._prefix + "/".join(check_path(path))


T = TypeVar("T")


def _found(data: T | None, path: str) -> T:
    if data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return data
