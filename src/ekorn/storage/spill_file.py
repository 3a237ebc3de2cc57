"""Bytes that do not fit into memory, in a file without a name on local disk.

Slots, tasks, the driver and the state processor write here what exceeds their memory. They decide what to write and
when; this file keeps the bytes and reads them back, by offset or chunk after chunk. The file never has a name, so the
disk space is free again when the file is closed, and also when the process is killed.
"""

from __future__ import annotations

import io
import os
import struct
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = ["Part", "SpillFile"]

Part = bytes | bytearray | memoryview

_SIZE = struct.Struct("<Q")  # a chunk of large records may be larger than 4 GiB
_JOINED_BYTES = 1 << 16  # below this, a copy of several parts costs less than a system call for each


class SpillFile:
    """Appends bytes to a file without a name and reads them back.

    The file is closed by `close`, or with the last reference to this object. One thread appends. Other threads may read
    at the same time what has been appended, unless the file has a buffer.

    Args:
        folder: The folder of the file; None for the system's temporary folder.
        buffer_bytes: The number of bytes that gather in memory before they are written.

    Raises:
        OSError: The file cannot be created.

    Attributes:
        size_bytes: The number of bytes that have been appended.
    """

    def __init__(self, folder: str | None = None, *, buffer_bytes: int = 0) -> None:
        self._folder = tempfile.gettempdir() if folder is None else folder
        file = tempfile.TemporaryFile(buffering=0, dir=self._folder)  # noqa: SIM115 - closed by the finalizer
        self._close = weakref.finalize(self, file.close)
        self._descriptor = file.fileno()
        self._buffer_bytes = buffer_bytes
        self._buffer = bytearray()
        self._written_bytes = 0
        self.size_bytes = 0

    def append(self, *parts: Part) -> int:
        """Append bytes, given in parts; return their offset. Bytes whose write fails are not appended.

        Raises:
            OSError: The disk is full, or cannot be written to. The error names the folder.
        """
        offset = self.size_bytes
        size_bytes = sum(map(len, parts))
        if self._buffer and len(self._buffer) + size_bytes > self._buffer_bytes:
            self._flush()
        if size_bytes < self._buffer_bytes:
            for part in parts:
                self._buffer += part
        else:
            self._write(parts, size_bytes)
        self.size_bytes = offset + size_bytes
        return offset

    def read(self, offset: int, size_bytes: int) -> bytes:
        """Return bytes that have been appended. Thread-safe without a buffer."""
        if offset + size_bytes > self._written_bytes:
            self._flush()
        data = os.pread(self._descriptor, size_bytes, offset)
        while len(data) < size_bytes:  # Linux reads at most 2 GiB at once
            more = os.pread(self._descriptor, size_bytes - len(data), offset + len(data))
            assert more, "a file without a name is changed by nobody else"
            data += more
        return data

    def append_chunk(self, data: bytes) -> None:
        """Append bytes that `chunks` returns as they are, without a note of their offset and size.

        Raises:
            OSError: The disk is full, or cannot be written to. The error names the folder.
        """
        size_bytes = _SIZE.size + len(data)
        if len(self._buffer) + size_bytes <= self._buffer_bytes:  # hot: small chunks, one after another
            self._buffer += _SIZE.pack(len(data))
            self._buffer += data
            self.size_bytes += size_bytes
        else:
            self.append(_SIZE.pack(len(data)), data)

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the chunks between two sizes that the file has had, in their order.

        Several callers may read at once, each at its own pace.

        Args:
            start: What `size_bytes` was before the first chunk was appended.
            end: What it was after the last one; None for all chunks that the file has when the first is asked for.
        """
        self._flush()
        rest_bytes = (self.size_bytes if end is None else end) - start
        with io.BufferedReader(_Cursor(self, start), max(self._buffer_bytes, io.DEFAULT_BUFFER_SIZE)) as file:
            while rest_bytes > 0:
                (size_bytes,) = _SIZE.unpack(file.read(_SIZE.size))
                yield file.read(size_bytes)
                rest_bytes -= _SIZE.size + size_bytes
        assert rest_bytes == 0, "chunks are read from where one begins to where one ends"

    def close(self) -> None:
        """Release the disk space. The file cannot be read afterwards."""
        self._descriptor = -1  # the operating system may reuse the file descriptor for another file
        self._close()

    def _flush(self) -> None:
        if self._buffer:
            self._write((self._buffer,), len(self._buffer))
            self._buffer.clear()

    def _write(self, parts: Sequence[Part], size_bytes: int) -> None:
        """Write parts at the end of the file."""
        if len(parts) > 1 and size_bytes < _JOINED_BYTES:
            parts = (b"".join(parts),)
        end = self._written_bytes
        try:
            for part in parts:
                end += (written := os.pwrite(self._descriptor, part, end))
                while written < len(part):  # Linux writes at most 2 GiB at once
                    end += (more := os.pwrite(self._descriptor, memoryview(part)[written:], end))
                    written += more
        except OSError as error:
            error.filename = self._folder
            raise
        self._written_bytes = end


class _Cursor(io.RawIOBase):
    """A read position in a file. Several cursors may read one file."""

    def __init__(self, file: SpillFile, offset: int) -> None:
        self._file = file
        self._offset = offset

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        target = memoryview(buffer)
        size_bytes = min(len(target), self._file.size_bytes - self._offset)
        target[:size_bytes] = self._file.read(self._offset, size_bytes)
        self._offset += size_bytes
        return size_bytes
