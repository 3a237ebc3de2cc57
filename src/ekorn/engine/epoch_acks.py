"""The acknowledgements of epochs that are marks in the stream, from the first of an epoch to the last. Pure."""

from __future__ import annotations

from collections.abc import Collection

from ekorn.graph.addresses import SubtaskId
from ekorn.operators.epoch import Ack

__all__ = ["EpochAcks"]


class EpochAcks:
    """Acknowledgements by epoch and subtask.

    A failure in one region ends an epoch for the driver, while its marks go on in the other regions. What their
    subtasks acknowledge of it comes with their acknowledgements of the next epoch: no output is lost.

    >>> acks, only = EpochAcks(), SubtaskId(0, 0)
    >>> acks.add(Ack(0, 0, epoch=1, records_in=3))
    >>> acks.add(Ack(0, 0, epoch=2, records_in=4))
    >>> acks.are_complete(2, {only}), [ack.records_in for ack in acks.take(2, {only})]
    (True, [7])
    """

    def __init__(self) -> None:
        self._by_epoch: dict[int, dict[SubtaskId, Ack]] = {}

    def add(self, ack: Ack) -> None:
        """Add the acknowledgement of a subtask. Those of one subtask come in the order of the epochs."""
        self._by_epoch.setdefault(ack.epoch, {})[SubtaskId(ack.vertex, ack.subtask)] = ack

    def are_complete(self, epoch: int, subtasks: Collection[SubtaskId]) -> bool:
        """Return whether all of some subtasks have acknowledged an epoch."""
        return self._by_epoch.get(epoch, {}).keys() >= set(subtasks)

    def take(self, epoch: int, subtasks: Collection[SubtaskId]) -> list[Ack]:
        """Return one acknowledgement of each subtask for an epoch and all earlier ones, and forget these epochs."""
        ended = [self._by_epoch.pop(number) for number in sorted(self._by_epoch) if number <= epoch]
        taken: list[Ack] = []
        for subtask in sorted(subtasks):
            *earlier, last = [acks[subtask] for acks in ended if subtask in acks]
            for ack in reversed(earlier):
                _put_before(ack, last)
            taken.append(last)
        return taken

    def drop(self, subtasks: Collection[SubtaskId]) -> None:
        """Forget what subtasks have acknowledged: they restart, and do it again."""
        for acks in self._by_epoch.values():
            for subtask in subtasks:
                acks.pop(subtask, None)

    def clear(self) -> None:
        """Forget everything."""
        self._by_epoch.clear()


def _put_before(earlier: Ack, ack: Ack) -> None:
    """Add what a subtask did in an earlier epoch to its acknowledgement of a later one."""
    ack.records_in += earlier.records_in
    ack.records_out += earlier.records_out
    ack.busy_ms += earlier.busy_ms
    ack.blocked_ms += earlier.blocked_ms
    ack.aligned_ms += earlier.aligned_ms
    ack.held_blobs += earlier.held_blobs
    ack.bytes_out += earlier.bytes_out
    ack.crossed_bytes += earlier.crossed_bytes
    ack.output_bytes += earlier.output_bytes
    ack.lines = earlier.lines + ack.lines
    ack.collected = earlier.collected + ack.collected
