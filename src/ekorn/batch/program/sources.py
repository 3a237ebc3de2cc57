"""The inputs that need no storage: collections and sequences."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ekorn.types.by_value import dumps

__all__ = ["CollectionInput", "SequenceInput"]


class CollectionInput:
    """The elements of a collection, as they were when the program gave them."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = list(values)

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[PickledSplit]:
        """Return one slice for each subtask."""
        values = self._values
        bounds = [len(values) * number // parallelism for number in range(parallelism + 1)]
        return [PickledSplit(dumps(values[low:high])) for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class PickledSplit:
    """Some records, pickled."""

    records: bytes

    def read(self) -> Iterator[Any]:
        """Return the records."""
        return iter(pickle.loads(self.records))


@dataclass(frozen=True)
class SequenceInput:
    """The integers from `first` to `last`, both included."""

    first: int
    last: int

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[RangeSplit]:
        """Return one range for each subtask."""
        count = max(self.last - self.first + 1, 0)
        bounds = [self.first + count * number // parallelism for number in range(parallelism + 1)]
        return [RangeSplit(range(low, high)) for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class RangeSplit:
    """Some integers."""

    numbers: range

    def read(self) -> Iterator[int]:
        """Return the integers."""
        return iter(self.numbers)
