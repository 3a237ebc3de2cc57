"""Limits how many readers of a source hold an open file or a decoded batch at the same time.

A subtask has one reader for each of its files and reads them in turn. A reader of a bulk format keeps its file open,
and a directory may hold more files than a process may have open. A reader beyond the limit has no records until
another one is finished.
"""

from __future__ import annotations

from typing import Any

from ekorn.functions.source_contract import Batch, SplitReader

__all__ = ["OpenFiles"]

_MOST = 16


class OpenFiles:
    """The readers of one source in one process that hold resources."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._holders: set[int] = set()

    def limited(self, reader: SplitReader) -> SplitReader:
        """Return a reader that waits while too many others are open; a reader that holds nothing is returned itself."""
        return _Limited(reader, self) if reader.holds_file else reader

    def take(self, holder: int) -> bool:
        """Return whether a reader may be open."""
        if holder not in self._holders and len(self._holders) >= self._most:
            return False
        self._holders.add(holder)
        return True

    def release(self, holder: int) -> None:
        """Let another reader be open."""
        self._holders.discard(holder)

    def __getstate__(self) -> int:
        return self._most

    def __setstate__(self, most: int) -> None:
        self.__init__(most)  # type: ignore[misc]  # what is open belongs to the process


class _Limited(SplitReader):
    def __init__(self, reader: SplitReader, open_files: OpenFiles) -> None:
        self._reader = reader
        self._open_files = open_files

    def read(self, max_records: int) -> Batch:
        if self._reader.finished or not self._open_files.take(id(self)):
            return Batch([])
        batch = self._reader.read(max_records)
        if self._reader.finished:
            self.close()
        return batch

    def position(self) -> Any:
        return self._reader.position()

    @property
    def finished(self) -> bool:
        return self._reader.finished

    def close(self) -> None:
        self._reader.close()
        self._open_files.release(id(self))
