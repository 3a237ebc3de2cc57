"""Which notion of time a job goes by, as programs for Flink 1.x say it."""

from __future__ import annotations

import enum

__all__ = ["TimeCharacteristic"]


class TimeCharacteristic(enum.Enum):
    """The time that `time_window` means, and what sources do about timestamps."""

    ProcessingTime = 0
    """The wall clock; timestamps and watermarks of source functions are ignored."""

    IngestionTime = 1
    """Sources stamp records with the wall clock and emit watermarks by it."""

    EventTime = 2
    """Timestamps and watermarks come from the data. The default."""
