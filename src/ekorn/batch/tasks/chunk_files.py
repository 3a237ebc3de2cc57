"""Files of a task for records that do not fit into memory: chunks in order, and records by the hash of their keys."""

from __future__ import annotations

import os
import pickle
import struct
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.tasks.worker_memory import used_memory_mb
from ekorn.types.by_value import dumps

__all__ = ["ChunkFile", "HashedFiles"]

_FILES = 64
_PENDING = 2048  # records of a part, before they are written
_SIZE = struct.Struct("<Q")  # a chunk of large records may be larger than 4 GiB


class ChunkFile:
    """Lists of records on disk, in the order in which they were written, until they are read or the task ends."""

    def __init__(self) -> None:
        folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - `chunks` closes it

    def write(self, chunk: list[Any]) -> int:
        """Append a list; return its size in bytes."""
        data = dumps(chunk)
        self._file.write(_SIZE.pack(len(data)))
        self._file.write(data)
        return len(data)

    def chunks(self) -> Iterator[list[Any]]:
        """Yield the lists, once."""
        with self._file as file:
            file.seek(0)
            while head := file.read(_SIZE.size):
                yield pickle.loads(file.read(*_SIZE.unpack(head)))


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
