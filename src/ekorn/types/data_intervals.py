"""Data types of spans of time: from days to seconds, and from years to months."""

from __future__ import annotations

from enum import Enum
from typing import Any

from ekorn.types.data_type import AtomicType

__all__ = ["DayTimeIntervalType", "IntervalUnit", "Resolution", "YearMonthIntervalType"]


class IntervalUnit(Enum):
    """A unit of a span of time; coarser units come first."""

    YEAR = 0
    MONTH = 1
    DAY = 2
    HOUR = 3
    MINUTE = 4
    SECOND = 5

    @property
    def is_year_month(self) -> bool:
        """Return whether the unit belongs to spans of years and months."""
        return self.value <= IntervalUnit.MONTH.value


class Resolution:
    """A unit, and the number of its digits."""

    def __init__(self, unit: IntervalUnit, precision: int = -1) -> None:
        self.unit = unit
        self.precision = precision

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resolution) and (self.unit, self.precision) == (other.unit, other.precision)

    def __hash__(self) -> int:
        return hash((self.unit, self.precision))

    def __repr__(self) -> str:
        return self.unit.name if self.precision < 0 else f"{self.unit.name}({self.precision})"


class _IntervalType(AtomicType):
    def __init__(self, upper: Resolution, lower: Resolution, nullable: bool = True) -> None:
        super().__init__(nullable)
        if upper.unit.is_year_month != lower.unit.is_year_month or upper.unit.value > lower.unit.value:
            raise ValueError(f"an interval is from a coarser to a finer unit of one kind, got {upper!r} to {lower!r}")
        self.upper = upper
        self.lower = lower

    def _arguments(self) -> tuple[Any, ...]:
        return self.upper, self.lower


class DayTimeIntervalType(_IntervalType):
    """Spans from days to seconds: `datetime.timedelta`."""


class YearMonthIntervalType(_IntervalType):
    """Spans from years to months: `int`, the number of months."""
