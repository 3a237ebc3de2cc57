"""Both clocks, and the timers."""

from __future__ import annotations

from tamias.contracts.timers import TimerService

__all__ = ["TimerService"]
