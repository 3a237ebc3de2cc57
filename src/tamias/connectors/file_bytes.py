"""The bytes of a file in pieces, plain or unpacked by the file's suffix.

No file stays open between two pieces. A subtask has a reader for each of its files, all at once, and a directory
may hold more files than a process may have open.
"""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from tamias.errors import ConfigurationError

PIECE_BYTES = 256 * 1024
_PACKED_PIECE_BYTES = 32 * 1024  # a piece of zeros unpacks to a thousand times its size

# Flink: the same suffixes, by its inflater factories; its zst needs a library that Python 3.11 does not have.
_UNPACKERS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(wbits=31),
    ".gzip": lambda: zlib.decompressobj(wbits=31),
    ".deflate": zlib.decompressobj,
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
}


class Pieces(Protocol):
    """The content of a file from some offset on."""

    def read(self) -> bytes:
        """The next piece; empty at the end."""
        ...


def is_packed(path: str) -> bool:
    """Whether a file's content is unpacked on the way, so that it can be read from its beginning only."""
    return _suffix(path) in _UNPACKERS


def open_pieces(path: str, offset: int = 0) -> Pieces:
    """The content of a file from an offset on; of a packed file, an offset into what it unpacks to."""
    unpacker = _UNPACKERS.get(_suffix(path))
    return _PlainPieces(path, offset) if unpacker is None else _UnpackedPieces(path, unpacker, offset)


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


class _PlainPieces:
    def __init__(self, path: str, offset: int) -> None:
        self._path = path
        self._offset = offset
        self._checked = False

    def read(self) -> bytes:
        with open(self._path, "rb", buffering=0) as file:
            if not self._checked:
                _check_reaches(self._path, os.fstat(file.fileno()).st_size, self._offset)
                self._checked = True
            file.seek(self._offset)
            piece = file.read(PIECE_BYTES)
        self._offset += len(piece)
        return piece


class _UnpackedPieces:
    def __init__(self, path: str, unpacker: Callable[[], Any], offset: int) -> None:
        self._path = path
        self._unpacker = unpacker
        self._current: Any = None  # unpacks the part of the file that begins where the last one ended
        self._packed_offset = 0
        self._skip = offset
        self._offset = 0

    def read(self) -> bytes:
        while True:
            packed = self._read_packed()
            if not packed:
                if self._current is not None:
                    raise ConfigurationError(f"cannot unpack {self._path!r}: it breaks off; write it again as a whole")
                _check_reaches(self._path, self._offset, self._skip)
                return b""
            unpacked = self._unpack(packed)
            seen = self._offset
            self._offset += len(unpacked)
            if self._offset > self._skip:
                return unpacked[max(0, self._skip - seen) :]

    def _read_packed(self) -> bytes:
        with open(self._path, "rb", buffering=0) as file:
            file.seek(self._packed_offset)
            packed = file.read(_PACKED_PIECE_BYTES)
        self._packed_offset += len(packed)
        return packed

    def _unpack(self, packed: bytes) -> bytes:
        unpacked = []
        while packed:
            if self._current is None:
                packed = packed.lstrip(b"\0")  # tapes and tar pad the end with zeros, and gzip lets them pass
                if not packed:
                    break
                self._current = self._unpacker()
            try:
                unpacked.append(self._current.decompress(packed))
            except (zlib.error, lzma.LZMAError, OSError) as error:
                raise ConfigurationError(
                    f"cannot unpack {self._path!r} near byte {self._packed_offset - len(packed)}: {error}; "
                    "its suffix says how it is packed: rename it or pack it so"
                ) from error
            if not self._current.eof:
                break
            packed, self._current = self._current.unused_data, None
        return b"".join(unpacked)


def _check_reaches(path: str, size: int, offset: int) -> None:
    """A file that was read further than it now reaches is not the file that was read."""
    if size < offset:
        raise ConfigurationError(
            f"cannot go on reading {path!r} at byte {offset}: it has {size} bytes now; "
            "files must not change while a job reads them, and after a failure must be as they were"
        )
