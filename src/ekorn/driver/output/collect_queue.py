"""The collected records that wait for the program that reads them: in memory, or on disk if they are many."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from ekorn.operators.sinks.collected_run import CollectedRun
from ekorn.storage.spill_file import SpillFile

__all__ = ["CollectQueue", "CollectSpill", "SpilledRun", "WaitingRun"]


_FILE_BYTES = 64 << 20  # the size at which a new file is started; the space of a file is freed with its last run


class CollectSpill:
    """Writes runs of collected records to files without a name, which are gone when no run in them is left."""

    def __init__(self) -> None:
        self._file: SpillFile | None = None

    def store(self, run: CollectedRun) -> SpilledRun:
        """Write a run.

        Raises:
            OSError: The disk is full, or cannot be written to.
        """
        if self._file is None or self._file.size_bytes >= _FILE_BYTES:
            self._file = SpillFile()
        return SpilledRun(self._file, self._file.append(run.pickled), run.size_bytes, run.count)


@dataclass(frozen=True, slots=True)
class SpilledRun:
    """A run of collected records on disk."""

    file: SpillFile
    offset: int
    size_bytes: int
    count: int

    def read(self) -> CollectedRun:
        """Return the run. Thread-safe."""
        return CollectedRun(self.file.read(self.offset, self.size_bytes), self.count)


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
        """Drop all runs."""
        with self._changed:
            self._runs.clear()
            self.count = self.size_bytes = 0
