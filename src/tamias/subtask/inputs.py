"""The input channels of a subtask: how far each has come, and what that makes of the whole.

The watermark of an operator is the least over its active channels, each of which only moves forward. A channel
that comes back from idleness joins again once it has caught up, so that time never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamias.types.time_bounds import MIN_TIMESTAMP

ChannelId = tuple[int, int]  # exchange, sender


class _Channel:
    __slots__ = ("aligned", "ended", "idle", "watermark")

    def __init__(self) -> None:
        self.watermark = MIN_TIMESTAMP
        self.idle = False
        self.aligned = True  # counts in the minimum
        self.ended = False


class Inputs:
    """All input channels of a subtask."""

    def __init__(self, channels: Iterable[ChannelId]) -> None:
        self._channels = {c: _Channel() for c in channels}
        self.watermark = MIN_TIMESTAMP
        self.idle = False

    def advance(self, channel_id: ChannelId, watermark: int) -> int | None:
        """Take a channel's watermark; the subtask's new one if that moved it."""
        channel = self._channels[channel_id]
        if channel.idle or watermark <= channel.watermark:
            return None
        channel.watermark = watermark
        if not channel.aligned and watermark >= self.watermark:
            channel.aligned = True
        return self._least()

    def set_idle(self, channel_id: ChannelId, idle: bool) -> int | None:
        """Take a channel out of the minimum, or back in; the subtask's new watermark if that moved it."""
        channel = self._channels[channel_id]
        if channel.idle == idle:
            return None
        channel.idle = idle
        if not idle:
            channel.aligned = channel.watermark >= self.watermark
            self.idle = False
            return None
        channel.aligned = False
        if all(c.idle for c in self._channels.values()):
            self.idle = True
            # Flink: when the last active channel held the minimum, time first jumps to the furthest channel.
            if channel.watermark == self.watermark:
                return self._move_to(max(c.watermark for c in self._channels.values()))
            return None
        return self._least()

    def end(self, channel_id: ChannelId) -> bool:
        """A channel has ended; True when it was the last one."""
        self._channels[channel_id].ended = True
        return self.all_ended

    @property
    def all_ended(self) -> bool:
        """Whether nothing will ever come again."""
        return all(c.ended for c in self._channels.values())

    def _least(self) -> int | None:
        active = [c.watermark for c in self._channels.values() if c.aligned]
        return self._move_to(min(active)) if active else None

    def _move_to(self, watermark: int) -> int | None:
        if watermark <= self.watermark:
            return None
        self.watermark = watermark
        return watermark
