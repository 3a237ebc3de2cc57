"""The ends of event time: the timestamp of a record without one, and the watermark after the last record."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_TIMESTAMP", "MIN_TIMESTAMP"]

# Flink: timestamps are Java longs. Programs see both ends (a source's first `record_timestamp`, the last watermark), so
# the ends keep Java's values although Python integers have no ends.
MIN_TIMESTAMP: Final = -(2**63)
MAX_TIMESTAMP: Final = 2**63 - 1
