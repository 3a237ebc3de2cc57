"""Records that a task keeps until it can use them: by key in memory, or on disk when memory is short.

A file on disk holds chunks of records in order. `HashedFiles` divides records over several files by the hash of their
keys.
"""

from __future__ import annotations

import io
import os
import pickle
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from ekorn.batch.plan.record_keys import Keys
from ekorn.storage.spill_file import SpillFile
from ekorn.types.by_value import dumps

__all__ = ["ChunkFile", "HashedFiles", "KeyTable", "add_to", "emptied", "new_table", "used_memory_mb"]

_FILES = 64
_PENDING = 2048  # the number of records at which a part is written


def used_memory_mb() -> float:
    """Return the memory that this process uses, as PySpark measures it for its own limits."""
    from pyspark.shuffle import get_used_memory  # imported here, because programs are drawn without PySpark

    return float(get_used_memory())


KeyTable = defaultdict[Any, list[Any]]


def new_table() -> KeyTable:
    """Return an empty table."""
    return defaultdict(list)


def add_to(table: KeyTable, keys: Keys, chunk: list[Any]) -> None:
    """Add records to a table by key."""
    for key, record in zip(keys.of(chunk), chunk, strict=True):  # hot
        table[key].append(record)


def emptied(table: KeyTable) -> Iterator[Any]:
    """Yield the records of a table, and free them."""
    while table:
        yield from table.popitem()[1]


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
