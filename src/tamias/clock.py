"""Clocks: where tamias gets the time from, so that tests can own it."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

__all__ = ["Clock", "ManualClock", "SteadyClock", "SystemClock"]


@runtime_checkable
class Clock(Protocol):
    """What the runtime, the checkpoints and the job are given instead of the ``time`` module."""

    def now_ms(self) -> int:
        """Wall clock, in milliseconds since the epoch: what processing time means."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: for measuring durations and deadlines."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that long; a value of zero or less returns at once."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        """Wall clock, in milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
        if seconds > 0:
            time.sleep(seconds)

    def __repr__(self) -> str:
        return "SystemClock()"


class SteadyClock:
    """A wall clock that nobody can set: it starts with another one's time, and goes on by what has passed since.

    For intervals, timeouts and delays: a machine whose clock is put back by an hour must not wait for an hour.

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
        """Milliseconds, as the other clock would have them if nobody had touched it."""
        return self._start_ms + round((self._clock.monotonic() - self._start) * 1000)

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return self._clock.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait that long."""
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
        """The time it was last moved to."""
        return self._now_ms

    def monotonic(self) -> float:
        """Seconds moved forward since it was made; moving the wall clock with :meth:`set_ms` does not count."""
        return self._elapsed_seconds

    def sleep(self, seconds: float) -> None:
        """Advance instead of waiting."""
        if seconds > 0:
            self.advance(round(seconds * 1000))

    def advance(self, millis: int) -> None:
        """Move forward.

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
