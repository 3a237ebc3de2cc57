"""Decides how much the next epoch reads: a little while the input trickles, up to a target time under backlog.

An epoch has a fixed cost, whatever it carries. The pacer begins with `GUESSED_FIXED_MS` and measures it. Under backlog
an epoch carries enough to make the fixed cost small. While the input trickles, an epoch carries what has arrived.

A source that always has more to read than a slow operator takes looks like a backlog, and never ends. The slower a job
is, the shorter are its epochs, down to the latency target: a record waits for the rest of its epoch, and the sources
read no more than the operators take in that time.

The pacer is pure: measurements in, a budget out.
"""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.config import options
from ekorn.errors import ConfigurationError

__all__ = ["EpochBudget", "EpochPacer", "EpochReport", "MarkPacer", "Pace", "PacingSettings"]

FIRST_RECORDS = 1_000  # a small first epoch shows the first results at once
MOST_RECORDS = 10_000_000
FASTEST_CHANGE = 4.0  # per epoch: a single unusual epoch must not change the budget by much
SHORTEST_TARGET_MS = 50
IDLE_SOURCE_MS = 50  # how long sources read in an epoch without backlog
SHORTEST_WAIT_MS = 10
LONGEST_WAIT_MS = 50
FIRST_MARK_MS = 10
GUESSED_FIXED_MS = 100.0  # the fixed cost of an epoch until it is measured; two levels took 67 ms on Spark 4
LEARNING_RATE = 0.3  # of the fixed cost: one unusual epoch must not change it by much
MEMORY = 0.9  # the weight of an epoch in the fitted line, for each epoch after it
FAR_OFF = 1.5  # a measurement that is so many times its prediction, or as many times smaller, starts a new line
FAST_PER_MS = 20.0  # records of a job that gets the whole target; slower jobs get less, down to the latency target
LEAST_VARIATION = 0.15  # of the records of epochs, as a share of their mean: below it a line says too little


@dataclass(frozen=True, slots=True)
class PacingSettings:
    """The limits of an epoch's cost.

    Args:
        target_ms: The wall time of an epoch under backlog.
        max_bytes: The most bytes that one source subtask reads in one epoch. This bounds memory.
        checkpoint_interval_ms: The checkpoint interval, or None without checkpoints. An epoch must not outlast it, or
            no checkpoint would be on time.
        latency_target_ms: The wall time of an epoch under backlog in a job that processes few records a second. None:
            that of all jobs.
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
        """The effective target: not longer than the checkpoint interval."""
        limits = [self.target_ms]
        if self.checkpoint_interval_ms is not None:
            limits.append(self.checkpoint_interval_ms)
        return max(SHORTEST_TARGET_MS, min(limits))

    def target_at(self, records_per_ms: float) -> float:
        """Return the effective target of a job that processes so many records while it works.

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
    """The wait before the next epoch, and the amount that the epoch may read."""

    budget: EpochBudget
    idle_wait_ms: int = 0


@dataclass(frozen=True, slots=True)
class EpochReport:
    """The measurements of one epoch.

    Args:
        wall_ms: The time from its start to its last acknowledgement.
        records: The records that all source subtasks have read.
        backlog: Whether a source subtask stopped at its budget although more records were there to read.
        bytes_read: The bytes that all source subtasks have read, if known; or those of the output that the driver has
            got, if these are more.
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
        self._records_per_ms: float | None = None  # of a subtask with its budget used up; None before a backlog
        self._job_per_ms = FAST_PER_MS  # records that all source subtasks read in a millisecond of work
        self._wait_ms = 0
        self._is_first = True
        self._line = _FittedLine()
        self.pace = self._plan(source_ms=IDLE_SOURCE_MS)

    def observe(self, report: EpochReport) -> Pace:
        """Take the measurements of the epoch that has just ended, and plan the next one."""
        was_first, self._is_first = self._is_first, False
        if was_first and report.backlog and report.wall_ms > self._settings.target_ms:
            return self.pace  # Spark started its workers in it: its time says nothing about the next epoch
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
        # If bytes or time stopped the sources early, the number of records says nothing about the budget.
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
        """Without backlog, allow tens of milliseconds of data, so that a burst shows its first results early."""
        if self._records_per_ms is not None:
            enough = round(self._records_per_ms * IDLE_SOURCE_MS)
            self._records = min(self._records, max(FIRST_RECORDS, enough))

    def _learn_fixed_cost(self, report: EpochReport) -> None:
        if report.records == 0 and not report.backlog:
            self._fixed_ms += LEARNING_RATE * (report.wall_ms - self._fixed_ms)
        elif report.backlog:
            self._learn_fixed_cost_under_backlog(report)
        # The fixed cost of an epoch is never above its whole cost.
        self._fixed_ms = max(0.0, min(self._fixed_ms, report.wall_ms))

    def _learn_fixed_cost_under_backlog(self, report: EpochReport) -> None:
        """Take the cost that a line through the last epochs, wall time over records, has at no records.

        Without this a fixed cost above the target looks like the cost of records, and the budget shrinks to nothing.
        """
        self._line.add(report.records, report.wall_ms)
        fixed_ms = self._line.at_zero()
        if fixed_ms is not None:
            self._fixed_ms = fixed_ms

    def _work_target_ms(self) -> float:
        # A target at or below the fixed cost cannot be met. Half of the target for work keeps the job moving.
        target_ms = self._settings.target_at(self._job_per_ms)
        return max(target_ms - self._fixed_ms, target_ms / 2)

    def _plan(self, *, source_ms: int) -> Pace:
        return Pace(EpochBudget(self._records, source_ms, self._settings.max_bytes), self._wait_ms)


class MarkPacer:
    """Decides when the next epoch of a job that runs continuously ends: soon at first, so that short jobs end soon.

    >>> pacer = MarkPacer(200)
    >>> [pacer.next_ms() for _ in range(7)]
    [10, 20, 40, 80, 160, 200, 200]
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._wait_ms = FIRST_MARK_MS

    def next_ms(self) -> int:
        """Return the time until the next mark."""
        wait_ms = min(self._wait_ms, self._interval_ms)
        self._wait_ms = 2 * wait_ms  # of what was waited: a number that doubled with every mark would grow for ever
        return wait_ms


class _FittedLine:
    """A straight line through measurements, fitted by least squares; older measurements weigh less."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._weight = self._x = self._y = self._xx = self._xy = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a measurement. One far off the line starts a new line: the job has become faster or slower."""
        line = self._line()
        if line is not None and not 1 / FAR_OFF <= y / max(line[0] + line[1] * x, 1.0) <= FAR_OFF:
            self._forget()
        sums = ((self._weight, 1.0), (self._x, x), (self._y, y), (self._xx, x * x), (self._xy, x * y))
        self._weight, self._x, self._y, self._xx, self._xy = (MEMORY * old + new for old, new in sums)

    def at_zero(self) -> float | None:
        """Return the height of the line at zero, or None if the measurements lie too close together."""
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
