"""Decides which input channels of a subtask wait for the mark of an epoch. Pure."""

from __future__ import annotations

from collections.abc import Collection

from tamias.graph.addresses import ChannelId

__all__ = ["Alignment"]


class Alignment:
    """The channels of a subtask on which the mark of the running epoch has come, and those on which it has not.

    A channel whose mark has come is ahead: its blobs belong to the next epoch, and wait until the mark has come on
    every channel. A channel that has ended carries marks all the same, so no channel is ever left out.

    >>> left, right = ChannelId(0, 0), ChannelId(0, 1)
    >>> alignment = Alignment([left, right])
    >>> alignment.arrive(left), alignment.is_ahead(left), alignment.is_ahead(right)
    (False, True, False)
    >>> alignment.arrive(right), alignment.is_ahead(left)
    (True, False)
    """

    def __init__(self, channels: Collection[ChannelId]) -> None:
        self._channels = frozenset(channels)
        self._missing = set(channels)

    def is_ahead(self, channel: ChannelId) -> bool:
        """Return whether the mark of the running epoch has come on a channel."""
        return channel not in self._missing

    def arrive(self, channel: ChannelId) -> bool:
        """Note that the mark has come on a channel; return whether that ends the epoch."""
        self._missing.remove(channel)
        if self._missing:
            return False
        self._missing.update(self._channels)
        return True
