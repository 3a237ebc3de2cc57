"""The base class of metrics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from ekorn.metrics.reports import Kind

__all__ = ["Metric"]


class Metric(ABC):
    """The base of every kind of metric."""

    __slots__ = ()
    kind: Kind  # decides how the values of several subtasks are combined

    @abstractmethod
    def values(self) -> Mapping[str, Any]:
        """Return the values to report by suffix. The empty suffix stands for the metric's own name."""
