"""The queue of collected records between the loop of a job and the program that reads them."""

from __future__ import annotations

import threading
from collections import deque

from ekorn.driver.output.collect_spill import SpilledRun
from ekorn.operators.sinks.collected_run import CollectedRun

__all__ = ["CollectQueue", "WaitingRun"]

WaitingRun = CollectedRun | SpilledRun


class CollectQueue:
    """Runs of collected records, in order. The loop adds them, the program takes them. Thread-safe.

    Attributes:
        count: How many records wait.
        size_bytes: Their size, in memory and on disk.
    """

    def __init__(self) -> None:
        self._runs: deque[WaitingRun] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self.count = 0
        self.size_bytes = 0

    def put(self, run: WaitingRun) -> None:
        """Add a run."""
        with self._changed:
            self._runs.append(run)
            self.count += run.count
            self.size_bytes += run.size_bytes
            self._changed.notify()

    def end(self) -> None:
        """Note that no run follows."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self) -> CollectedRun | None:
        """Wait for a run and return it; None after the last one."""
        with self._changed:
            while not self._runs and not self._ended:
                self._changed.wait()
            if not self._runs:
                return None
            run = self._runs.popleft()
            self.count -= run.count
            self.size_bytes -= run.size_bytes
        return run.read()

    def clear(self) -> None:
        """Forget the runs that wait."""
        with self._changed:
            self._runs.clear()
            self.count = self.size_bytes = 0
