"""What travels between subtasks: runs of records, watermarks and marks, batched into blobs.

A blob goes from one subtask to another over one exchange. Its frames are read in order; blobs of one channel
are numbered. Encoding is pickle without its memo: records are read by the same job in the same epoch, after
the connection has authenticated, and a memo costs ten times the time of the bytes.

Rejected: Arrow for every record (slower than pickle for Python objects below some hundred columns' worth of
numbers), marshal (as fast, but it turns arrays into bytes without a word).
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

RECORDS: Final = 0  # (RECORDS, values, timestamps | None)
WATERMARK: Final = 1  # (WATERMARK, timestamp_ms)
IDLE: Final = 2  # (IDLE, is_idle)
END: Final = 3  # (END,): nothing will ever follow on this channel

Frame = tuple[Any, ...]


@dataclass(slots=True)
class Blob:
    """A batch of frames from one subtask to another over one exchange."""

    exchange: int
    sender: int
    sequence: int
    payload: bytes

    def encode(self) -> bytes:
        """The blob as bytes: a fixed header, then the frames."""
        return _HEADER.pack(self.exchange, self.sender, self.sequence) + self.payload

    @staticmethod
    def decode(data: bytes) -> Blob:
        """Read what `encode` wrote."""
        exchange, sender, sequence = _HEADER.unpack_from(data)
        return Blob(exchange, sender, sequence, data[_HEADER.size :])

    def frames(self) -> list[Frame]:
        """The frames, in order."""
        frames: list[Frame] = pickle.loads(self.payload)
        return frames


_HEADER = struct.Struct("<III")


def in_order(blobs: list[Blob], first: Collection[int] = ()) -> Iterator[Blob]:
    """Blobs by sequence number, then exchange and sender: every channel in its own order, channels interleaved.

    Those of the exchanges named in `first` come before all others. The order is the same in every run, whatever order
    the shuffle delivered them in.
    """
    return iter(sorted(blobs, key=lambda b: (b.exchange not in first, b.sequence, b.exchange, b.sender)))
