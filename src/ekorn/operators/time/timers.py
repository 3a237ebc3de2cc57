"""The timer service of keyed operators, in both time domains. The state backend keeps the timers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import Any

from ekorn.clock import Clock
from ekorn.functions.timer_service import TimerService
from ekorn.state.keyed_backend import KeyedStateBackend
from ekorn.state.timers import OnTimer, TimerQueue
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


class Timers(TimerService):
    """The timer service of a keyed operator: both clocks, and the timers of the current entry.

    `cell[0]` is the current entry: a key, or in a window operator a pair of key and window.
    """

    def __init__(
        self,
        backend: KeyedStateBackend,
        cell: list[Any],
        clock: Clock,
        *,
        prefix: str = "_timers",
        windowed: bool = False,
    ) -> None:
        self._clock = clock
        self.cell = cell
        self.watermark_ms = MIN_TIMESTAMP
        self._backend = backend
        self._prefix = prefix
        self._windowed = windowed
        self.event: TimerQueue
        self.processing: TimerQueue

    def open(self) -> None:
        """Take over the restored timers. Called before any other method."""
        self.event = self._backend.timers(f"{self._prefix}/event", windowed=self._windowed)
        self.processing = self._backend.timers(f"{self._prefix}/processing", windowed=self._windowed)
        self._add_event, self._add_processing = self.event.add, self.processing.add

    def current_processing_time(self) -> int:
        return self._clock.now_ms()

    def current_watermark(self) -> int:
        return self.watermark_ms

    def register_event_time_timer(self, timestamp: int) -> None:  # hot
        self._add_event(self.cell[0], timestamp)

    def register_processing_time_timer(self, timestamp: int) -> None:  # hot
        self._add_processing(self.cell[0], timestamp)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self.event.remove(self.cell[0], timestamp)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self.processing.remove(self.cell[0], timestamp)

    def advance_watermark(self, watermark_ms: int, call: OnTimer, relief: Iterator[bool]) -> None:
        """Advance event time and fire the timers that are due. The watermark is the new one while they fire."""
        self.watermark_ms = watermark_ms
        self.event.fire(watermark_ms, call, relief)

    def advance_clock(self, now_ms: int, call: OnTimer, relief: Iterator[bool]) -> None:
        """Fire the processing-time timers that the clock has passed."""
        # Flink: a timer at t fires once t is over, so a record of the same millisecond is processed before it.
        self.processing.fire(now_ms - 1, call, relief)

    def fired_count(self) -> int:
        """Return how many timers have fired since the subtask was opened. BATCH mode counts none."""
        return self.event.fired_count + self.processing.fired_count

    def next_timer_ms(self) -> int | None:
        """Return the clock time at which the next processing-time timer fires."""
        time_ms = self.processing.next_ms()
        return None if time_ms is None else time_ms + 1

    def end_key(self, on_event: OnTimer, on_processing: OnTimer, relief: Iterator[bool]) -> None:
        """Fire all timers of the current key, whose records have ended in BATCH mode.

        Event-time timers fire first. Processing-time timers fire whatever the clock says. Timers that are registered
        meanwhile are dropped.
        """
        self.watermark_ms = MAX_TIMESTAMP
        for timers, call in ((self.event, on_event), (self.processing, on_processing)):
            for entry, time_ms in compress(timers.take_all(), relief):
                call(entry, time_ms)
        self.event.drop()
        self.processing.drop()
        self.watermark_ms = MIN_TIMESTAMP
