"""The protocol of a metric reporter, and the samples that it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

__all__ = ["MetricReporter", "Sample"]


class Sample(NamedTuple):
    """One number: Flink's scope, the dotted name below it, the variables of the scope, and the value."""

    scope: str
    name: str
    variables: Mapping[str, str]
    value: float


class MetricReporter(Protocol):
    """Sends metrics to a monitoring system.

    One thread calls a reporter. An exception of a reporter is logged, and does not affect the job.
    """

    def report(self, samples: Sequence[Sample]) -> None:
        """Send the current metrics."""

    def close(self) -> None:
        """Release what the reporter holds. Called when the job ends."""
