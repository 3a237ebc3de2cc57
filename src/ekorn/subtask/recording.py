"""Records the blobs that the mark of a checkpoint has overtaken; cuts blobs, so that nothing waits for a whole one.

A subtask that takes a snapshot before the mark has come on all of its channels owes the snapshot what was sent before
the mark and is not processed yet: the blobs that wait already, and those that arrive until the mark has come on every
channel. See docs/decisions/0039-unaligned-checkpoints.md.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ekorn.graph.addresses import ChannelId
from ekorn.subtask.capture import CapturedSubtask
from ekorn.subtask.in_flight import BlobPart, InFlight
from ekorn.subtask.wire.frames import RECORDS, ReceivedBlob

__all__ = ["Recording", "cut"]


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


def cut(blob: ReceivedBlob, most_records: int) -> tuple[BlobPart, BlobPart | None]:
    """Cut a blob behind at most so many records; return both parts, or the whole and None. The last part has the mark.

    A run of records that fits into a turn of its own is not cut.
    """
    frames, room = blob.frames(), most_records
    for number, frame in enumerate(frames):
        count = len(frame[1]) if frame[0] == RECORDS else 0
        if count <= room:
            room -= count
            continue
        if room < most_records:
            first, rest = frames[:number], frames[number:]
        else:
            _, values, times = frame
            ends = slice(most_records), slice(most_records, None)
            head, tail = ((RECORDS, values[end], None if times is None else times[end]) for end in ends)
            first, rest = [*frames[:number], head], [tail, *frames[number + 1 :]]
        size_bytes = blob.size_bytes // 2
        return (
            BlobPart(blob.channel, first, size_bytes, blob.sequence),
            BlobPart(blob.channel, rest, blob.size_bytes - size_bytes, blob.sequence, blob.mark),
        )
    return BlobPart(blob.channel, frames, blob.size_bytes, blob.sequence, blob.mark), None
