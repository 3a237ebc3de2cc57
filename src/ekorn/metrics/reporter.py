"""What a metric reporter is, and the numbers that it is given."""

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
    """Sends metrics. Called by one thread; what it raises is logged and does not reach the job."""

    def report(self, samples: Sequence[Sample]) -> None:
        """Send the metrics of this moment."""

    def close(self) -> None:
        """End, with the job."""
