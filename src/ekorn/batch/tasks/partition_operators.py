"""Operators over a partition as it is: sorting, numbering and sampling."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, NamedTuple

from ekorn.batch.plan.data_set_specs import SortField
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.tasks.blobs import FIRST, encode, in_chunks
from ekorn.batch.tasks.exits import ForwardExit
from ekorn.batch.tasks.sorting import SortedBy, Sorter
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.errors import RecomputedInputError

__all__ = [
    "KeySample",
    "KeySampleExit",
    "Numbering",
    "PickNumbered",
    "SampleFraction",
    "SortPartition",
    "UniqueNumbering",
]


class SortPartition(TaskOperator):
    def __init__(self, name: str, sort: tuple[SortField, ...], memory_mb: int) -> None:
        super().__init__(name)
        self.sort = sort
        self.memory_mb = memory_mb

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        return Sorter(SortedBy(None, self.sort), self.memory_mb).add_all(records).sorted()


class IndexedOperator(TaskOperator):
    """An operator that works differently in each subtask, and depends on the position of records in it."""

    index = 0
    goes_by_order = True

    def open(self, context: Any) -> None:
        self.index = context.get_index_of_this_subtask()
        self.parallelism = context.get_number_of_parallel_subtasks()
        super().open(context)


class Numbering(IndexedOperator):
    """Pairs records with consecutive numbers. `starts` has the first number of each partition."""

    def __init__(self, name: str, starts: list[int]) -> None:
        super().__init__(name)
        self.starts = starts

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        first = self.starts[self.index]
        numbers = count(first)
        yield from zip(numbers, records, strict=False)
        found = next(numbers) - first - 1  # `zip` has taken one number more than there are records
        _compare(self.name, self.index, found, self.starts[self.index + 1] - first)


class UniqueNumbering(IndexedOperator):
    """Pairs records with numbers that no other subtask gives.

    Flink: the number of the record in its subtask, shifted by the bits of the parallelism, and the subtask.
    """

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        step = 1 << (self.parallelism - 1).bit_length()
        return zip(count(self.index, step), records)


class SampleFraction(IndexedOperator):
    """Keeps each record with a probability, or a Poisson-distributed number of times."""

    def __init__(self, name: str, fraction: float, seed: int, *, with_replacement: bool) -> None:
        super().__init__(name)
        self.fraction = fraction
        self.seed = seed
        self.with_replacement = with_replacement

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        chance = random.Random(f"{self.seed}/{self.index}")
        fraction = self.fraction
        if not self.with_replacement:
            for record in records:  # hot
                if chance.random() < fraction:
                    yield record
            return
        for record in records:
            # Arrivals of a Poisson process in an interval of length `fraction`.
            waited = chance.expovariate(1.0)
            while waited < fraction:
                yield record
                waited += chance.expovariate(1.0)


class PickNumbered(IndexedOperator):
    """Keeps the records with given numbers, each so many times. `starts` has the first number of each partition."""

    def __init__(self, name: str, starts: list[int], picks: Mapping[int, int]) -> None:
        super().__init__(name)
        self.starts = starts
        self.picks = picks

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        first, number = self.starts[self.index], self.starts[self.index] - 1
        for number, record in enumerate(records, start=first):
            for _ in range(self.picks.get(number, 0)):
                yield record
        _compare(self.name, self.index, number + 1 - first, self.starts[self.index + 1] - first)


def _compare(operator: str, partition: int, found: int, counted: int) -> None:
    """Raise if a partition does not have the records that the job before has counted."""
    if found != counted:
        raise RecomputedInputError(operator, partition, counted, found)


class KeySample(NamedTuple):
    """Some keys of a partition, and how many records it has."""

    records: int
    keys: list[Any]


class KeySampleExit(ForwardExit):
    """Sends a random sample of the keys of a partition to the driver."""

    def __init__(self, name: str, keys: Keys, most: int) -> None:
        super().__init__(name)
        self.keys = keys
        self.most = most

    def write(self, records: Iterator[Any]) -> Iterator[bytes]:
        chance = random.Random(0)
        sample: list[Any] = []
        seen, rate = 0, 1.0
        for chunk in in_chunks(records):
            wanted = len(chunk) * rate
            picked = chance.sample(chunk, int(wanted) + (chance.random() < wanted % 1))  # right on average
            sample += self.keys.of(picked)
            seen += len(chunk)
            if len(sample) > 2 * self.most:
                sample = chance.sample(sample, self.most)
                rate = self.most / seen
        yield encode(FIRST, [KeySample(seen, sample)])
