"""Both clocks, and the timers."""

from __future__ import annotations

from tamias.functions.timer_service import TimerService

__all__ = ["TimerService"]
