"""Shows a running job to the person in front of it, on standard error.

On a terminal one line is written over and over; in a notebook only the first and the last line are shown. Elsewhere
nothing is shown: the log tells the same story (`logging.getLogger("tamias")` at INFO).
"""

from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Callable
from typing import TextIO

from tamias.clock import Clock, SteadyClock
from tamias.driver.job_handle import JobHandle
from tamias.driver.job_lines import JobFacts, end_line, progress_line, start_line

__all__ = ["ProgressDisplay", "is_watched"]

_INTERVAL_S = 0.5
_WIDTH = 160  # longer lines are cut, because a line that wraps cannot be written over


def is_watched(stream: TextIO) -> bool:
    """Return whether a person reads the stream as it is written: it is a terminal, or that of a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel.")


class ProgressDisplay:
    """Writes the lines of one job.

    Args:
        handle: The job.
        facts: What is known about it at its start.
        clock: The time of day.
        stream: Where to write; None for standard error.
        prints: Whether the job itself prints records. The line in between is left out then.
        interval_s: The time between two lines of progress.
    """

    def __init__(
        self,
        handle: JobHandle,
        facts: JobFacts,
        clock: Clock,
        *,
        stream: TextIO | None = None,
        prints: bool = False,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        self._handle = handle
        self._facts = facts
        self._clock = clock
        self._steady = SteadyClock(clock)
        self._stream = stream or sys.stderr
        self._rewrites = self._stream.isatty() and not prints
        self._interval_s = interval_s
        self._started_ms = self._steady.now_ms()
        self._shown = ""

    def start(self, has_ended: Callable[[float], bool]) -> None:
        """Write the lines on a thread. A program that ends with its job waits for the last line."""
        thread = threading.Thread(target=self.run, args=(has_ended,), name="tamias-progress", daemon=True)
        thread.start()
        atexit.register(thread.join, 1.0)

    def run(self, has_ended: Callable[[float], bool]) -> None:
        """Write the lines until `has_ended(timeout_s)` returns True."""
        self._write(f"{start_line(self._facts)}\n")
        read, at_ms = 0, self._started_ms
        while not has_ended(self._interval_s):
            progress, now_ms = self._handle.progress(), self._steady.now_ms()
            rate = (progress.records_read - read) * 1000 / max(1, now_ms - at_ms)
            read, at_ms = progress.records_read, now_ms
            if self._rewrites:
                self._overwrite(progress_line(progress, rate, self._clock.now_ms()))
        seconds = (self._steady.now_ms() - self._started_ms) / 1000
        self._overwrite("")
        self._write(f"{end_line(self._facts.job_name, self._handle.progress(), seconds)}\n")

    def _overwrite(self, line: str) -> None:
        line = line[:_WIDTH]
        if line or self._shown:
            self._write(f"\r{line.ljust(len(self._shown))}" + ("" if line else "\r"))
        self._shown = line

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the terminal is gone, or the stream was closed: the job runs on unwatched
            self._rewrites = False
