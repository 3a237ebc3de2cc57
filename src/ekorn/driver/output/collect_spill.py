"""Collected records that the driver keeps on disk, because too many bytes of them wait in memory already."""

from __future__ import annotations

import os
import tempfile
import weakref
from dataclasses import dataclass

from ekorn.operators.sinks.collected_run import CollectedRun

__all__ = ["CollectSpill", "SpilledRun"]

_FILE_BYTES = 64 << 20  # a file takes no more runs beyond this, so that its space becomes free when they are read


class CollectSpill:
    """Writes runs of collected records to files without a name, which are gone when no run in them is left."""

    def __init__(self) -> None:
        self._file: _SpillFile | None = None

    def store(self, run: CollectedRun) -> SpilledRun:
        """Write a run.

        Raises:
            OSError: The disk is full, or cannot be written to.
        """
        if self._file is None or self._file.size_bytes >= _FILE_BYTES:
            self._file = _SpillFile()
        return SpilledRun(self._file, self._file.append(run.pickled), run.size_bytes, run.count)


@dataclass(frozen=True, slots=True)
class SpilledRun:
    """A run of collected records on disk."""

    file: _SpillFile
    offset: int
    size_bytes: int
    count: int

    def read(self) -> CollectedRun:
        """Return the run. Thread-safe."""
        return CollectedRun(self.file.read(self.offset, self.size_bytes), self.count)


class _SpillFile:
    """An open temporary file that is closed, and so deleted, with the last reference to this object."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed below
        weakref.finalize(self, file.close)
        self._fd = file.fileno()
        self.size_bytes = 0

    def append(self, data: bytes) -> int:
        """Write bytes at the end; return their offset."""
        offset, view = self.size_bytes, memoryview(data)
        while view:
            written = os.pwrite(self._fd, view, self.size_bytes)
            self.size_bytes += written
            view = view[written:]
        return offset

    def read(self, offset: int, size_bytes: int) -> bytes:
        data = os.pread(self._fd, size_bytes, offset)
        while len(data) < size_bytes:
            more = os.pread(self._fd, size_bytes - len(data), offset + len(data))
            assert more, "a file without a name is changed by nobody else"
            data += more
        return data
