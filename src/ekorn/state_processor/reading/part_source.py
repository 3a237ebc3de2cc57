"""Sources over the parts of a savepoint, with one split for each part, and the keyed state of a part in a backend."""

from __future__ import annotations

import os
import pickle
import tempfile
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import cloudpickle

from ekorn.clock import Clock
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.functions.source_contract import Batch, Boundedness, Source, SourceConnection, Split, SplitReader
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import KeyedStateBackend, Translate
from ekorn.state.rocksdb.rocksdb_backend import RocksDBKeyedBackend
from ekorn.state.snapshots import ROCKSDB, KeyedFiles
from ekorn.state_processor.reading.stored_savepoint import StoredOperator
from ekorn.storage.scratch_folders import LocalFolder

__all__ = ["PartSource", "TimersByEntry", "Times", "open_part", "own_function", "timers_of"]

F = TypeVar("F")


class PartSource(Source):
    """A bounded source whose splits are numbered parts of a savepoint.

    The records of a part are the same each time it is read, so a position is the number of records read.
    """

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    @abstractmethod
    def part_count(self) -> int:
        """Return the number of parts."""

    @abstractmethod
    def read_part(self, part: int, subtask_index: int) -> Generator[Any, None, None]:
        """Yield the records of a part. Its resources are released when the generator ends or is closed."""

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return a split for each part."""
        return [Split(f"part-{number:05}", number) for number in range(self.part_count())]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a part."""
        return self.connect(0).create_reader(split, position)

    def connect(self, subtask_index: int) -> SourceConnection:
        """Return the connection of a subtask, which reads its parts one after another."""
        return _Connection(self, subtask_index)


class _Connection(SourceConnection):
    """Lets only one reader of the subtask open its part at a time: an open part may fill the memory of the slot."""

    def __init__(self, source: PartSource, subtask_index: int) -> None:
        self._source = source
        self._subtask_index = subtask_index
        self.reading: _PartReader | None = None

    def discover_splits(self, parallelism: int, *, first: bool) -> Sequence[Split]:
        return self._source.discover_splits(parallelism)

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _PartReader(self, partial(self._source.read_part, split.what, self._subtask_index), position or 0)


class _PartReader(SplitReader):
    def __init__(
        self, connection: _Connection, open_part: Callable[[], Generator[Any, None, None]], position: int
    ) -> None:
        self._connection = connection
        self._open_part = open_part
        self._records: Generator[Any, None, None] | None = None
        self._position = position
        self._finished = False

    def read(self, max_records: int) -> Batch:
        if self._connection.reading not in (None, self):
            return Batch([])  # the reader that is asked next has more records
        if self._records is None:
            self._connection.reading = self
            self._records = self._open_part()
            for _ in islice(self._records, self._position):
                pass
        values = list(islice(self._records, max_records))
        self._position += len(values)
        self._finished = len(values) < max_records
        return Batch(values)

    def position(self) -> int:
        return self._position

    @property
    def finished(self) -> bool:
        return self._finished

    def close(self) -> None:
        if self._records is not None:
            self._records.close()
        if self._connection.reading is self:
            self._connection.reading = None


def own_function(function: F) -> F:
    """Return a copy of a function. A subtask may read several parts, and each opens a function of its own."""
    copy: F = pickle.loads(cloudpickle.dumps(function))
    return copy


# -------------------------------------------------------------------------------------------------- the state of a part


Times = set[int]
TimersByEntry = dict[object, Times]
"""The times of timers, by key, or by key and window in a window operator."""


def open_part(
    stored: StoredOperator,
    part: KeyedFiles,
    clock: Clock,
    *,
    on_rocksdb: bool | None = None,
    translate: Translate | None = None,
) -> KeyedStateBackend:
    """Restore one part of an operator's keyed state. The caller closes the backend.

    Args:
        stored: The operator.
        part: The part.
        clock: Decides which entries with a time to live have expired.
        on_rocksdb: Whether the state is put on local disk or into memory; None: on disk if RocksDB wrote it.
        translate: Changes the restored tables, as for `KeyedStateBackend.restore`.
    """
    backend: KeyedStateBackend
    if on_rocksdb is None:
        on_rocksdb = part.format == ROCKSDB
    if on_rocksdb:
        folder = LocalFolder(tempfile.gettempdir(), "ekorn-read-")
        backend = RocksDBKeyedBackend(
            os.path.join(folder.path, "state"),
            max_parallelism=stored.metadata.max_parallelism,
            key_groups=part.key_groups,
            settings=RocksDBSettings(),
            tracked=False,
            clock=clock,
            on_close=folder.close,
        )
    else:
        backend = HeapStateBackend(tracked=False, clock=clock)
    try:
        backend.restore(stored.restore(part), stored.files(), part.key_groups, translate)
    except BaseException:
        backend.close()
        raise
    return backend


def timers_of(backend: KeyedStateBackend, table: str, *, windowed: bool = False) -> TimersByEntry:
    """Return the restored timers of one time domain; `table` is the name of their table in the checkpoint."""
    found: TimersByEntry = defaultdict(set)
    for (key, namespace), _ in backend.entries(table):
        if windowed:
            time_ms, window = namespace
            found[key, window].add(time_ms)
        else:
            found[key].add(namespace)
    return found
