"""Running a subtask's epoch from outside its slot: blobs in, blobs and an outcome back."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tamias.slot.link import Link
from tamias.slot.messages import ACK, PARCEL, RunEpoch
from tamias.subtask.outbox import Parcel
from tamias.types.by_value import dumps

_TARGET = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an epoch of a subtask ended: a pickled `Ack`, or a pickled exception."""

    good: bool
    data: bytes


@dataclass(frozen=True, slots=True)
class Failed:
    """An epoch of a subtask that did not end well. The error may be of a class that only the driver knows."""

    vertex: int
    subtask: int
    pickled: bytes

    @property
    def error(self) -> BaseException:
        """What was raised."""
        error: BaseException = pickle.loads(self.pickled)
        return error


def run_subtask(link: Link, request: RunEpoch, blobs: Iterable[bytes]) -> Iterator[Parcel | Outcome]:
    """Have a slot run a subtask's epoch; what leaves it, and at last how it ended.

    Raises:
        OSError: The slot is gone, or the way to it.
        EOFError: Likewise.
    """
    link.send(dumps(request))
    for blob in blobs:
        link.send(blob)
    link.send(b"")
    while (message := link.receive())[:1] == PARCEL:
        exchange, target = _TARGET.unpack_from(message, 1)
        yield Parcel(exchange, target, link.receive())
    yield Outcome(message[:1] == ACK, message[1:])
