"""Decides which input channels of a subtask wait for the mark of an epoch, and which a mark has overtaken. Pure."""

from __future__ import annotations

from collections.abc import Collection

from ekorn.graph.addresses import ChannelId

__all__ = ["Alignment"]

_NONE = -1  # before the first epoch


class Alignment:
    """The newest mark that a subtask has taken on each of its channels, and the newest epoch that it has ended.

    A channel whose newest mark is that of an epoch which has not ended is ahead: its blobs belong to a later epoch, and
    wait until the mark has come on every channel. A channel that has ended carries marks all the same, so no channel is
    ever left out. A subtask may also end an epoch before its mark has come on all channels: the mark has overtaken the
    blobs of these channels, and means nothing when it comes at last.

    Args:
        channels: All channels.
        in_step: The channels on which no mark overtakes.

    >>> left, right = ChannelId(0, 0), ChannelId(0, 1)
    >>> alignment = Alignment([left, right])
    >>> alignment.arrive(left, 1), alignment.is_ahead(left), alignment.is_ahead(right)
    (False, True, False)
    >>> alignment.arrive(right, 1), alignment.end(1), alignment.is_ahead(left)
    (True, frozenset(), False)
    >>> alignment.arrive(left, 2), alignment.end(2) == {right}, alignment.arrive(right, 2)
    (False, True, False)
    """

    def __init__(self, channels: Collection[ChannelId], in_step: Collection[ChannelId] = ()) -> None:
        self._marks = dict.fromkeys(channels, _NONE)
        self._in_step = frozenset(in_step)
        self._missing = len(self._marks)  # channels that are not ahead
        self.ended = _NONE  # the newest epoch that has ended

    def is_ahead(self, channel: ChannelId) -> bool:
        """Return whether the mark of an epoch that has not ended has come on a channel."""
        return self._marks[channel] > self.ended

    def arrive(self, channel: ChannelId, epoch: int) -> bool:
        """Note the mark of an epoch on a channel; return whether all channels have it now."""
        counts = self._marks[channel] <= self.ended < epoch
        self._marks[channel] = epoch
        self._missing -= counts
        return counts and not self._missing

    def may_overtake(self, epoch: int) -> bool:
        """Return whether the mark of an epoch has come on all channels on which no mark overtakes."""
        return all(self._marks[channel] >= epoch for channel in self._in_step)

    def end(self, epoch: int) -> frozenset[ChannelId]:
        """Note that an epoch has ended; return the channels on which its mark has overtaken what is on its way."""
        self.ended = epoch
        self._missing = sum(mark <= epoch for mark in self._marks.values())
        return frozenset(channel for channel, mark in self._marks.items() if mark < epoch)
