"""The ends of event time: the timestamp of a record without one, and the watermark after the last record."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_TIMESTAMP", "MIN_TIMESTAMP", "watermark_text"]

# Flink: timestamps are Java longs. Programs see both ends (a source's first `record_timestamp`, the last watermark), so
# the ends keep Java's values although Python integers have no ends.
MIN_TIMESTAMP: Final = -(2**63)
MAX_TIMESTAMP: Final = 2**63 - 1


def watermark_text(watermark_ms: int) -> str:
    """Return a watermark as people read it.

    >>> watermark_text(5000), watermark_text(MAX_TIMESTAMP), watermark_text(MIN_TIMESTAMP)
    ('5000 ms', 'end of input', 'none')
    """
    if watermark_ms == MAX_TIMESTAMP:
        return "end of input"
    return "none" if watermark_ms == MIN_TIMESTAMP else f"{watermark_ms} ms"
