"""Decides when a periodic checkpoint is due, from the coordinator's settings and the checkpoints before it."""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.config.settings.checkpoint_settings import CheckpointSettings
from ekorn.errors import ConfigurationError

__all__ = ["CoordinatorSettings", "Schedule"]

SHORTEST_MS = 10  # Flink: intervals and timeouts below this are refused
LONGEST_PAUSE_MS = 365 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """The intervals and limits that the checkpoint coordinator obeys.

    Args:
        interval_ms: The time between two periodic triggers; None if checkpoints are only taken on request.
        timeout_ms: A checkpoint that has not all its answers after this time expires.
        min_pause_ms: The least time from the completion of a checkpoint to the next periodic trigger.
        max_concurrent: The most checkpoints in flight at once.
        tolerable_failures: This many failures in a row are tolerated; the next one fails the job. None: any number.
        after_tasks_finish: Keep taking checkpoints after some subtasks have read their whole input.
        backlog_interval_ms: The time between two periodic triggers while sources have a backlog; 0 for no triggers
            during a backlog, None for the usual interval.
    """

    interval_ms: int | None
    timeout_ms: int = CheckpointSettings.timeout_ms
    min_pause_ms: int = CheckpointSettings.min_pause_ms
    max_concurrent: int = CheckpointSettings.max_concurrent
    tolerable_failures: int | None = CheckpointSettings.tolerable_failures
    after_tasks_finish: bool = CheckpointSettings.after_tasks_finish
    backlog_interval_ms: int | None = CheckpointSettings.backlog_interval_ms

    def __post_init__(self) -> None:
        for name, value, least in (
            ("interval", self.interval_ms, SHORTEST_MS),
            ("timeout", self.timeout_ms, SHORTEST_MS),
            ("min pause", self.min_pause_ms, 0),
            ("max concurrent checkpoints", self.max_concurrent, 1),
            ("tolerable checkpoint failures", self.tolerable_failures, 0),
        ):
            if value is not None and value < least:
                raise ConfigurationError(f"checkpoint setting {name!r} is {value}, but must be at least {least}")
        slower, usual = self.backlog_interval_ms, self.interval_ms
        if slower is not None and usual is not None and slower != 0 and slower < usual:
            raise ConfigurationError(
                f"checkpoint setting 'interval during backlog' is {slower}, but must be 0 or at least the interval, "
                f"{usual}"
            )

    @property
    def pause_ms(self) -> int:
        """The effective pause."""
        return min(self.min_pause_ms, LONGEST_PAUSE_MS)

    @property
    def period_ms(self) -> int | None:
        """The effective interval: never shorter than the pause."""
        return None if self.interval_ms is None else max(self.interval_ms, self.pause_ms)

    @property
    def concurrent(self) -> int:
        """The effective limit: 1 with a pause, which is measured from the end of the previous checkpoint."""
        return 1 if self.pause_ms > 0 else self.max_concurrent


class Schedule:
    """The due time of the next periodic checkpoint."""

    def __init__(self, settings: CoordinatorSettings) -> None:
        self._settings = settings
        self._next_ms: int | None = None  # a multiple of the interval after the start
        self._last_ms = 0  # the last trigger, or the start
        self._completed_ms: int | None = None
        self.backlog = False  # whether a source has a backlog

    def begin(self, now_ms: int) -> None:
        """Start, or restart with the job."""
        period_ms = self._settings.period_ms
        self._next_ms = None if period_ms is None else now_ms + period_ms
        self._last_ms = now_ms

    def due_ms(self) -> int | None:
        """Return when the next checkpoint is due; None if none is to come."""
        due_ms, slower = self._next_ms, self._settings.backlog_interval_ms
        if self.backlog and slower is not None and due_ms is not None:
            due_ms = None if slower == 0 else max(due_ms, self._last_ms + slower)
        if due_ms is None or self._completed_ms is None:
            return due_ms
        return max(due_ms, self._completed_ms + self._settings.pause_ms)

    def triggered(self, now_ms: int) -> None:
        """Note that a periodic checkpoint is begun. Triggers that were missed meanwhile are not made up for."""
        assert self._next_ms is not None and self._settings.period_ms is not None
        period_ms = self._settings.period_ms
        self._last_ms = now_ms
        self._next_ms += period_ms * ((now_ms - self._next_ms) // period_ms + 1)

    def completed(self, now_ms: int) -> None:
        """Note that a checkpoint is complete. Flink: only a completed checkpoint starts a pause."""
        self._completed_ms = now_ms
