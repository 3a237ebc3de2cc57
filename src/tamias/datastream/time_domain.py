"""Which clock a timer waits for."""

from __future__ import annotations

from tamias.contracts.timers import TimeDomain

__all__ = ["TimeDomain"]
