"""Buffers records in BATCH mode that an operator does not get on arrival, because others have to come first.

A keyed operator gets its whole input key by key, and the records of a key in the order of their timestamps. Records
are sorted in memory while they are few, and in sorted runs on local disk once they are many. Records of an operator
with a broadcast input wait until the broadcast input has ended.
"""

from __future__ import annotations

import heapq
import itertools
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from ekorn.storage.spill_file import SpillFile
from ekorn.types.by_value import dumps
from ekorn.types.time_bounds import MIN_TIMESTAMP

_CHUNK = 10_000  # records that are read or written at once

_NOTHING: Any = object()

Scratch = Callable[[], str]
"""Makes a folder on local disk."""


class Part(NamedTuple):
    """A run of records of one input."""

    input_index: int
    values: list[Any]
    times: list[int | None]


class RecordBuffer(ABC):
    """Buffers records until the whole input has been read."""

    @abstractmethod
    def buffers(self, input_index: int) -> bool:
        """Return whether the records of an input are buffered. Other records are processed on arrival."""

    @abstractmethod
    def add(self, values: list[Any], times: list[int | None] | None, input_index: int = 0) -> None:
        """Add a run of records."""

    @abstractmethod
    def groups(self) -> Iterator[list[Part]]:
        """Yield all records in groups, such as the records of one key. Can be called once."""


class KeySorter(RecordBuffer):
    """Takes records in any order and returns them by key.

    Args:
        key_of: By input, the function that finds a record's key; None for an input without keys, which is not buffered.
        sort_key: Returns what a key is sorted by.
        scratch: Makes a folder for records that do not fit into memory.
        in_memory: The number of records of an input that are sorted in memory.
    """

    def __init__(
        self,
        key_of: Sequence[Callable[[Any], Any] | None],
        sort_key: Callable[[Any], Any],
        *,
        scratch: Scratch,
        in_memory: int,
    ) -> None:
        self._key_of = key_of
        self._sort_key = sort_key
        # A stored record is (sort key, time, number, value, time as given).
        self._records = {
            n: _Records(scratch, in_memory, itemgetter(0, 1, 2)) for n, f in enumerate(key_of) if f is not None
        }
        self._count = itertools.count()

    def buffers(self, input_index: int) -> bool:
        return input_index in self._records

    def add(self, values: list[Any], times: list[int | None] | None, input_index: int = 0) -> None:
        key_of, sort_key, count = self._key_of[input_index], self._sort_key, self._count
        assert key_of is not None, "an input without keys is not buffered"
        self._records[input_index].add(
            (sort_key(key_of(value)), MIN_TIMESTAMP if time is None else time, next(count), value, time)
            for value, time in zip(values, times or itertools.repeat(None, len(values)), strict=True)
        )

    def groups(self) -> Iterator[list[Part]]:
        if len(self._records) == 1:
            ((number, records),) = self._records.items()
            for _, of_key in itertools.groupby(records.read(), key=itemgetter(0)):
                run = list(of_key)
                yield [Part(number, [r[3] for r in run], [r[4] for r in run])]
            return
        merged = _interleaved({n: records.read() for n, records in self._records.items()}, itemgetter(0, 1))
        for _, numbered in itertools.groupby(merged, key=lambda pair: pair[1][0]):
            yield [Part(number, [r[3] for r in run], [r[4] for r in run]) for number, run in _runs(numbered)]


class ArrivalBuffer(RecordBuffer):
    """Buffers the records of some inputs in the order of arrival. Records of two inputs are interleaved."""

    def __init__(self, inputs: Iterable[int], *, scratch: Scratch, in_memory: int) -> None:
        self._records = {n: _Records(scratch, in_memory) for n in inputs}  # a stored record is (value, time)

    def buffers(self, input_index: int) -> bool:
        return input_index in self._records

    def add(self, values: list[Any], times: list[int | None] | None, input_index: int = 0) -> None:
        self._records[input_index].add(zip(values, times or itertools.repeat(None, len(values)), strict=True))

    def groups(self) -> Iterator[list[Part]]:
        merged = _interleaved({n: records.read() for n, records in self._records.items()}, lambda record: 0)
        while some := list(itertools.islice(merged, _CHUNK)):
            yield [Part(number, [r[0] for r in run], [r[1] for r in run]) for number, run in _runs(some)]


class _Records:
    """Records of one input, spilled to disk once they are many; sorted by `key` if there is one."""

    def __init__(self, scratch: Scratch, in_memory: int, key: Callable[[Any], Any] | None = None) -> None:
        self._scratch = scratch
        self._in_memory = in_memory
        self._chunk = min(_CHUNK, in_memory)
        self._key = key
        self._held: list[Any] = []
        self._file: SpillFile | None = None
        self._runs: list[tuple[int, int]] = []  # where each spilled run begins and ends in the file

    def add(self, records: Iterable[Any]) -> None:
        self._held.extend(records)
        if len(self._held) >= self._in_memory:
            self._spill()

    def read(self) -> Iterator[Any]:
        """Return all records. Can be called once."""
        self._sort()
        pieces: list[Iterator[Any]] = [*self._spilled(), iter(self._held)]
        self._held = []
        self._file = None  # the disk space is free again when the spilled runs have been read
        return itertools.chain(*pieces) if self._key is None else heapq.merge(*pieces, key=self._key)

    def _sort(self) -> None:
        if self._key is not None:
            self._held.sort(key=self._key)

    def _spill(self) -> None:
        self._sort()
        if self._file is None:
            self._file = SpillFile(self._scratch())
        begin = self._file.size_bytes
        for start in range(0, len(self._held), self._chunk):
            self._file.append_chunk(dumps(self._held[start : start + self._chunk]))
        self._runs.append((begin, self._file.size_bytes))
        self._held.clear()

    def _spilled(self) -> Iterator[Iterator[Any]]:
        """Yield the spilled runs, each as an iterator of its records."""
        if self._file is not None:
            for begin, end in self._runs:
                yield itertools.chain.from_iterable(map(pickle.loads, self._file.chunks(begin, end)))


def _interleaved(streams: dict[int, Iterator[Any]], key: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
    """Merge sorted streams by key; yield each record with the number of its stream.

    Flink: of several equal keys, the stream that has waited longest comes first, so that streams alternate.
    """
    waiting: list[tuple[Any, int, int, Any]] = []
    waited = itertools.count()
    for number, stream in streams.items():
        for record in itertools.islice(stream, 1):
            waiting.append((key(record), next(waited), number, record))
    heapq.heapify(waiting)
    while waiting:
        _, _, number, record = waiting[0]
        yield number, record
        following = next(streams[number], _NOTHING)
        if following is _NOTHING:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, (key(following), next(waited), number, following))


def _runs(numbered: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, list[Any]]]:
    """Group consecutive records of one stream into runs."""
    for number, run in itertools.groupby(numbered, key=itemgetter(0)):
        yield number, [record for _, record in run]
