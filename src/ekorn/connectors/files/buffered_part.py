"""A part on remote storage while it is written: records gather in a buffer, which is written out when it is full."""

from __future__ import annotations

from abc import ABC, abstractmethod

__all__ = ["BufferedPart"]


class BufferedPart(ABC):
    """What a rolling policy asks of a part, and the buffer that its records pass through."""

    def __init__(self, bucket_id: str, now_ms: int, buffer_bytes: int) -> None:
        self.saved = False  # True once a checkpoint may refer to the part, which then must not be deleted
        self._bucket_id = bucket_id
        self._created_ms = self._written_ms = now_ms
        self._buffer = bytearray()
        self._buffer_bytes = buffer_bytes
        self._size = 0

    def get_bucket_id(self) -> str:
        """Return the bucket of the part."""
        return self._bucket_id

    def get_creation_time(self) -> int:
        """Return the time at which the part was begun, in milliseconds."""
        return self._created_ms

    def get_size(self) -> int:
        """Return the number of bytes written to the part."""
        return self._size

    def get_last_update_time(self) -> int:
        """Return the time at which a record was last written to the part, in milliseconds."""
        return self._written_ms

    def write(self, data: bytes, now_ms: int) -> None:  # hot
        """Append a record."""
        self._buffer += data
        self._size += len(data)
        self._written_ms = now_ms
        if len(self._buffer) >= self._buffer_bytes:
            self._write_out()

    @abstractmethod
    def _write_out(self) -> None:
        """Write the buffer to the storage, and empty it."""
