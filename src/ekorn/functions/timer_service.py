"""`TimerService`: the interface through which functions read both clocks and register timers."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod


class TimeDomain(enum.Enum):
    """The clock that a timer waits for."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1


class TimerService(ABC):
    """Reads both clocks, and registers and deletes timers of the current key.

    On a stream without keys the two `current_` methods work and the other four raise
    `UnsupportedOperationError`.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the wall clock, in milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the operator's event-time watermark; -2**63 before the first watermark."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for the current key once the watermark reaches `timestamp`.

        Registering the same timestamp twice causes one call. A timer at or below the current watermark fires with the
        next watermark.
        """

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call `on_timer` for the current key once the wall clock has passed `timestamp`."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Delete the current key's event-time timer at `timestamp`, if there is one."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Delete the current key's processing-time timer at `timestamp`, if there is one."""
