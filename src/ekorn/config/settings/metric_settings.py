"""The settings of metrics that a job takes on request: latencies from source to operator, and of accesses to state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ekorn.config import options
from ekorn.config.configuration import Configuration

__all__ = ["LatencySettings", "StateLatencySettings", "latency_settings", "state_latency_settings"]


@dataclass(frozen=True)
class LatencySettings:
    """How latencies from source to operator are taken.

    Attributes:
        interval_ms: The time between two of them; 0: none are taken.
        granularity: Whether sources, and their subtasks, are told apart.
        history_size: Over how many of the latest ones percentiles are.
    """

    interval_ms: int = 0
    granularity: Literal["single", "operator", "subtask"] = "operator"
    history_size: int = 128


@dataclass(frozen=True)
class StateLatencySettings:
    """How accesses to keyed state are timed.

    Attributes:
        every: Each access of this number is timed.
        history_size: Over how many of the latest ones percentiles are.
        name_as_variable: Whether the name of the state is a variable of the metric, instead of a part of its name.
    """

    every: int = 100
    history_size: int = 128
    name_as_variable: bool = True


def latency_settings(configuration: Configuration) -> LatencySettings:
    """Read how latencies from source to operator are taken."""
    return LatencySettings(
        options.LATENCY_TRACKING_INTERVAL.read(configuration),
        options.LATENCY_GRANULARITY.read(configuration),
        options.LATENCY_HISTORY.read(configuration),
    )


def state_latency_settings(configuration: Configuration) -> StateLatencySettings | None:
    """Read how accesses to keyed state are timed; None if they are not."""
    if not options.STATE_LATENCY_ENABLED.read(configuration):
        return None
    return StateLatencySettings(
        options.STATE_LATENCY_EVERY.read(configuration),
        options.STATE_LATENCY_HISTORY.read(configuration),
        options.STATE_LATENCY_NAME_AS_VARIABLE.read(configuration),
    )
