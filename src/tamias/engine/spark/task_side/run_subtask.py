"""Runs in Spark's Python worker: asks a slot to run one subtask's epoch.

`testing/process_engine.py` calls it from threads of the driver instead, where there is no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tamias.engine.subtask_outcome import SubtaskOutcome
from tamias.slot.link import Link
from tamias.slot.messages import ACK, RunEpoch
from tamias.subtask.wire.frames import is_blob
from tamias.types.by_value import dumps


def run_subtask(link: Link, request: RunEpoch, blobs: Iterable[bytes]) -> Iterator[bytes | SubtaskOutcome]:
    """Send an epoch's blobs to the slot; yield the encoded blobs that leave the subtask, then the outcome.

    Raises:
        OSError: The slot or the connection to it is gone.
        EOFError: The slot closed the connection.
    """
    link.send(dumps(request))
    for blob in blobs:
        link.send(blob)
    link.send(b"")
    while is_blob(message := link.receive()):
        yield message
    yield SubtaskOutcome(succeeded=message[:1] == ACK, pickled=message[1:])
