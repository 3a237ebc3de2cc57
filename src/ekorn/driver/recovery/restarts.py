"""Decides whether a failed job is restarted, and when. Pure: the time of each failure in, a decision out.

A strategy lives as long as its job, because some strategies count failures over the whole life of the job. The settings
are values of `config/restart_strategy.py`, which also resolves the one that applies to a job.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from ekorn.config.restart_strategy import (
    ExponentialDelayRestartStrategyConfiguration,
    FailureRateRestartStrategyConfiguration,
    FixedDelayRestartStrategyConfiguration,
    NoRestartStrategyConfiguration,
    RestartStrategyConfiguration,
)
from ekorn.errors import ConfigurationError

__all__ = [
    "Decision",
    "ExponentialDelay",
    "FailureRate",
    "FixedDelay",
    "NoRestart",
    "RestartStrategy",
    "restart_strategy",
]


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision after a failure."""

    restart: bool
    delay_ms: int
    reason: str  # what was decided, and by which rule; empty if there is nothing to say


class RestartStrategy(Protocol):
    """A rule that decides about every failure of a job."""

    def on_failure(self, now_ms: int) -> Decision:
        """Decide about a failure. Called once for each failure, whatever part of the job has failed."""
        ...


def restart_strategy(settings: RestartStrategyConfiguration, chance: random.Random) -> RestartStrategy:
    """Return the strategy for a job.

    Args:
        settings: The resolved settings, not the fallback, which leaves the choice to the configuration.
        chance: The source of the jitter of exponential delays.

    Example:
        >>> strategy = restart_strategy(FixedDelayRestartStrategyConfiguration(1, 500), random.Random(0))
        >>> [strategy.on_failure(now_ms).restart for now_ms in (0, 1000)]
        [True, False]
    """
    match settings:
        case NoRestartStrategyConfiguration():
            return NoRestart(settings)
        case FixedDelayRestartStrategyConfiguration():
            return FixedDelay(settings)
        case FailureRateRestartStrategyConfiguration():
            return FailureRate(settings)
        case ExponentialDelayRestartStrategyConfiguration():
            return ExponentialDelay(settings, chance)
        case _:
            raise ConfigurationError(f"{settings!r} is not a restart strategy; resolve it with the configuration first")


class NoRestart:
    """Never restarts the job."""

    def __init__(self, settings: NoRestartStrategyConfiguration) -> None:
        self._reason = ""  # the user chose that the job ends
        if settings.is_default:
            self._reason = "no restart strategy is set: enable checkpointing, or set restart-strategy.type"

    def on_failure(self, now_ms: int) -> Decision:
        return Decision(False, 0, self._reason)


class FixedDelay:
    """Restarts the job a fixed number of times over its whole life, each time after the same delay."""

    def __init__(self, settings: FixedDelayRestartStrategyConfiguration) -> None:
        self._settings = settings
        self._failures = 0

    def on_failure(self, now_ms: int) -> Decision:
        self._failures += 1
        if self._failures > self._settings.restart_attempts:
            return Decision(False, 0, f"the strategy is to {self._settings.get_description()}")
        return Decision(True, self._settings.delay_ms, f"the strategy is to {self._settings.get_description()}")


class FailureRate:
    """Tolerates a number of failures within any interval of a given length; one more fails the job."""

    def __init__(self, settings: FailureRateRestartStrategyConfiguration) -> None:
        self._settings = settings
        # Flink: remembers one failure more than the limit, so that the limit itself is tolerated (FLINK-20752).
        self._times: deque[int] = deque(maxlen=settings.max_failures + 1)

    def on_failure(self, now_ms: int) -> Decision:
        self._times.append(now_ms)
        span_ms = now_ms - self._times[0]
        strategy = self._settings.get_description()
        reason = f"failure {len(self._times)} within {span_ms} ms; the strategy is to {strategy}"
        if len(self._times) == self._times.maxlen and span_ms <= self._settings.interval_ms:
            return Decision(False, 0, reason)
        return Decision(True, self._settings.delay_ms, reason)


class ExponentialDelay:
    """Delays each restart longer than the one before; starts again with a short delay after a time without failures."""

    def __init__(self, settings: ExponentialDelayRestartStrategyConfiguration, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance
        self._in_a_row = 0
        self._backoff_ms = float(settings.initial_backoff_ms)
        self._restart_at_ms: int | None = None  # the last planned restart, in the past or the future

    def on_failure(self, now_ms: int) -> Decision:
        settings = self._settings
        if self._restart_at_ms is not None:
            if now_ms < self._restart_at_ms:
                return Decision(True, self._restart_at_ms - now_ms, "another failure before the planned restart")
            if now_ms - self._restart_at_ms >= settings.reset_threshold_ms:
                self._in_a_row = 0
                self._backoff_ms = float(settings.initial_backoff_ms)
        self._in_a_row += 1
        reason = f"failure {self._in_a_row} in a row; the strategy is to {settings.get_description()}"
        if self._in_a_row > settings.attempts_before_reset:
            return Decision(False, 0, f"{reason}, at most {settings.attempts_before_reset} in a row")
        delay_ms = self._with_jitter(self._backoff_ms)
        self._backoff_ms = min(self._backoff_ms * settings.multiplier, float(settings.max_backoff_ms))
        self._restart_at_ms = now_ms + delay_ms
        return Decision(True, delay_ms, reason)

    def _with_jitter(self, backoff_ms: float) -> int:
        offset_ms = backoff_ms * self._settings.jitter
        shifted_ms = backoff_ms + self._chance.uniform(-offset_ms, offset_ms)
        return round(min(max(shifted_ms, self._settings.initial_backoff_ms), self._settings.max_backoff_ms))
