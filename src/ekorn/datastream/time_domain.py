"""`TimeDomain`: event time or processing time."""

from __future__ import annotations

from ekorn.functions.timer_service import TimeDomain

__all__ = ["TimeDomain"]
