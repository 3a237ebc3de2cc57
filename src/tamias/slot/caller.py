"""Running a subtask's epoch from outside its slot: blobs in, blobs and an outcome back."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tamias.slot.link import Link
from tamias.slot.messages import ACK, RunEpoch
from tamias.subtask.wire.frames import is_blob
from tamias.types.by_value import dumps


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


def run_subtask(link: Link, request: RunEpoch, blobs: Iterable[bytes]) -> Iterator[bytes | Outcome]:
    """Have a slot run a subtask's epoch; yield the encoded blobs that leave the subtask, then the outcome.

    Raises:
        OSError: The slot is gone, or the way to it.
        EOFError: Likewise.
    """
    link.send(dumps(request))
    for blob in blobs:
        link.send(blob)
    link.send(b"")
    while is_blob(message := link.receive()):
        yield message
    yield Outcome(message[:1] == ACK, message[1:])
