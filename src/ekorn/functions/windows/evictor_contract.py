"""The contract of evictors: an evictor removes records from a window when it fires."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from ekorn.functions.windows.window_values import Window

if TYPE_CHECKING:
    from ekorn.metrics.metricbase import MetricGroup

T = TypeVar("T")
W = TypeVar("W", bound=Window)


class TimestampedValue(Generic[T]):
    """A record of a window with its timestamp, as evictors see it."""

    __slots__ = ("_timestamp", "_value")

    def __init__(self, value: T, timestamp: int | None = None) -> None:
        self._value = value
        self._timestamp = timestamp

    def get_value(self) -> T:
        """Return the record."""
        return self._value

    def get_timestamp(self) -> int | None:
        """Return the record's timestamp in milliseconds, or None if it has none."""
        return self._timestamp

    def has_timestamp(self) -> bool:
        """Return whether the record has a timestamp."""
        return self._timestamp is not None

    def __repr__(self) -> str:
        return f"TimestampedValue({self._value!r}, {self._timestamp})"


class Evictor(ABC, Generic[T, W]):
    """Removes records from a window when it fires, before or after the window function.

    The elements are a list in order of arrival. An element that is removed from the list is gone for good.
    """

    class EvictorContext(ABC):
        """Gives an evictor the clocks and the operator's metrics."""

        @abstractmethod
        def get_current_processing_time(self) -> int:
            """Return the processing time, in milliseconds."""

        @abstractmethod
        def get_metric_group(self) -> MetricGroup:
            """Return the operator's metrics."""

        @abstractmethod
        def get_current_watermark(self) -> int:
            """Return the operator's watermark."""

    @abstractmethod
    def evict_before(
        self, elements: list[TimestampedValue[T]], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Remove elements before the window function is called."""

    @abstractmethod
    def evict_after(
        self, elements: list[TimestampedValue[T]], size: int, window: W, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Remove elements after the window function was called."""
