"""Decides which parallelism the load of a job needs. Pure: measurements in, a decision out.

The work of a job is its utilization times its parallelism: the subtasks that would be busy all the time. The wanted
parallelism is the lowest at which this work leaves the utilization at or below its target. It depends on the work
alone, so under a constant load a job is rescaled once and then stays.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from ekorn.config.settings.elasticity_settings import AutoscalerSettings

__all__ = ["Autoscaler", "Load", "ScalingDecision", "wanted_parallelism"]

_ROUNDING = 1e-9  # the rounding error of a product of floats, which must not add a subtask
_FULL_WINDOW = 0.5  # a mean over less than this share of the window decides nothing


class Load(NamedTuple):
    """What was measured of a job.

    Attributes:
        utilization: The share of the time that the job was busy, from 0 to 1.
        has_backlog: Whether a source had more to read than it could.
    """

    utilization: float
    has_backlog: bool


class ScalingDecision(NamedTuple):
    """A parallelism, and why."""

    parallelism: int
    reason: str


class _Measured(NamedTuple):
    at_ms: int
    load: Load


def wanted_parallelism(load: Load, parallelism: int, settings: AutoscalerSettings) -> int:
    """Return the parallelism that a load needs; the present one if the utilization is within its boundary.

    Example:
        >>> settings = AutoscalerSettings(target=0.7, boundary=0.2)
        >>> [wanted_parallelism(Load(busy, False), 4, settings) for busy in (0.1, 0.6, 0.95)]
        [1, 4, 6]
    """
    needed = math.ceil(load.utilization * parallelism / settings.target - _ROUNDING)
    within_boundary = abs(load.utilization - settings.target) <= settings.boundary
    if load.has_backlog:
        # The job does not keep up, so it must not get smaller, and its target decides whether it gets larger.
        needed = max(needed, parallelism)
    elif within_boundary:
        needed = parallelism
    return min(max(needed, settings.least), settings.most)


class Autoscaler:
    """Takes the mean of the load over a window, and leaves the job alone for a while after each rescale.

    Args:
        settings: The target, the boundary and the times.
        now_ms: When the job started.
    """

    def __init__(self, settings: AutoscalerSettings, now_ms: int) -> None:
        self._settings = settings
        self._rests_until_ms = now_ms + settings.stabilization_ms
        self._measured: deque[_Measured] = deque()

    def observe(self, now_ms: int, load: Load, parallelism: int) -> ScalingDecision | None:
        """Take note of a load; return the decision to rescale the job, or None."""
        if now_ms < self._rests_until_ms:
            return None
        self._measured.append(_Measured(now_ms, load))
        while self._measured[0].at_ms < now_ms - self._settings.window_ms:
            self._measured.popleft()
        if now_ms - self._rests_until_ms < self._settings.window_ms * _FULL_WINDOW:
            return None
        mean = self._mean()
        wanted = wanted_parallelism(mean, parallelism, self._settings)
        if wanted == parallelism:
            return None
        behind = ", and its sources have a backlog" if mean.has_backlog else ""
        return ScalingDecision(wanted, f"it was busy {mean.utilization:.0%} of the time{behind}")

    def _mean(self) -> Load:
        count = len(self._measured)
        behind = sum(each.load.has_backlog for each in self._measured)
        return Load(sum(each.load.utilization for each in self._measured) / count, 2 * behind > count)

    def rescaled(self, now_ms: int) -> None:
        """Note that a rescale has ended, whether it succeeded or not: what was measured before it counts no more."""
        self._measured.clear()
        self._rests_until_ms = now_ms + self._settings.stabilization_ms
