"""Decides how much the next epoch reads, in a job that runs in epochs.

Every epoch has a fixed cost. The pacer starts from `GUESSED_FIXED_MS` and then measures it. Under backlog an epoch is
as long as the target, so that the fixed cost is a small part of it. Without backlog an epoch reads what has arrived.

The latency of a record includes the rest of its epoch. A slow job under constant backlog would have the longest epochs
and the highest latency. Its epochs are therefore shorter, down to the latency target.

The pacer is pure: measurements in, a budget out.
"""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.config import options
from ekorn.errors import ConfigurationError

__all__ = ["EpochBudget", "EpochPacer", "EpochReport", "Pace", "PacingSettings"]

FIRST_RECORDS = 1_000  # the first epoch is small, so that the first results appear soon
MOST_RECORDS = 10_000_000
FASTEST_CHANGE = 4.0  # the largest factor by which one epoch changes the budget
SHORTEST_TARGET_MS = 50
IDLE_SOURCE_MS = 50  # how long sources read in an epoch without backlog
SHORTEST_WAIT_MS = 10
LONGEST_WAIT_MS = 50
GUESSED_FIXED_MS = 100.0  # the fixed cost of an epoch until it is measured; two levels took 67 ms on Spark 4
LEARNING_RATE = 0.3  # the weight of the last epoch in a moving average
MEMORY = 0.9  # the factor by which the weight of an epoch in the fit decreases with every later epoch
FAR_OFF = 1.5  # ratio to the prediction beyond which the fit restarts
FAST_PER_MS = 20.0  # records per millisecond above which a job gets the whole target
LEAST_VARIATION = 0.15  # the relative deviation of the records per epoch below which no line is fitted


@dataclass(frozen=True, slots=True)
class PacingSettings:
    """The limits of an epoch's cost.

    Args:
        target_ms: The wall time of an epoch under backlog.
        max_bytes: The most bytes that one source subtask reads in one epoch. This bounds memory.
        checkpoint_interval_ms: The checkpoint interval, or None without checkpoints. An epoch is not longer than the
            interval, so that checkpoints are on time.
        latency_target_ms: The wall time of an epoch under backlog in the slowest jobs; None for `target_ms`.
    """

    target_ms: int = options.EPOCH_TARGET.default
    max_bytes: int = options.EPOCH_SOURCE_BYTES.default
    checkpoint_interval_ms: int | None = None
    latency_target_ms: int | None = options.EPOCH_LATENCY_TARGET.default

    def __post_init__(self) -> None:
        latency = ("latency_target_ms", self.latency_target_ms)
        for name, value in (("target_ms", self.target_ms), ("max_bytes", self.max_bytes), latency):
            if value is not None and value < 1:
                raise ConfigurationError(f"epoch setting {name!r} is {value}, but must be at least 1")

    @property
    def effective_target_ms(self) -> int:
        """The target, limited by the checkpoint interval."""
        limits = [self.target_ms]
        if self.checkpoint_interval_ms is not None:
            limits.append(self.checkpoint_interval_ms)
        return max(SHORTEST_TARGET_MS, min(limits))

    def target_at(self, records_per_ms: float) -> float:
        """Return the target of a job by the records that it processes per millisecond of work.

        >>> settings = PacingSettings(target_ms=2_000, latency_target_ms=500)
        >>> [settings.target_at(rate) for rate in (0.0, 10.0, 20.0, 700.0)]
        [500.0, 1250.0, 2000.0, 2000.0]
        """
        most = self.effective_target_ms
        least = most if self.latency_target_ms is None else max(SHORTEST_TARGET_MS, min(most, self.latency_target_ms))
        return least + (most - least) * min(1.0, records_per_ms / FAST_PER_MS)


@dataclass(frozen=True, slots=True)
class EpochBudget:
    """The limits of one epoch. A source subtask stops reading at the first limit that it reaches."""

    max_records_per_source_subtask: int
    max_source_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class Pace:
    """The budget of the next epoch, and the wait before it."""

    budget: EpochBudget
    idle_wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class EpochReport:
    """The measurements of one epoch.

    Args:
        wall_ms: The time from its start to its last acknowledgement.
        records: The records that all source subtasks have read.
        backlog: Whether a source subtask stopped at its budget although more records were there to read.
        bytes_read: The bytes that all source subtasks have sent, or those of the driver's output if they are more.
    """

    wall_ms: float
    records: int
    backlog: bool
    bytes_read: int = 0


class EpochPacer:
    """Decides the size of the next epoch from the measurements of the last ones.

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
        self._records_per_ms: float | None = None  # of a source subtask that used its budget; None before that
        self._job_per_ms = FAST_PER_MS  # records of all source subtasks per millisecond of work
        self._wait_ms = 0
        self._is_first = True
        self._line = _FittedLine()
        self.pace = self._plan(source_ms=IDLE_SOURCE_MS)

    def observe(self, report: EpochReport) -> Pace:
        """Plan the next epoch by the measurements of the last one."""
        was_first, self._is_first = self._is_first, False
        if was_first and report.backlog and report.wall_ms > self._settings.target_ms:
            return self.pace  # Spark has started its workers in this epoch, so its time is not representative
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
        self._job_per_ms += LEARNING_RATE * (min(report.records / work_ms, FAST_PER_MS) - self._job_per_ms)
        # If the sources stopped at the limit of bytes or time, the record budget was not used.
        budget_was_used = 2 * report.records >= self._records
        ratio = self._work_target_ms() / work_ms
        if budget_was_used:
            self._records_per_ms = self._records / work_ms
        if budget_was_used or ratio <= 1:
            self._records = round(self._records * min(max(ratio, 1 / FASTEST_CHANGE), FASTEST_CHANGE))
        if report.bytes_read > 0 and report.records > 0:
            affordable = self._settings.max_bytes * report.records // report.bytes_read
            self._records = min(self._records, affordable)
        self._records = min(max(1, self._records), MOST_RECORDS)

    def _settle(self) -> None:
        """Limit the budget to `IDLE_SOURCE_MS` of data, so that the first results of the next burst appear soon."""
        if self._records_per_ms is not None:
            enough = round(self._records_per_ms * IDLE_SOURCE_MS)
            self._records = min(self._records, max(FIRST_RECORDS, enough))

    def _learn_fixed_cost(self, report: EpochReport) -> None:
        if report.records == 0 and not report.backlog:
            self._fixed_ms += LEARNING_RATE * (report.wall_ms - self._fixed_ms)
        elif report.backlog:
            self._learn_fixed_cost_under_backlog(report)
        # The fixed cost of an epoch cannot exceed its whole cost.
        self._fixed_ms = max(0.0, min(self._fixed_ms, report.wall_ms))

    def _learn_fixed_cost_under_backlog(self, report: EpochReport) -> None:
        """Fit wall time over records by a line, and take its height at zero records.

        A fixed cost above the target would otherwise be taken for the cost of records, and the budget would shrink to
        nothing.
        """
        self._line.add(report.records, report.wall_ms)
        fixed_ms = self._line.at_zero()
        if fixed_ms is not None:
            self._fixed_ms = fixed_ms

    def _work_target_ms(self) -> float:
        # A target below the fixed cost cannot be met. At least half of the target is for records, so the job advances.
        target_ms = self._settings.target_at(self._job_per_ms)
        return max(target_ms - self._fixed_ms, target_ms / 2)

    def _plan(self, *, source_ms: int) -> Pace:
        return Pace(EpochBudget(self._records, source_ms, self._settings.max_bytes), self._wait_ms)


class _FittedLine:
    """A line fitted to measurements by least squares. Older measurements weigh less."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a measurement. If it is far off the line, the speed of the job has changed, and the fit restarts."""
        line = self._line()
        if line is not None and not 1 / FAR_OFF <= y / max(line[0] + line[1] * x, 1.0) <= FAR_OFF:
            self._forget()
        sums = ((self._weight, 1.0), (self._x, x), (self._y, y), (self._xx, x * x), (self._xy, x * y))
        self._weight, self._x, self._y, self._xx, self._xy = (MEMORY * old + new for old, new in sums)

    def at_zero(self) -> float | None:
        """Return the height of the line at zero, or None if the measurements are too close together."""
        line = self._line()
        return None if line is None else line[0]

    def _line(self) -> tuple[float, float] | None:
        """Return the height at zero and the slope, neither below zero."""
        if not self._weight:
            return None
        mean_x, mean_y = self._x / self._weight, self._y / self._weight
        variance = self._xx / self._weight - mean_x * mean_x
        if variance <= (LEAST_VARIATION * mean_x) ** 2:
            return None
        slope = max(0.0, (self._xy / self._weight - mean_x * mean_y) / variance)
        return max(0.0, mean_y - slope * mean_x), slope
