"""Collected records that the driver keeps on disk, because too many bytes of them wait in memory already."""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.operators.sinks.collected_run import CollectedRun
from ekorn.storage.spill_file import SpillFile

__all__ = ["CollectSpill", "SpilledRun"]

_FILE_BYTES = 64 << 20  # a file takes no more runs beyond this, so that its space becomes free when they are read


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
