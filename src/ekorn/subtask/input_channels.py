"""The input channels of a subtask: their watermarks, their idleness, and the watermark of the subtask.

The watermark of a subtask is the minimum over its active channels, and the watermark of a channel only advances. A
channel that was idle counts again once it has caught up, so that time never goes back.
"""

from __future__ import annotations

from collections.abc import Iterable

from ekorn.graph.addresses import ChannelId
from ekorn.types.time_bounds import MIN_TIMESTAMP


class _InputChannel:
    __slots__ = ("aligned", "ended", "idle", "watermark_ms")

    def __init__(self) -> None:
        self.watermark_ms = MIN_TIMESTAMP
        self.idle = False
        self.aligned = True  # counts for the minimum
        self.ended = False


class InputChannels:
    """All input channels of a subtask."""

    def __init__(self, channels: Iterable[ChannelId]) -> None:
        self._channels = {c: _InputChannel() for c in channels}
        self.watermark_ms = MIN_TIMESTAMP
        self.idle = False

    def advance(self, channel_id: ChannelId, watermark_ms: int) -> int | None:
        """Advance the watermark of a channel; return the subtask's new watermark if it advanced too."""
        channel = self._channels[channel_id]
        if channel.idle or watermark_ms <= channel.watermark_ms:
            return None
        channel.watermark_ms = watermark_ms
        if not channel.aligned and watermark_ms >= self.watermark_ms:
            channel.aligned = True
        return self._least()

    def set_idle(self, channel_id: ChannelId, idle: bool) -> int | None:
        """Mark a channel as idle or active; return the subtask's new watermark if it advanced."""
        channel = self._channels[channel_id]
        if channel.idle == idle:
            return None
        channel.idle = idle
        if not idle:
            channel.aligned = channel.watermark_ms >= self.watermark_ms
            self.idle = False
            return None
        channel.aligned = False
        if all(c.idle for c in self._channels.values()):
            self.idle = True
            # Flink: when the last active channel held the minimum, time first jumps to the channel that is furthest.
            if channel.watermark_ms == self.watermark_ms:
                return self._move_to(max(c.watermark_ms for c in self._channels.values()))
            return None
        return self._least()

    def end(self, channel_id: ChannelId) -> bool:
        """Take note that a channel has ended; return whether all channels have ended."""
        self._channels[channel_id].ended = True
        return self.all_ended

    @property
    def all_ended(self) -> bool:
        """Whether all channels have ended."""
        return all(c.ended for c in self._channels.values())

    def active(self) -> dict[ChannelId, int]:
        """Return the watermarks of the channels that count for the watermark of the subtask and have not ended."""
        counting = {of: channel for of, channel in self._channels.items() if channel.aligned and not channel.ended}
        return {of: channel.watermark_ms for of, channel in counting.items()}

    def _least(self) -> int | None:
        active = [c.watermark_ms for c in self._channels.values() if c.aligned]
        return self._move_to(min(active)) if active else None

    def _move_to(self, watermark_ms: int) -> int | None:
        if watermark_ms <= self.watermark_ms:
            return None
        self.watermark_ms = watermark_ms
        return watermark_ms
