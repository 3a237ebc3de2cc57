"""The input of one subtask's epoch, from the arrival of its blobs to their reading."""

from __future__ import annotations

from collections.abc import Iterator

from ekorn.graph.addresses import ChannelId
from ekorn.slot.spool import Spool, StoredMessage
from ekorn.subtask.wire.frames import Blob, Frame


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
