"""Timestamp assigners with watermarks, as programs for Flink 1.x write them.

`assign_timestamps_and_watermarks` takes them, and `strategy_of` turns each into a `WatermarkStrategy`.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ekorn.clock import Clock, SystemClock
from ekorn.errors import preview
from ekorn.functions.assigned_timestamps import assigner_text, whole_ms
from ekorn.functions.watermark_strategy import (
    TimestampAssigner,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from ekorn.types.time import Duration, Time, millis_of
from ekorn.types.time_bounds import MIN_TIMESTAMP

__all__ = [
    "AscendingBy",
    "AscendingTimestampExtractor",
    "AssignerWithPeriodicWatermarks",
    "AssignerWithPeriodicWatermarksWrapper",
    "AssignerWithPunctuatedWatermarks",
    "BoundedOutOfOrdernessTimestampExtractor",
    "IngestionTimeExtractor",
    "TimestampExtractor",
    "strategy_of",
]

_log = logging.getLogger(__name__)


class AssignerWithPeriodicWatermarks(TimestampAssigner):
    """Reads timestamps, and is asked for a watermark every auto-watermark interval."""

    @abstractmethod
    def get_current_watermark(self) -> Watermark | int | None:
        """Return the current watermark. None, or a watermark that does not advance, emits nothing."""


class AssignerWithPunctuatedWatermarks(TimestampAssigner):
    """Reads timestamps, and is asked for a watermark after each record."""

    @abstractmethod
    def check_and_get_next_watermark(self, last_element: Any, extracted_timestamp: int) -> Watermark | int | None:
        """Return the watermark after this record. None, or a watermark that does not advance, emits nothing."""


class TimestampExtractor(TimestampAssigner):
    """Reads timestamps, and is asked for a watermark after each record and every auto-watermark interval.

    The oldest form, for `assign_timestamps`.
    """

    @abstractmethod
    def extract_watermark(self, element: Any, current_timestamp: int) -> Watermark | int | None:
        """Return the watermark after this record. None, or a watermark that does not advance, emits nothing."""

    @abstractmethod
    def get_current_watermark(self) -> Watermark | int | None:
        """Return the current watermark. None, or a watermark that does not advance, emits nothing."""


class AscendingTimestampExtractor(AssignerWithPeriodicWatermarks, ABC):
    """Reads timestamps that never go back. The watermark stays a millisecond behind the last one."""

    class LoggingHandler:
        """Logs a timestamp that goes back, and keeps the timestamp."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            """Handle a timestamp that goes back."""
            _log.warning("timestamps must ascend, but %d comes after %d", element_timestamp, last_timestamp)

    class IgnoringHandler:
        """Keeps a timestamp that goes back, and does not log it."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            """Handle a timestamp that goes back."""

    class FailingHandler:
        """Fails the job when a timestamp goes back."""

        def handle_violation(self, element_timestamp: int, last_timestamp: int) -> None:
            """Handle a timestamp that goes back."""
            raise ValueError(f"timestamps must ascend, but {element_timestamp} comes after {last_timestamp}")

    def __init__(self) -> None:
        self._handler: Any = AscendingTimestampExtractor.LoggingHandler()
        self._highest = MIN_TIMESTAMP

    @abstractmethod
    def extract_ascending_timestamp(self, element: Any) -> int:
        """Return the record's event time."""

    def with_violation_handler(self, handler: Any) -> AscendingTimestampExtractor:
        """Call `handler.handle_violation(timestamp, last)` for every timestamp that goes back."""
        self._handler = handler
        return self

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the record's event time."""
        timestamp = self.extract_ascending_timestamp(value)
        if timestamp.__class__ is not int:
            timestamp = whole_ms(timestamp, value, assigner_text(self.extract_ascending_timestamp))
        if timestamp >= self._highest:
            self._highest = timestamp
        else:
            self._handler.handle_violation(timestamp, self._highest)
        return timestamp

    def get_current_watermark(self) -> Watermark:
        """Return the watermark a millisecond behind the highest timestamp."""
        return Watermark(MIN_TIMESTAMP if self._highest == MIN_TIMESTAMP else self._highest - 1)


class AscendingBy(AscendingTimestampExtractor):
    """Reads ascending timestamps with a function, for `assign_ascending_timestamps`."""

    def __init__(self, function: Callable[[Any], int]) -> None:
        super().__init__()
        self._function = function

    def extract_ascending_timestamp(self, element: Any) -> int:
        """Return the timestamp that the function gives."""
        return self._function(element)


class BoundedOutOfOrdernessTimestampExtractor(AssignerWithPeriodicWatermarks, ABC):
    """Reads timestamps that are out of order by at most a bound. The watermark stays that far behind the highest."""

    def __init__(self, max_out_of_orderness: Duration | Time | timedelta | int) -> None:
        self._bound_ms = millis_of(max_out_of_orderness)
        if self._bound_ms < 0:
            raise ValueError(f"max_out_of_orderness must not be negative, but is {self._bound_ms} ms")
        self._highest = MIN_TIMESTAMP + self._bound_ms

    @abstractmethod
    def extract_event_timestamp(self, element: Any) -> int:
        """Return the record's event time."""

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the record's event time."""
        timestamp = self.extract_event_timestamp(value)
        if timestamp.__class__ is not int:
            timestamp = whole_ms(timestamp, value, assigner_text(self.extract_event_timestamp))
        self._highest = max(self._highest, timestamp)
        return timestamp

    def get_current_watermark(self) -> Watermark:
        """Return the watermark, which is the bound behind the highest timestamp."""
        # Flink: this watermark is one millisecond ahead of the one of `for_bounded_out_of_orderness`.
        return Watermark(self._highest - self._bound_ms)


class IngestionTimeExtractor(AssignerWithPeriodicWatermarks):
    """Stamps records with the processing time. If the clock is set back, timestamps stay at the highest one."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock or SystemClock()
        self._highest = MIN_TIMESTAMP

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        """Return the current time."""
        self._highest = max(self._highest, self._clock.now_ms())
        return self._highest

    def get_current_watermark(self) -> Watermark:
        """Return the watermark a millisecond ago."""
        self._highest = max(self._highest, self._clock.now_ms())
        return Watermark(self._highest - 1)


class AssignerWithPeriodicWatermarksWrapper:
    """Holds an assigner of Flink 1.x, with ``extract_timestamp`` and a polled ``get_current_watermark``."""

    def __init__(self, assigner: Any) -> None:
        missing = [name for name in ("extract_timestamp", "get_current_watermark") if not hasattr(assigner, name)]
        if missing:
            raise TypeError(f"{assigner!r} has no {' and no '.join(missing)}; an assigner with watermarks needs both")
        self.assigner = assigner


class _PeriodicGenerator(WatermarkGenerator):
    def __init__(self, assigner: Any) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        pass

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        watermark = self._assigner.get_current_watermark()
        if watermark is not None:
            output.emit_watermark(watermark)


class _PunctuatedGenerator(WatermarkGenerator):
    def __init__(self, assigner: Any) -> None:
        self._assigner = assigner

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = self._assigner.check_and_get_next_watermark(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(watermark)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        pass


class _ExtractorGenerator(_PeriodicGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        watermark = self._assigner.extract_watermark(event, event_timestamp)
        if watermark is not None:
            output.emit_watermark(watermark)


class _GeneratorSupplier:
    """Makes the generator that asks an assigner. Both are pickled together, so the assigner stays one object."""

    asks_the_assigner = True

    def __init__(self, kind: type[Any], assigner: Any) -> None:
        self._kind = kind
        self._assigner = assigner

    def __call__(self, context: Any = None) -> WatermarkGenerator:
        generator: WatermarkGenerator = self._kind(self._assigner)
        return generator


def strategy_of(given: Any) -> WatermarkStrategy:
    """Return the argument of `assign_timestamps_and_watermarks` as a strategy.

    Raises:
        TypeError: the argument is neither a strategy nor an assigner of Flink 1.x.
    """
    if _has(given, "extract_timestamp", "extract_watermark", "get_current_watermark"):
        return WatermarkStrategy(_GeneratorSupplier(_ExtractorGenerator, given)).with_timestamp_assigner(given)
    if isinstance(given, AssignerWithPeriodicWatermarksWrapper):
        given = given.assigner
    if isinstance(given, WatermarkStrategy):
        return given
    for method, kind in (
        ("get_current_watermark", _PeriodicGenerator),
        ("check_and_get_next_watermark", _PunctuatedGenerator),
    ):
        if _has(given, method, "extract_timestamp"):
            return WatermarkStrategy(_GeneratorSupplier(kind, given)).with_timestamp_assigner(given)
    raise TypeError(
        "assign_timestamps_and_watermarks() needs a WatermarkStrategy, or an assigner with extract_timestamp and "
        f"get_current_watermark or check_and_get_next_watermark, got {preview(given)}"
    )


def _has(given: Any, *methods: str) -> bool:
    return not isinstance(given, type) and all(hasattr(given, method) for method in methods)
