"""Sorts the records of a task, on disk when they are too many, and streams the groups of a sorted input.

Groups need not be in the order of their keys: equal keys must be next to each other, whatever their type. So records
are grouped by a part of the hash of their key, and keys that share it are separated while the groups are read.
"""

from __future__ import annotations

import heapq
import os
import pickle
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import IO, Any

from tamias.batch.plan.record_keys import Keys, read_path, selecting
from tamias.batch.plan.specs import Order, SortField
from tamias.batch.tasks.blobs import BlobSize, in_chunks
from tamias.batch.tasks.exits import Backwards
from tamias.batch.tasks.worker_memory import used_memory_mb
from tamias.types.by_value import dumps
from tamias.types.type_information import all_are

__all__ = ["Member", "SortedBy", "Sorter", "members", "streamed_groups"]

_SIZE = struct.Struct("<I")
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
        self._runs: list[IO[bytes]] = []

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
        return heapq.merge(*map(_records_of, self._runs), last, key=self._by.comparable)

    def _spill(self) -> None:
        folder = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or None
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - read later; nothing is left when it is closed
        size = BlobSize()
        for chunk in size.chunks(iter(self._by.sort(self._records))):
            data = dumps(chunk)
            size.records = max(256 * 1024 * len(chunk) // len(data), 1)
            file.write(_SIZE.pack(len(data)))
            file.write(data)
        self._runs.append(file)
        self._records = []


def _records_of(file: IO[bytes]) -> Iterator[Any]:
    with file:
        file.seek(0)
        while head := file.read(_SIZE.size):
            yield from pickle.loads(file.read(*_SIZE.unpack(head)))


Member = tuple[int, Any, Any]
"""The token of the key, the key, and the record."""


def streamed_groups(records: Iterator[Any], keys: Keys) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Yield each key and its records, from records that are sorted by `SortedBy(keys)`.

    The records of a key must be read before the next key is asked for; those not read are passed over.
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
            others += [member for member in rest if member[1] != key]  # what the reader of the group has left
            rest = iter(others)


def members(records: Iterator[Any], keys: Keys) -> Iterator[Member]:
    """Yield records with their keys and the tokens of these."""
    for chunk in in_chunks(records):
        found = list(keys.of(chunk))
        yield from zip(tokens(found), found, chunk, strict=True)


def _records_with(key: Any, members: Iterator[Member], others: list[Member]) -> Iterator[Any]:
    for member in members:  # hot
        if member[1] == key:
            yield member[2]
        else:
            others.append(member)
