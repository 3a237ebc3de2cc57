"""Decides when the operators of a subtask that runs in epochs emit their periodic watermarks.

In continuous execution `slot/continuous/step_scheduler.py` decides it.
"""

from __future__ import annotations

from collections.abc import Callable

from ekorn.clock import Clock
from ekorn.graph.job_graph import ExecutionSettings

__all__ = ["PeriodicWatermarks"]


class PeriodicWatermarks:
    """When the periodic watermarks of one subtask are due.

    Flink emits them at `pipeline.auto-watermark-interval`. If the program sets the interval, so do epochs: a long epoch
    emits them several times, between two runs of records, and several short epochs emit them once. A program that does
    not set the interval gets its results with the epoch: watermarks are emitted at the end of each.

    Args:
        settings: The settings of the job.
        clock: The source of time.
        emit: Makes all operators of the subtask emit.
        continuous: Whether the subtask runs continuously, so that nothing is due within or after an epoch.

    Attributes:
        ends_epoch: Whether the epoch that was decided on last ends with watermarks.
    """

    def __init__(
        self, settings: ExecutionSettings, clock: Clock, emit: Callable[[], None], *, continuous: bool
    ) -> None:
        by_interval = settings.watermark_interval_set and settings.auto_watermark_interval_ms > 0
        applies = by_interval and not settings.batch and not continuous
        self._interval_s = settings.auto_watermark_interval_ms / 1000 if applies else None
        self._monotonic = clock.monotonic
        self._emit = emit
        self._next_s = self._monotonic() + (self._interval_s or 0.0)
        self.ends_epoch = True

    def between_runs(self) -> None:
        """Emit watermarks if they are due. Called within an epoch, after each run of records."""
        if self._interval_s is not None and self._is_due(self._interval_s):
            self._emit()

    def decide_end(self) -> None:
        """Decide whether the epoch whose input has been read ends with watermarks."""
        self.ends_epoch = self._interval_s is None or self._is_due(self._interval_s)

    def _is_due(self, interval_s: float) -> bool:
        now_s = self._monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + interval_s
        return True
