"""Clocks: where ekorn gets the time from, so that a test can set it."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

__all__ = ["Clock", "ManualClock", "SteadyClock", "SystemClock"]


@runtime_checkable
class Clock(Protocol):
    """The clock that the rest of ekorn uses in place of the ``time`` module."""

    def now_ms(self) -> int:
        """Return the wall clock in milliseconds since 1970: processing time."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back: for durations and deadlines."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; return at once if the time is zero or less."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        """Return the milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds that never go back, from an arbitrary start."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait; a negative time returns at once."""
        if seconds > 0:
            time.sleep(seconds)

    def __repr__(self) -> str:
        return "SystemClock()"


class SteadyClock:
    """A wall clock that cannot be set: it starts at another clock's time and follows that clock's ``monotonic``.

    For intervals, timeouts and delays: when a machine's clock is set back by an hour, a job must not wait an hour.

    >>> machine = ManualClock(now_ms=5_000_000)
    >>> steady = SteadyClock(machine)
    >>> machine.set_ms(0)
    >>> machine.advance(10)
    >>> steady.now_ms()
    5000010
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_ms = clock.now_ms()
        self._start = clock.monotonic()

    def now_ms(self) -> int:
        """Return the milliseconds that the other clock would show if it had never been set."""
        return self._start_ms + round((self._clock.monotonic() - self._start) * 1000)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def __repr__(self) -> str:
        return f"SteadyClock({self._clock!r})"


class ManualClock:
    """A clock that moves only when told to.

    ``sleep`` advances it at once, so a loop that waits for a restart delay runs through without waiting.

    >>> clock = ManualClock(now_ms=1_000)
    >>> clock.advance(250)
    >>> clock.now_ms()
    1250
    """

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._elapsed_seconds = 0.0

    def now_ms(self) -> int:
        """Return the time to which the clock was moved last."""
        return self._now_ms

    def monotonic(self) -> float:
        """Return the seconds that the clock was advanced; :meth:`set_ms` does not count."""
        return self._elapsed_seconds

    def sleep(self, seconds: float) -> None:
        """Advance the clock and return at once."""
        if seconds > 0:
            self.advance(round(seconds * 1000))

    def advance(self, millis: int) -> None:
        """Move the clock forward.

        Raises:
            ValueError: ``millis`` is negative; use :meth:`set_ms` to move a wall clock back.
        """
        if millis < 0:
            raise ValueError(f"cannot advance a clock by {millis} ms; use set_ms to move the wall clock back")
        self._now_ms += millis
        self._elapsed_seconds += millis / 1000

    def set_ms(self, now_ms: int) -> None:
        """Set the wall clock, back or forward, as an administrator or NTP would."""
        self._now_ms = now_ms

    def __repr__(self) -> str:
        return f"ManualClock(now_ms={self._now_ms})"
