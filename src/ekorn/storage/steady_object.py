"""Reads an object of an object store that may be replaced while it is read.

A library that opens an object asks for its size, and then reads ranges of the object that has the name by now. If a put
came between, a reader would get the beginning of one object and the end of another, cut off or padded with zeros.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from typing import Any, BinaryIO

__all__ = ["opened"]

_AHEAD_BYTES = 1 << 20


class SteadyObject(io.RawIOBase):
    """A stream of an object that looks again after each read, before it hands the bytes out.

    A look costs a request, so a stream is read in large pieces (`opened`). It misses only an object that is replaced
    and put back with the same content meanwhile.

    Args:
        look: Opens the object that has the name now, as a file with `read`, `seek`, `tell`, `size` and `metadata`.
        path: The path of the object, for error messages.
    """

    def __init__(self, look: Callable[[], Any], path: str) -> None:
        self._look = look
        self._path = path
        self._file = look()
        self._version = _version_of(self._file)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        return self._read(None)

    def _read(self, size: int | None) -> bytes:
        try:
            data = bytes(self._file.read(size))
        except OSError:
            # A library says in words of its own, and not always the same, that the object is not there any more.
            self._check()
            raise
        self._check()
        return data

    def _check(self) -> None:
        """Raise an error if the object is not the one that was opened."""
        try:
            now = self._look()
        except FileNotFoundError:
            raise self._replaced("deleted") from None
        with now:
            if _version_of(now) != self._version:
                raise self._replaced("replaced") from None

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        return self.tell()

    def tell(self) -> int:
        return int(self._file.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

    def _replaced(self, how: str) -> OSError:
        return OSError(errno.ESTALE, f"the object was {how} while it was read", self._path)


def opened(look: Callable[[], Any], path: str) -> BinaryIO:
    """Open an object as a stream that reads ahead."""
    return io.BufferedReader(SteadyObject(look, path), _AHEAD_BYTES)


def _version_of(file: Any) -> tuple[int, Any]:
    return file.size(), file.metadata()
