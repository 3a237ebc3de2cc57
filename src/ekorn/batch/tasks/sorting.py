"""Sorts the records of a task, on disk when they are too many, and streams the groups of a sorted input.

Groups need not be in the order of their keys: equal keys must be next to each other, whatever their type. So records
are grouped by a part of the hash of their key, and keys that share it are separated while the groups are read.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from ekorn.batch.plan.data_set_specs import Order, SortField
from ekorn.batch.plan.record_keys import Keys, read_path, selecting
from ekorn.batch.tasks.blobs import BlobSize, in_chunks
from ekorn.batch.tasks.exits import Backwards
from ekorn.batch.tasks.kept_records import ChunkFile, used_memory_mb
from ekorn.types.type_information import all_are

__all__ = ["Member", "SortedBy", "Sorter", "members", "streamed_groups"]

_IN_A_CHUNK = 8192
_TOKEN = (1 << 30) - 1  # Python sorts integers below 2**30 fastest
_token: Callable[[int], int] = _TOKEN.__and__


@dataclass(frozen=True)
class SortedBy:
    """The order of records: first by group, if there are keys, then by fields."""

    keys: Keys | None = None
    fields: tuple[SortField, ...] = ()

    def columns(self, records: Sequence[Any]) -> list[tuple[list[Any], bool]]:
        """Return what the records are sorted by, most significant first, and whether each is descending."""
        columns = [(_values(records, field), field.order is Order.DESCENDING) for field in self.fields]
        return columns if self.keys is None else [(tokens(self.keys.of(records)), False), *columns]

    def sort(self, records: list[Any]) -> list[Any]:
        """Return the records sorted. Records that compare equal keep their order."""
        if self.keys is None and len(self.fields) == 1:
            return _sorted_by_one(records, self.fields[0])
        columns = self.columns(records)
        order = list(range(len(records)))
        for values, descending in reversed(columns):
            order.sort(key=values.__getitem__, reverse=descending)
        return list(map(records.__getitem__, order))

    def comparable(self, record: Any) -> Any:
        """Return a value by which single records compare as `sort` sorts them; slower than `sort`."""
        return tuple(
            [Backwards(values[0]) if descending else values[0] for values, descending in self.columns([record])]
        )


def tokens(keys: Iterable[Any]) -> list[int]:
    """Return a number for each key; equal keys have equal numbers. Valid in one process."""
    return list(map(_token, map(hash, keys)))


def _sorted_by_one(records: list[Any], field: SortField) -> list[Any]:
    """Sort by one field: half the time of the general way."""
    descending = field.order is Order.DESCENDING
    if not callable(field.by) and len(field.by) == 1 and type(field.by[0]) is int and all_are(tuple, records):
        return sorted(records, key=itemgetter(field.by[0]), reverse=descending)
    values = _values(records, field)
    order = sorted(range(len(records)), key=values.__getitem__, reverse=descending)
    return list(map(records.__getitem__, order))


def _values(records: Sequence[Any], field: SortField) -> list[Any]:
    if callable(field.by):
        return list(map(selecting(field.by), records))
    path = field.by
    if len(path) == 1 and type(path[0]) is int and all_are(tuple, records):
        return list(map(itemgetter(path[0]), records))
    values = []
    for record in records:
        values.append(read_path(record, path))
    return values


class Sorter:
    """Takes records and returns them sorted. Sorted runs go to disk when the worker uses too much memory.

    Args:
        by: The order.
        memory_mb: The memory that a Python worker may use, as ``spark.python.worker.memory`` says.
    """

    def __init__(self, by: SortedBy, memory_mb: int) -> None:
        self._by = by
        self._memory_mb = memory_mb
        self._records: list[Any] = []
        self._runs: list[ChunkFile] = []

    def add_all(self, records: Iterator[Any]) -> Sorter:
        """Take all records of an iterator."""
        size = BlobSize()
        limit_mb: float = self._memory_mb
        for chunk in size.chunks(records):
            self._records += chunk
            size.records = min(size.records * 2, 8192)
            if used_memory_mb() > limit_mb:
                self._spill()
                # Python may keep freed memory: the next run goes to disk when the use grows again.
                limit_mb = max(self._memory_mb, used_memory_mb() * 1.05)
        return self

    def sorted(self) -> Iterator[Any]:
        """Yield the records in order."""
        last = self._by.sort(self._records)
        self._records = []
        if not self._runs:
            return iter(last)
        in_memory = (last[start : start + _IN_A_CHUNK] for start in range(0, len(last), _IN_A_CHUNK))
        return chain.from_iterable(merged(self._by, [*(run.chunks() for run in self._runs), in_memory]))

    def _spill(self) -> None:
        run = ChunkFile()
        size = BlobSize()
        for chunk in size.chunks(iter(self._by.sort(self._records))):
            size.records = max(256 * 1024 * len(chunk) // run.write(chunk), 1)
        self._runs.append(run)
        self._records = []


class _Run:
    """A sorted run: the chunk that is being read, from an offset on, and the chunks that follow."""

    def __init__(self, chunks: Iterator[list[Any]]) -> None:
        self._chunks = chunks
        self._chunk: list[Any] = []
        self._start = 0

    def has_records(self) -> bool:
        """Return whether records are left; the next chunk is read if need be."""
        if self._start == len(self._chunk):
            self._chunk, self._start = next(self._chunks, []), 0
        return bool(self._chunk)

    @property
    def last(self) -> Any:
        """The last record of the chunk."""
        return self._chunk[-1]

    def take(self, find: Callable[..., int], bound: Any, by: SortedBy) -> list[Any]:
        """Return the records of the chunk up to a bound, which `bisect_left` or `bisect_right` finds."""
        start = self._start
        self._start = find(self._chunk, bound, start, key=by.comparable)
        return self._chunk[start : self._start]

    def rest(self) -> Iterator[list[Any]]:
        """Yield what is left, chunk by chunk."""
        yield self._chunk[self._start :]
        yield from self._chunks


def merged(by: SortedBy, runs: Sequence[Iterator[list[Any]]]) -> Iterator[list[Any]]:
    """Yield the records of sorted runs in order, chunk by chunk. Equal records keep the order of their runs.

    A chunk is made of all records up to the least last record of the runs' chunks: no later chunk has a lesser one. Its
    parts are sorted already, so Python sorts it by merging them, many times faster than a heap of single records.
    """
    waiting = [run for run in map(_Run, runs) if run.has_records()]
    while len(waiting) > 1:
        bounds = [by.comparable(run.last) for run in waiting]
        bound = min(bounds)
        # Its next chunk may begin with equal records, for which the records of later runs wait.
        first = bounds.index(bound)
        taken: list[Any] = []
        for number, run in enumerate(waiting):
            taken += run.take(bisect_right if number <= first else bisect_left, bound, by)
        yield by.sort(taken)
        waiting = [run for run in waiting if run.has_records()]
    for run in waiting:
        yield from run.rest()


Member = tuple[int, Any, Any]
"""The token of the key, the key, and the record."""


def streamed_groups(records: Iterator[Any], keys: Keys) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Yield each key and its records, from records that are sorted by `SortedBy(keys)`.

    The records of a key must be read before the next key is asked for; records that were not read are skipped.
    """
    for _, run in groupby(members(records, keys), itemgetter(0)):
        rest: Iterator[Member] = run
        while True:
            first = next(rest, None)
            if first is None:
                break
            others: list[Member] = []
            key = first[1]
            yield key, chain((first[2],), _records_with(key, rest, others))
            # The records that the reader of the group has not read.
            others += [member for member in rest if member[1] != key]
            rest = iter(others)


def members(records: Iterator[Any], keys: Keys) -> Iterator[Member]:
    """Yield records with their keys and the tokens of the keys."""
    for chunk in in_chunks(records):
        found = list(keys.of(chunk))
        yield from zip(tokens(found), found, chunk, strict=True)


def _records_with(key: Any, members: Iterator[Member], others: list[Member]) -> Iterator[Any]:
    for member in members:  # hot
        if member[1] == key:
            yield member[2]
        else:
            others.append(member)
