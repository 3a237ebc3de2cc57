"""Timestamp assigners with watermarks, as programs for Flink 1.x write them.

Each is given to `assign_timestamps_and_watermarks`, where `strategy_of` makes a `WatermarkStrategy` of it.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from tamias.clock import Clock, SystemClock
from tamias.errors import preview
from tamias.functions.watermark_strategy import (
    AssignerWithPeriodicWatermarksWrapper,
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from tamias.types.time import Duration, Time, millis_of
from tamias.types.time_bounds import MIN_TIMESTAMP

__all__ = [
    "AscendingBy",
    "AscendingTimestampExtractor",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPunctuatedWatermarks",
    "BoundedOutOfOrdernessTimestampExtractor",
    "IngestionTimeExtractor",
    "strategy_of",
]

_log = logging.getLogger(__name__)


class AssignerWithPeriodicWatermarks(TimestampAssigner):
    """Reads timestamps, and is asked for a watermark every auto-watermark interval."""

    @abstractmethod
    def get_current_watermark(self) -> Watermark | int | None:
        """The watermark now; None, or one that does not advance, is nothing."""


class AssignerWithPunctuatedWatermarks(TimestampAssigner):
    """Reads timestamps, and is asked for a watermark after each record."""

    @abstractmethod
    def check_and_get_next_watermark(self, last_element: Any, extracted_timestamp: int) -> Watermark | int | None:
        """The watermark that follows this record; None, or one that does not advance, is nothing."""


class AscendingTimestampExtractor(AssignerWithPeriodicWatermarks, ABC):
    """For timestamps that never go back: the watermark stays a millisecond behind the last one."""

    class LoggingHandler:
        """Logs a timestamp that goes back, and keeps it."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            """Take a violation."""
            _log.warning("timestamp %d comes after %d: timestamps go back", element_timestamp, last_timestamp)

    class IgnoringHandler:
        """Keeps a timestamp that goes back without a word."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            """Take a violation."""

    class FailingHandler:
        """Fails the job when a timestamp goes back."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            """Take a violation."""
            raise ValueError(f"timestamp {element_timestamp} comes after {last_timestamp}: they must ascend")

    def __init__(self) -> None:
        self._handler: Any = AscendingTimestampExtractor.LoggingHandler()
        self._highest = MIN_TIMESTAMP

    @abstractmethod
    def extract_ascending_timestamp(self, element: Any) -> int:
        """The record's event time."""

    def with_violation_handler(self, handler: Any) -> AscendingTimestampExtractor:
        """Call `handler.handle_violation(timestamp, last)` when a timestamp goes back."""
        self._handler = handler
        return self

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The record's event time."""
        timestamp = self.extract_ascending_timestamp(value)
        if timestamp >= self._highest:
            self._highest = timestamp
        else:
            self._handler.handle_violation(timestamp, self._highest)
        return timestamp

    def get_current_watermark(self) -> Watermark:
        """A millisecond behind the highest timestamp."""
        return Watermark(MIN_TIMESTAMP if self._highest == MIN_TIMESTAMP else self._highest - 1)


class AscendingBy(AscendingTimestampExtractor):
    """The same with a function, for `assign_ascending_timestamps`."""

    def __init__(self, function: Callable[[Any], int]) -> None:
        super().__init__()
        self._function = function

    def extract_ascending_timestamp(self, element: Any) -> int:
        """What the function says."""
        return self._function(element)


class BoundedOutOfOrdernessTimestampExtractor(AssignerWithPeriodicWatermarks, ABC):
    """For records that are late by a bounded time: the watermark stays so far behind the highest timestamp."""

    def __init__(self, max_out_of_orderness: Duration | Time | timedelta | int) -> None:
        self._bound_ms = millis_of(max_out_of_orderness)
        if self._bound_ms < 0:
            raise ValueError(f"max_out_of_orderness must not be negative, but is {self._bound_ms} ms")
        self._highest = MIN_TIMESTAMP + self._bound_ms

    @abstractmethod
    def extract_event_timestamp(self, element: Any) -> int:
        """The record's event time."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """The record's event time."""
        timestamp = self.extract_event_timestamp(value)
        self._highest = max(self._highest, timestamp)
        return timestamp

    def get_current_watermark(self) -> Watermark:
        """So far behind the highest timestamp."""
        # Flink: one millisecond ahead of what `for_bounded_out_of_orderness` gives.
        return Watermark(self._highest - self._bound_ms)


class IngestionTimeExtractor(AssignerWithPeriodicWatermarks):
    """Stamps records with the wall clock, which never goes back here."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._highest = MIN_TIMESTAMP

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Now."""
        self._highest = max(self._highest, self._clock.now_ms())
        return self._highest

    def get_current_watermark(self) -> Watermark:
        """A millisecond ago."""
        self._highest = max(self._highest, self._clock.now_ms())
        return Watermark(self._highest - 1)


class _Periodic(WatermarkGenerator):
    def __init__(self, assigner: Any) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        watermark = self._assigner.get_current_watermark()
        if watermark is not None:
            output.emit_watermark(watermark)


class _Punctuated(WatermarkGenerator):
    def __init__(self, assigner: Any) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = self._assigner.check_and_get_next_watermark(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(watermark)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class _Supplier:
    """Makes the generator that asks an assigner; both are pickled together, so they stay one object."""

    def __init__(self, kind: type[Any], assigner: Any) -> None:
        self._kind = kind
        self._assigner = assigner

    def __call__(self, context: Any = None) -> WatermarkGenerator:
        generator: WatermarkGenerator = self._kind(self._assigner)
        return generator


def strategy_of(given: Any) -> WatermarkStrategy:
    """What `assign_timestamps_and_watermarks` was given, as a strategy.

    Raises:
        TypeError: it is neither a strategy nor one of the older assigners.
    """
    if isinstance(given, AssignerWithPeriodicWatermarksWrapper):
        given = given.assigner
    if isinstance(given, WatermarkStrategy):
        return given
    for method, kind in (("get_current_watermark", _Periodic), ("check_and_get_next_watermark", _Punctuated)):
        if not isinstance(given, type) and hasattr(given, method) and hasattr(given, "extract_timestamp"):
            return WatermarkStrategy(_Supplier(kind, given)).with_timestamp_assigner(given)
    raise TypeError(
        "assign_timestamps_and_watermarks() needs a WatermarkStrategy, or an assigner with extract_timestamp and "
        f"get_current_watermark or check_and_get_next_watermark, got {preview(given)}"
    )
