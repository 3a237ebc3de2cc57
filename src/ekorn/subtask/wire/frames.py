"""The units that travel between subtasks: frames (a run of records, a watermark or a mark), batched into blobs.

A blob goes from one subtask to another over one exchange. It is the only envelope: the outbox makes it, a slot sends
it over its connection as one message, Spark's shuffle carries it as bytes, and the receiving subtask reads its frames.
The frames of a blob are read in order, and the blobs of one channel are numbered.

Frames are encoded with pickle, without its memo, which costs ten times the time of the bytes. They are read by the same
job, after the connection has authenticated, or by a job that restores an unaligned checkpoint (`subtask/in_flight.py`).

Rejected: Arrow for every record (slower than pickle for Python objects, below some hundred columns of numbers) and
marshal (as fast as pickle, but it silently turns arrays into bytes).
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from ekorn.errors import DamagedBlob
from ekorn.graph.addresses import ChannelId

RECORDS: Final = 0  # (RECORDS, values, timestamps | None)
WATERMARK: Final = 1  # (WATERMARK, timestamp_ms)
IDLE: Final = 2  # (IDLE, is_idle)
END: Final = 3  # (END, is_drained): no record follows on this channel; drained: the source had more to read
EPOCH: Final = 4  # (EPOCH, order): the mark that ends an epoch of a continuous job; the last frame of its blob

Frame = tuple[Any, ...]

BLOB: Final = b"B"  # the first byte of an encoded blob: tells a blob from the other messages of a slot
NO_MARK: Final = -1
# BLOB, exchange, sender, target, sequence, mark. A sequence that grows for months exceeds 2**32.
_HEADER = struct.Struct("<cIIIQi")


class Destination(NamedTuple):
    """The destination of a blob: its exchange, and the subtask index inside the exchange's target vertex."""

    exchange: int
    target: int


@dataclass(frozen=True, slots=True)
class Blob:
    """A batch of frames from one subtask to another over one exchange."""

    exchange: int
    sender: int
    target: int
    sequence: int
    payload: bytes | memoryview
    mark: int = NO_MARK  # the number of the epoch whose mark is the last frame: known without reading the frames

    @property
    def channel(self) -> ChannelId:
        return ChannelId(self.exchange, self.sender)

    @property
    def size_bytes(self) -> int:
        """Return the size of the encoded blob."""
        return _HEADER.size + len(self.payload)

    def frames(self) -> list[Frame]:
        """Return the frames in the order in which they were sent.

        Raises:
            DamagedBlob: The bytes are not those of frames.
        """
        try:
            frames: list[Frame] = pickle.loads(self.payload)
        except (pickle.UnpicklingError, EOFError) as error:  # not what a class of the user raises
            which = f"blob {self.sequence} from subtask {self.sender} over exchange {self.exchange}"
            raise DamagedBlob(which, str(error)) from error
        return frames

    def pickled(self) -> bytes | memoryview:
        """Return the frames as they were sent."""
        return self.payload

    def encode(self) -> tuple[bytes, bytes | memoryview]:
        """Return header and payload: two parts of one message, so that the payload is not copied."""
        header = _HEADER.pack(BLOB, self.exchange, self.sender, self.target, self.sequence, self.mark)
        return header, self.payload

    @staticmethod
    def decode(data: bytes) -> Blob:
        """Read the joined parts that `encode` returned. The payload is a view of `data`, not a copy.

        Raises:
            DamagedBlob: The message has no header of a blob.
        """
        if len(data) < _HEADER.size or data[:1] != BLOB:
            raise DamagedBlob(f"a message of {len(data)} bytes", f"it begins with {bytes(data[: _HEADER.size])!r}")
        _, exchange, sender, target, sequence, mark = _HEADER.unpack_from(data)
        return Blob(exchange, sender, target, sequence, memoryview(data)[_HEADER.size :], mark)


class ReceivedBlob(Protocol):
    """A blob at its receiver: its place among the others, and its frames. The frames may wait on disk."""

    @property
    def exchange(self) -> int: ...

    @property
    def sender(self) -> int: ...

    @property
    def sequence(self) -> int: ...

    @property
    def channel(self) -> ChannelId: ...

    @property
    def mark(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    def frames(self) -> list[Frame]:
        """Return the frames in the order in which they were sent."""

    def pickled(self) -> bytes | memoryview:
        """Return the frames, pickled."""


_Received = TypeVar("_Received", bound=ReceivedBlob)


def is_blob(message: bytes) -> bool:
    """Return whether a message of a slot is an encoded blob."""
    return message[:1] == BLOB


def destination_of(data: bytes) -> Destination:
    """Read the destination of an encoded blob and nothing else."""
    _, exchange, _, target, _, _ = _HEADER.unpack_from(data)
    return Destination(exchange, target)


def in_order(blobs: Iterable[_Received], first: Collection[int] = ()) -> Iterator[_Received]:
    """Yield blobs by sequence number, then exchange and sender: channels are interleaved, each in its own order.

    Blobs of the exchanges in `first` come before all others. The order is the same in every run, whatever the order
    in which the shuffle delivered the blobs.
    """
    return iter(sorted(blobs, key=lambda b: (b.exchange not in first, b.sequence, b.exchange, b.sender)))
