"""`TimerService`: current times and timers of a process function."""

from __future__ import annotations

from ekorn.functions.timer_service import TimerService

__all__ = ["TimerService"]
