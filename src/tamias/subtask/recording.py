"""Records the blobs that the mark of a checkpoint has overtaken; cuts blobs, so that a mark waits for no whole one.

A subtask that takes a snapshot before the mark has come on all of its channels owes the snapshot what was sent before
the mark and is not processed yet: the blobs that wait already, and those that arrive until the mark has come on every
channel. See docs/decisions/0039-unaligned-checkpoints.md.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tamias.graph.addresses import ChannelId
from tamias.subtask.capture import CapturedSubtask
from tamias.subtask.in_flight import BlobPart, InFlight
from tamias.subtask.wire.frames import NO_MARK, RECORDS, Frame, ReceivedBlob

__all__ = ["Recording", "pieces_of"]


class Recording:
    """The snapshot of a subtask while the blobs that its mark has overtaken are still coming in.

    Args:
        captured: The state at the moment of the snapshot.
        epoch: The epoch of the mark.
        overtaken: The channels on which the mark has not come.
        started: The moment, by the monotonic clock.
    """

    def __init__(self, captured: CapturedSubtask, epoch: int, overtaken: Collection[ChannelId], started: float) -> None:
        self.checkpoint_id = captured.checkpoint_id
        self._captured = captured
        self._epoch = epoch
        self._missing = set(overtaken)
        self._blobs: list[ReceivedBlob] = []
        self._started = started

    def add(self, blob: ReceivedBlob) -> None:
        """Take note of a blob in the order of its channel. Blobs behind the mark are left out."""
        if blob.channel in self._missing:
            # Frames that are decoded already are pickled now: the program may change their records when it has them.
            self._blobs.append(blob.pickle() if isinstance(blob, BlobPart) else blob)
            if blob.mark >= self._epoch:
                self._missing.discard(blob.channel)

    @property
    def is_complete(self) -> bool:
        """Whether the mark has come on every channel."""
        return not self._missing

    def captured(self, now: float) -> CapturedSubtask:
        """Return the whole snapshot, once it is complete."""
        environment = self._captured.environment
        in_flight = InFlight(environment.graph, environment.vertex.id, tuple(self._blobs))
        alignment = replace(self._captured.alignment, recorded_ms=(now - self._started) * 1000, unaligned=True)
        return replace(self._captured, in_flight=in_flight if self._blobs else None, alignment=alignment)


def pieces_of(blob: ReceivedBlob, most_records: int) -> list[BlobPart]:
    """Cut a blob into parts of at most so many records, in order. The last part carries the blob's mark."""
    parts: list[list[Frame]] = [[]]
    room, frames = most_records, blob.frames()
    for frame in frames:
        if frame[0] != RECORDS:
            parts[-1].append(frame)
            continue
        _, values, times = frame
        for start in range(0, len(values), most_records):
            run = values[start : start + most_records]
            if room < len(run):
                parts.append([])
                room = most_records
            parts[-1].append((RECORDS, run, None if times is None else times[start : start + most_records]))
            room -= len(run)
    size_bytes, last = blob.size_bytes // len(parts), len(parts) - 1
    return [
        BlobPart(blob.channel, part, size_bytes, blob.sequence, blob.mark if number == last else NO_MARK)
        for number, part in enumerate(parts)
    ]
