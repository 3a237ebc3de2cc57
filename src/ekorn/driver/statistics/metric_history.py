"""The figures of a job over the last hours, for plots: fine for the last minutes, coarser before.

The history has a fixed size, whatever the job does: 300 points about a second apart, 360 points of ten of these, and
1,440 points of six of those, which is a day.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Figures", "Memory", "MetricHistory"]

_STEP_S = 1.0


class Memory(NamedTuple):
    """The resident memory of processes, in bytes.

    Attributes:
        driver: That of the driver, with the JVM left out, which is a process of its own.
        slots: That of all slots on the driver's machine; None if no slot is a process there.
    """

    driver: int
    slots: int | None


class Figures(NamedTuple):
    """The figures of a job between two moments.

    Attributes:
        at_ms: The later moment, in milliseconds since 1970.
        records_per_second: The records that the sources read.
        latency_ms: The longest time that an epoch took from its order to its last subtask; in a continuous job this is
            the time of a mark from the sources to the last subtask.
        busy: The part of the time that the busiest vertex worked, from 0 to 1.
        blocked: The part of the time that the most back-pressured vertex waited for those behind it.
        restarts: How often the job had restarted.
        state_bytes: The size of the state in the last completed checkpoint; None before the first one.
        checkpoint_ms: How long the last completed checkpoint took.
        checkpoint_bytes: The bytes that the last completed checkpoint wrote.
        memory: The memory of the driver and the slots.
    """

    at_ms: int
    records_per_second: float
    latency_ms: float
    busy: float
    blocked: float
    restarts: int
    state_bytes: int | None
    checkpoint_ms: int | None
    checkpoint_bytes: int | None
    memory: Memory


class _Tier:
    """Points of one step.

    Args:
        most: How many points are kept.
        merges: How many points of the tier below make one of this tier.
    """

    def __init__(self, most: int, merges: int) -> None:
        self.points: tuple[Figures, ...] = ()
        self._most = most
        self._merges = merges
        self._waiting: list[Figures] = []

    def add(self, point: Figures) -> Figures | None:
        """Add a point of the tier below; return the point that it completes, if any."""
        self._waiting.append(point)
        if len(self._waiting) < self._merges:
            return None
        whole, self._waiting = _merged(self._waiting), []
        self.points = (*self.points[1 - self._most :], whole)
        return whole


class MetricHistory:
    """The figures of one job. The job's thread writes, any thread reads."""

    def __init__(self, now_s: float) -> None:
        self._tiers = (_Tier(300, 1), _Tier(360, 10), _Tier(1440, 6))
        self._last_s = now_s
        self._records = 0
        self._latency_ms = 0.0

    def count(self, records: int, latency_ms: float) -> None:
        """Count one epoch: the records that its sources read, and how long it took."""
        self._records += records
        self._latency_ms = max(self._latency_ms, latency_ms)

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time for the next point."""
        return now_s - self._last_s >= _STEP_S

    def add(
        self,
        now_s: float,
        at_ms: int,
        *,
        busy: float,
        blocked: float,
        restarts: int,
        state_bytes: int | None,
        checkpoint_ms: int | None,
        checkpoint_bytes: int | None,
        memory: Memory,
    ) -> None:
        """Add a point with the epochs that were counted since the last one."""
        rate = self._records / max(now_s - self._last_s, 1e-3)
        point: Figures | None = Figures(
            at_ms,
            rate,
            self._latency_ms,
            busy,
            blocked,
            restarts,
            state_bytes,
            checkpoint_ms,
            checkpoint_bytes,
            memory,
        )
        for tier in self._tiers:
            point = None if point is None else tier.add(point)
        self._last_s, self._records, self._latency_ms = now_s, 0, 0.0

    def points(self, since_ms: int = -1) -> list[Figures]:
        """Return the points after a moment, the oldest first, each stretch of time as finely as it is kept."""
        found: list[Figures] = []
        finer: Sequence[Figures] = ()
        for tier in self._tiers:
            points = tier.points
            before_ms = finer[0].at_ms if finer else None
            older = [each for each in points if before_ms is None or each.at_ms < before_ms]
            found = [*older, *found]
            finer = points or finer
        return [each for each in found if each.at_ms > since_ms]


def _merged(points: Sequence[Figures]) -> Figures:
    """Merge points: rates and shares become means, the latency the maximum, and the other figures the latest value."""
    last = points[-1]
    took = [each.checkpoint_ms for each in points if each.checkpoint_ms is not None]
    return last._replace(
        records_per_second=sum(each.records_per_second for each in points) / len(points),
        latency_ms=max(each.latency_ms for each in points),
        busy=max(each.busy for each in points),
        blocked=max(each.blocked for each in points),
        checkpoint_ms=max(took, default=None),
    )
