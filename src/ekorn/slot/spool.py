"""Messages that wait in a slot: in memory up to a bound, beyond it in a file of the slot's folder.

An epoch's input arrives sender by sender and is read in another order, so it waits until it is complete. Answers that
Spark may ask for twice wait until the next epoch. Neither may take more memory than the bound, whatever a job emits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from ekorn.errors import SpoolError
from ekorn.graph.addresses import ChannelId
from ekorn.storage.spill_file import Part, SpillFile
from ekorn.subtask.wire.frames import Blob, Frame


class SpoolMemory:
    """The memory that all spools of a slot share. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.limit_bytes = 0  # set with each deployment
        self.used_bytes = 0

    def take(self, size_bytes: int) -> bool:
        """Reserve memory; return False if that would exceed the limit."""
        with self._lock:
            if self.used_bytes + size_bytes > self.limit_bytes:
                return False
            self.used_bytes += size_bytes
            return True

    def give_back(self, size_bytes: int) -> None:
        with self._lock:
            self.used_bytes -= size_bytes


class StoredMessage:
    """A message in a spool. It stays readable as long as it is referred to."""

    __slots__ = ("_data", "_offset", "_size_bytes")

    def __init__(self, data: bytes | SpillFile, offset: int, size_bytes: int) -> None:
        self._data = data
        self._offset = offset
        self._size_bytes = size_bytes

    def read(self) -> bytes:
        """Return the message."""
        data = self._data
        return data if isinstance(data, bytes) else data.read(self._offset, self._size_bytes)


class Spool:
    """Stores messages one by one.

    Args:
        memory: Where to reserve memory.
        folder: Returns the folder for the file. Called when a message does not fit into memory.
    """

    def __init__(self, memory: SpoolMemory, folder: Callable[[], str]) -> None:
        self._memory = memory
        self._folder = folder
        self._reserved_bytes = 0
        self._file: SpillFile | None = None

    @property
    def spilled_bytes(self) -> int:
        """The bytes that went to the file."""
        return 0 if self._file is None else self._file.size_bytes

    def add(self, *parts: Part) -> StoredMessage:
        """Store a message, given in parts.

        Raises:
            SpoolError: The message does not fit into memory, and cannot be written to the folder.
        """
        size_bytes = sum(map(len, parts))
        if self._memory.take(size_bytes):
            self._reserved_bytes += size_bytes
            whole = parts[0] if len(parts) == 1 else b"".join(parts)
            return StoredMessage(whole if isinstance(whole, bytes) else bytes(whole), 0, size_bytes)
        try:
            if self._file is None:
                self._file = SpillFile(self._folder())
            return StoredMessage(self._file, self._file.append(*parts), size_bytes)
        except OSError as error:
            raise SpoolError(size_bytes, self._memory.limit_bytes, str(error)) from error

    def close(self) -> None:
        """Give the memory back, and the disk once no message is referred to."""
        self._memory.give_back(self._reserved_bytes)
        self._reserved_bytes = 0
        self._file = None


class WaitingBlob:
    """A blob in a spool: its header is in memory, and its frames are read when they are processed."""

    __slots__ = ("_stored", "channel", "exchange", "mark", "sender", "sequence", "size_bytes")

    def __init__(self, header: Blob, stored: StoredMessage) -> None:
        self.exchange = header.exchange
        self.sender = header.sender
        self.sequence = header.sequence
        self.channel: ChannelId = header.channel
        self.mark = header.mark
        self.size_bytes = header.size_bytes
        self._stored = stored

    def frames(self) -> list[Frame]:
        return Blob.decode(self._stored.read()).frames()

    def pickled(self) -> bytes | memoryview:
        return Blob.decode(self._stored.read()).payload


class WaitingBlobs:
    """The blobs of one epoch that have arrived for a subtask."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._blobs: list[WaitingBlob] = []

    def add(self, encoded: bytes) -> None:
        """Add an encoded blob.

        Raises:
            SpoolError: The blob does not fit into memory and cannot be written to disk.
        """
        self._blobs.append(WaitingBlob(Blob.decode(encoded), self._spool.add(encoded)))

    def __iter__(self) -> Iterator[WaitingBlob]:
        return iter(self._blobs)

    def close(self) -> None:
        """Give back the memory of the blobs; their disk space is free once nothing refers to them."""
        self._spool.close()
