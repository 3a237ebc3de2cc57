"""`TimeCharacteristic`: the notion of time of a job, as in Flink 1.x."""

from __future__ import annotations

import enum

__all__ = ["TimeCharacteristic"]


class TimeCharacteristic(enum.Enum):
    """The time that `time_window` uses, and how sources set timestamps."""

    ProcessingTime = 0
    """The clock of the machine; timestamps and watermarks of source functions are ignored."""

    IngestionTime = 1
    """Sources give records the time of the machine's clock, and emit watermarks from it."""

    EventTime = 2
    """Timestamps and watermarks come from the data. The default."""
