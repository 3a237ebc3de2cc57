"""How much the next epoch reads: little when little is there, up to a second's work under backlog.

An epoch has a fixed cost (about 100 ms on Spark) whatever it carries. So under backlog it carries enough to make that
small, and when the input trickles it carries what has arrived, at once. Pure: measurements in, a budget out.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamias.errors import ConfigurationError

__all__ = ["EpochBudget", "EpochPacer", "EpochReport", "Pace", "PacingSettings"]

FIRST_RECORDS = 1_000  # the first result should come at once
MOST_RECORDS = 10_000_000
FASTEST_CHANGE = 4.0  # per epoch: one measurement, of one odd epoch, may not throw the job far off
SHORTEST_TARGET_MS = 50
IDLE_SOURCE_MS = 50  # of data in an epoch while there is no backlog
SHORTEST_WAIT_MS = 10
LONGEST_WAIT_MS = 50
GUESSED_FIXED_MS = 100.0


@dataclass(frozen=True, slots=True)
class PacingSettings:
    """What an epoch may cost.

    Args:
        target_ms: Wall time of an epoch under backlog.
        max_bytes: Read by one source subtask in one epoch: what bounds memory.
        checkpoint_interval_ms: When checkpoints are on; an epoch must not outlast it, or none would be on time.
    """

    target_ms: int = 1_000
    max_bytes: int = 64 << 20
    checkpoint_interval_ms: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("target_ms", self.target_ms), ("max_bytes", self.max_bytes)):
            if value < 1:
                raise ConfigurationError(f"epoch setting {name!r} is {value}, but must be at least 1")

    @property
    def effective_target_ms(self) -> int:
        """The target that counts."""
        limits = [self.target_ms]
        if self.checkpoint_interval_ms is not None:
            limits.append(self.checkpoint_interval_ms)
        return max(SHORTEST_TARGET_MS, min(limits))


@dataclass(frozen=True, slots=True)
class EpochBudget:
    """A source subtask stops reading for this epoch at whichever of these it reaches first."""

    max_records_per_source_subtask: int
    max_source_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Pace:
    """The next epoch: how long to wait before it, and what it may read."""

    budget: EpochBudget
    idle_wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class EpochReport:
    """What an epoch turned out to be.

    Args:
        wall_ms: From its start to its last acknowledgement.
        records: Read by all source subtasks together.
        backlog: A source subtask stopped at its budget with more to read right then. Not: more will come some day.
        bytes_read: By all source subtasks together, where known.
    """

    wall_ms: float
    records: int
    backlog: bool
    bytes_read: int = 0


class EpochPacer:
    """Decides the size of the next epoch from how the last ones went.

    Example:
        >>> pacer = EpochPacer()
        >>> pacer.pace.budget.max_records_per_source_subtask
        1000
        >>> pacer.observe(EpochReport(wall_ms=102, records=1000, backlog=True)).budget.max_records_per_source_subtask
        4000
    """

    def __init__(self, settings: PacingSettings | None = None) -> None:
        self._settings = settings or PacingSettings()
        self._records = FIRST_RECORDS
        self._fixed_ms = GUESSED_FIXED_MS
        self._records_per_ms: float | None = None  # of a subtask that reads all it may; None until there was backlog
        self._wait_ms = 0
        self.pace = self._plan(source_ms=IDLE_SOURCE_MS)

    def observe(self, report: EpochReport) -> Pace:
        """Take the measurements of the epoch that has just ended; plan the next one."""
        self._learn_fixed_cost(report)
        if report.backlog:
            self._wait_ms = 0
            self._follow_backlog(report)
            self.pace = self._plan(source_ms=round(self._work_target_ms()))
        else:
            self._settle()
            quiet = report.records == 0 and self._wait_ms > 0
            self._wait_ms = min(self._wait_ms * 2, LONGEST_WAIT_MS) if quiet else SHORTEST_WAIT_MS
            self.pace = self._plan(source_ms=IDLE_SOURCE_MS)
        return self.pace

    def _follow_backlog(self, report: EpochReport) -> None:
        work_ms = max(1.0, report.wall_ms - self._fixed_ms)
        # Where bytes or time stopped the sources early, the number of records says nothing about the budget.
        budget_was_used = 2 * report.records >= self._records
        ratio = self._work_target_ms() / work_ms
        if budget_was_used:
            self._records_per_ms = self._records / work_ms
        elif ratio > 1:
            return
        self._records = round(self._records * min(max(ratio, 1 / FASTEST_CHANGE), FASTEST_CHANGE))
        if report.bytes_read > 0 and report.records > 0:
            affordable = self._settings.max_bytes * report.records // report.bytes_read
            self._records = min(self._records, affordable)
        self._records = min(max(1, self._records), MOST_RECORDS)

    def _settle(self) -> None:
        """Without backlog, allow for tens of milliseconds of data: a burst then shows its first results early."""
        if self._records_per_ms is not None:
            enough = round(self._records_per_ms * IDLE_SOURCE_MS)
            self._records = min(self._records, max(FIRST_RECORDS, enough))

    def _learn_fixed_cost(self, report: EpochReport) -> None:
        if report.records == 0 and not report.backlog:
            self._fixed_ms += 0.3 * (report.wall_ms - self._fixed_ms)
        # Nothing costs less than the fixed cost.
        self._fixed_ms = max(0.0, min(self._fixed_ms, report.wall_ms))

    def _work_target_ms(self) -> float:
        # A target at or below the fixed cost cannot be met. Half of it for work keeps the job moving.
        target_ms = self._settings.effective_target_ms
        return max(target_ms - self._fixed_ms, target_ms / 2)

    def _plan(self, *, source_ms: int) -> Pace:
        return Pace(EpochBudget(self._records, source_ms, self._settings.max_bytes), self._wait_ms)
