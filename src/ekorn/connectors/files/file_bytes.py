"""The content of a file in pieces, decompressed according to the suffix of the file's name.

No file stays open between two pieces. A subtask has one reader for each of its files, all at the same time, and a
directory may hold more files than a process may have open.
"""

from __future__ import annotations

import bz2
import lzma
import os
import zlib
from collections.abc import Callable
from typing import Any, Protocol

from ekorn.errors import ConfigurationError
from ekorn.extras import load, need
from ekorn.storage.input_files import open_input
from ekorn.storage.locations import shown

PIECE_BYTES = 256 * 1024
_PACKED_PIECE_BYTES = 32 * 1024  # compressed zeros grow to a thousand times their size


def zstd_unpacker() -> Any:
    """Return a decompressor of zstd: of Python from 3.14 on, of a package before."""
    return load("zstd", "content that is compressed with zstd").ZstdDecompressor()


# Flink: has the same suffixes in its inflater factories.
_UNPACKERS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(wbits=31),
    ".gzip": lambda: zlib.decompressobj(wbits=31),
    ".deflate": zlib.decompressobj,
    ".bz2": bz2.BZ2Decompressor,
    ".xz": lzma.LZMADecompressor,
    ".zst": zstd_unpacker,
}


def need_unpacker(address: str) -> str:
    """Check that a file of this name could be decompressed; return the address.

    Raises:
        ConfigurationError: The package that decompresses it is not installed.
    """
    if _suffix(address) == ".zst":
        need("zstd", f"{shown(address)!r}")
    return address


class Pieces(Protocol):
    """The content of a file, beginning at some offset."""

    def read(self) -> bytes:
        """Return the next piece, or an empty one at the end of the file."""
        ...


def is_packed(address: str) -> bool:
    """Return whether a file is compressed, and can therefore be read from its beginning only."""
    return _suffix(address) in _UNPACKERS


def open_pieces(address: str, offset: int = 0) -> Pieces:
    """Return the content of a file from an offset on. Of a compressed file, the offset counts decompressed bytes."""
    unpacker = _UNPACKERS.get(_suffix(address))
    return _PlainPieces(address, offset) if unpacker is None else _UnpackedPieces(address, unpacker, offset)


def _suffix(address: str) -> str:
    return os.path.splitext(shown(address))[1].lower()


class _PlainPieces:
    def __init__(self, address: str, offset: int) -> None:
        self._address = address
        self._offset = offset
        self._checked = False

    def read(self) -> bytes:
        with open_input(self._address) as file:
            if not self._checked:
                _check_reaches(self._address, file.seek(0, os.SEEK_END), self._offset)
                self._checked = True
            file.seek(self._offset)
            piece = file.read(PIECE_BYTES)
        self._offset += len(piece)
        return piece


class _UnpackedPieces:
    def __init__(self, address: str, unpacker: Callable[[], Any], offset: int) -> None:
        self._address = address
        self._unpacker = unpacker
        self._current: Any = None  # decompresses one member; a file may consist of several
        self._packed_offset = 0
        self._skip = offset
        self._offset = 0

    def read(self) -> bytes:
        while True:
            packed = self._read_packed()
            if not packed:
                if self._current is not None:
                    raise ConfigurationError(
                        f"cannot unpack {shown(self._address)!r}: the file is truncated; write it again completely"
                    )
                _check_reaches(self._address, self._offset, self._skip)
                return b""
            unpacked = self._unpack(packed)
            seen = self._offset
            self._offset += len(unpacked)
            if self._offset > self._skip:
                return unpacked[max(0, self._skip - seen) :]

    def _read_packed(self) -> bytes:
        with open_input(self._address) as file:
            file.seek(self._packed_offset)
            packed = file.read(_PACKED_PIECE_BYTES)
        self._packed_offset += len(packed)
        return packed

    def _unpack(self, packed: bytes) -> bytes:
        unpacked = []
        while packed:
            if self._current is None:
                packed = packed.lstrip(b"\0")  # tapes and tar pad the end with zeros, which gzip accepts
                if not packed:
                    break
                self._current = self._unpacker()
            try:
                unpacked.append(self._current.decompress(packed))
            except ConfigurationError:
                raise
            except Exception as error:  # each library of compression raises errors of its own
                raise ConfigurationError(
                    f"cannot unpack {shown(self._address)!r} near byte {self._packed_offset - len(packed)}: {error}; "
                    "the suffix of a file determines its compression: rename the file, or compress it accordingly"
                ) from error
            if not self._current.eof:
                break
            packed, self._current = self._current.unused_data, None
        return b"".join(unpacked)


def _check_reaches(address: str, size: int, offset: int) -> None:
    """Raise an error if a file is shorter than the part of it that was read before."""
    if size < offset:
        raise ConfigurationError(
            f"cannot continue reading {shown(address)!r} at byte {offset}: the file has {size} bytes now; "
            "files must not change while a job reads them or between a failure and the restart"
        )
