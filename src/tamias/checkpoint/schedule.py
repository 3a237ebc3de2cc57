"""When a periodic checkpoint is due: how often, how long, how many, and the times that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from tamias.errors import ConfigurationError

__all__ = ["CoordinatorSettings", "Schedule"]

SHORTEST_MS = 10  # Flink: intervals and timeouts below this are refused
LONGEST_PAUSE_MS = 365 * 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """How often, how long, how many.

    Args:
        interval_ms: Between two periodic triggers; None when checkpoints are only taken on request.
        timeout_ms: A checkpoint without all its answers after this is given up.
        min_pause_ms: From the completion of a checkpoint to the next periodic trigger, at least.
        max_concurrent: Checkpoints under way at once.
        tolerable_failures: So many failures in a row are borne; the next one fails the job. None: any number.
        after_tasks_finish: Checkpoints go on when some subtasks have read their whole input.
        backlog_interval_ms: Between two periodic triggers while sources have a backlog, 0 for no triggers then; None
            for the same as always.
    """

    interval_ms: int | None
    timeout_ms: int = 600_000
    min_pause_ms: int = 0
    max_concurrent: int = 1
    tolerable_failures: int | None = 0
    after_tasks_finish: bool = True
    backlog_interval_ms: int | None = None

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
        """The pause that counts."""
        return min(self.min_pause_ms, LONGEST_PAUSE_MS)

    @property
    def period_ms(self) -> int | None:
        """The interval that counts: never shorter than the pause."""
        return None if self.interval_ms is None else max(self.interval_ms, self.pause_ms)

    @property
    def concurrent(self) -> int:
        """The limit that counts: a pause is measured from the end of the previous one, so it leaves room for one."""
        return 1 if self.pause_ms > 0 else self.max_concurrent


class Schedule:
    """When the next periodic checkpoint is due, given the last one and how it went."""

    def __init__(self, settings: CoordinatorSettings) -> None:
        self._settings = settings
        self._next_ms: int | None = None  # on the grid of intervals
        self._last_ms = 0  # the last trigger, or when the run began
        self._completed_ms: int | None = None
        self.backlog = False  # whether sources have one

    def begin(self, now_ms: int) -> None:
        """The job starts, or starts again."""
        period_ms = self._settings.period_ms
        self._next_ms = None if period_ms is None else now_ms + period_ms
        self._last_ms = now_ms

    def due_ms(self) -> int | None:
        """When the next one is due; None when there is to be none."""
        due_ms, slower = self._next_ms, self._settings.backlog_interval_ms
        if self.backlog and slower is not None and due_ms is not None:
            due_ms = None if slower == 0 else max(due_ms, self._last_ms + slower)
        if due_ms is None or self._completed_ms is None:
            return due_ms
        return max(due_ms, self._completed_ms + self._settings.pause_ms)

    def triggered(self, now_ms: int) -> None:
        """One is begun: the next follows on the grid of intervals, and those missed meanwhile are not made up for."""
        assert self._next_ms is not None and self._settings.period_ms is not None
        period_ms = self._settings.period_ms
        self._last_ms = now_ms
        self._next_ms += period_ms * max(1, (now_ms - self._next_ms) // period_ms + 1)

    def completed(self, now_ms: int) -> None:
        """One is complete. Flink: only a successful checkpoint starts a pause."""
        self._completed_ms = now_ms
