"""Evictors: the contract, and those built in, which evict by count, by distance from the last record, by age."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ekorn.functions.windows.record_triggers import delta_of
from ekorn.functions.windows.window_values import Window
from ekorn.types.time import Duration, Time, millis_of

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


_Elements = list[TimestampedValue[Any]]


class _OneRuleEvictor(Evictor[Any, Any]):
    """Applies one rule, before or after the window function."""

    def __init__(self, do_evict_after: bool) -> None:
        self.do_evict_after = do_evict_after

    def _text(self, limit: float) -> str:
        return f"{type(self).__name__}({limit}{', do_evict_after=True' if self.do_evict_after else ''})"

    def evict_before(
        self, elements: _Elements, size: int, window: Any, evictor_context: Evictor.EvictorContext
    ) -> None:
        """Apply the rule, unless `do_evict_after` is set."""
        if not self.do_evict_after:
            self._evict(elements)

    def evict_after(self, elements: _Elements, size: int, window: Any, evictor_context: Evictor.EvictorContext) -> None:
        """Apply the rule, if `do_evict_after` is set."""
        if self.do_evict_after:
            self._evict(elements)

    @abstractmethod
    def _evict(self, elements: _Elements) -> None:
        """Remove elements in place."""


class CountEvictor(_OneRuleEvictor):
    """Keeps the last `max_count` elements."""

    def __init__(self, max_count: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        if max_count < 0:
            raise ValueError(f"CountEvictor: the count must not be negative, got {max_count}")
        self.max_count = max_count

    @staticmethod
    def of(max_count: int, do_evict_after: bool = False) -> CountEvictor:
        """Return an evictor that keeps the last `max_count` elements."""
        return CountEvictor(max_count, do_evict_after)

    def __repr__(self) -> str:
        return self._text(self.max_count)

    def _evict(self, elements: _Elements) -> None:
        del elements[: max(0, len(elements) - self.max_count)]


class DeltaEvictor(_OneRuleEvictor):
    """Keeps elements whose distance from the last one is below a threshold."""

    def __init__(self, threshold: float, delta_function: Any, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.threshold = threshold
        self._delta = delta_of(delta_function)

    @staticmethod
    def of(threshold: float, delta_function: Any, do_evict_after: bool = False) -> DeltaEvictor:
        """Return an evictor that removes elements with `delta_function(element, last) >= threshold`."""
        return DeltaEvictor(threshold, delta_function, do_evict_after)

    def __repr__(self) -> str:
        return self._text(self.threshold)

    def _evict(self, elements: _Elements) -> None:
        if elements:
            last = elements[-1].get_value()
            elements[:] = [e for e in elements if self._delta(e.get_value(), last) < self.threshold]


class TimeEvictor(_OneRuleEvictor):
    """Keeps elements that are less than `window_size` milliseconds older than the youngest one."""

    def __init__(self, window_size: int, do_evict_after: bool = False) -> None:
        super().__init__(do_evict_after)
        self.window_size = window_size

    @staticmethod
    def of(window_size: Time | Duration | Any, do_evict_after: bool = False) -> TimeEvictor:
        """Return an evictor that removes elements whose timestamp is `window_size` or more below the highest one."""
        return TimeEvictor(millis_of(window_size), do_evict_after)

    def __repr__(self) -> str:
        return self._text(self.window_size)

    def _evict(self, elements: _Elements) -> None:
        if not elements or not elements[0].has_timestamp():
            return
        times = [e.get_timestamp() for e in elements]
        oldest = max(t for t in times if t is not None) - self.window_size
        elements[:] = [e for e, t in zip(elements, times, strict=True) if t is None or t > oldest]
