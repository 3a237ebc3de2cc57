"""Files of a task for records that do not fit into memory: chunks in order, and records by the hash of their keys."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.tasks.worker_memory import used_memory_mb
from ekorn.storage.spill_file import SpillFile
from ekorn.types.by_value import dumps

__all__ = ["ChunkFile", "HashedFiles"]

_FILES = 64
_PENDING = 2048  # records of a part, before they are written


class ChunkFile:
    """Lists of records on disk, in the order in which they were written, until they are read or the task ends."""

    def __init__(self) -> None:
        folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
        self._file = SpillFile(folder, buffer_bytes=io.DEFAULT_BUFFER_SIZE)

    def write(self, chunk: list[Any]) -> int:
        """Append a list; return its size in bytes."""
        data = dumps(chunk)
        self._file.append_chunk(data)
        return len(data)

    def chunks(self) -> Iterator[list[Any]]:
        """Yield the lists, once."""
        with closing(self._file) as file:
            yield from map(pickle.loads, file.chunks())


class HashedFiles:
    """Takes records and returns them in parts. All records of a key are in one part, in the order in which they came.

    Args:
        keys: The keys.
        memory_mb: The memory that a Python worker may use.
    """

    def __init__(self, keys: Keys, memory_mb: int) -> None:
        self._keys = keys
        self._memory_mb = memory_mb
        self._pending: list[list[Any]] = [[] for _ in range(_FILES)]
        self._files = [ChunkFile() for _ in range(_FILES)]

    def add(self, chunk: list[Any]) -> None:
        """Take some records."""
        pending = self._pending
        for key, record in zip(self._keys.of(chunk), chunk, strict=True):  # hot
            pending[hash(key) % _FILES].append(record)
        most = 0 if used_memory_mb() > self._memory_mb else _PENDING
        for number, records in enumerate(pending):
            if len(records) > most:
                self._files[number].write(records)
                pending[number] = []

    def parts(self) -> Iterator[Iterator[list[Any]]]:
        """Yield the parts, each as chunks of records. A part is read before the next is asked for."""
        for number, file in enumerate(self._files):
            if self._pending[number]:
                file.write(self._pending[number])
                self._pending[number] = []
            yield file.chunks()
