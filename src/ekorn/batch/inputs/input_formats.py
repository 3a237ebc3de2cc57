"""Inputs that a program defines itself: `InputFormat` and `SplittableIterator`."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ekorn.config.configuration import Configuration
from ekorn.errors import InvalidProgramError

__all__ = ["FormatInput", "InputFormat", "IteratorInput", "NumberSequenceIterator", "SplittableIterator"]

T = TypeVar("T")
S = TypeVar("S")


class InputFormat(ABC, Generic[T, S]):
    """Input of `env.create_input`. It divides itself into splits in the driver; each split is read in one subtask."""

    def configure(self, parameters: Configuration) -> None:
        """Take the parameters that `with_parameters` gave. Called first, in the driver and in each task."""

    @abstractmethod
    def create_input_splits(self, min_num_splits: int) -> Sequence[S]:
        """Return the splits, at least as many as asked for if the input allows it. They are pickled."""

    @abstractmethod
    def open(self, split: S) -> None:
        """Begin to read a split."""

    @abstractmethod
    def reached_end(self) -> bool:
        """Return whether all records of the split were read."""

    @abstractmethod
    def next_record(self) -> T | None:
        """Return the next record, or None if the split turns out to have no more records."""

    def close(self) -> None:
        """Release the resources that `open` acquired. Also called after a failure."""


@dataclass(frozen=True, eq=False)
class FormatInput:
    """The records of an `InputFormat`."""

    format: InputFormat[Any, Any]

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[FormatSplit]:
        """Return the splits of the format."""
        self.format.configure(Configuration.from_dict(dict(parameters)))
        splits = self.format.create_input_splits(parallelism)
        return [FormatSplit(self.format, split, dict(parameters)) for split in splits]


@dataclass(frozen=True, eq=False)
class FormatSplit:
    """One split of an `InputFormat`."""

    format: InputFormat[Any, Any]
    split: Any
    parameters: dict[str, str]

    def read(self) -> Iterator[Any]:
        """Yield the records of the split."""
        reader = self.format
        reader.configure(Configuration.from_dict(self.parameters))
        try:
            reader.open(self.split)
            while not reader.reached_end():
                record = reader.next_record()
                if record is not None:
                    yield record
        finally:
            reader.close()


class SplittableIterator(ABC, Generic[T]):
    """Values that divide themselves, for `env.from_parallel_collection`."""

    @abstractmethod
    def split(self, num_partitions: int) -> Sequence[Iterable[T]]:
        """Return as many parts as asked for, some of which may be empty. They are pickled."""

    def get_maximum_number_of_splits(self) -> int:
        """Return how many parts can have values."""
        return 2**31 - 1


class NumberSequenceIterator(SplittableIterator[int]):
    """The integers from `start` to `end`, both included."""

    def __init__(self, start: int, end: int) -> None:
        if end < start:
            raise InvalidProgramError(f"NumberSequenceIterator({start}, {end}): the end is before the start")
        self._numbers = range(start, end + 1)

    def split(self, num_partitions: int) -> Sequence[range]:
        count = len(self._numbers)
        bounds = [count * number // num_partitions for number in range(num_partitions + 1)]
        return [self._numbers[low:high] for low, high in itertools.pairwise(bounds)]

    def get_maximum_number_of_splits(self) -> int:
        return len(self._numbers)


@dataclass(frozen=True, eq=False)
class IteratorInput:
    """The values of a `SplittableIterator`."""

    iterator: SplittableIterator[Any]

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[IteratorSplit]:
        """Return one part for each subtask."""
        parts = self.iterator.split(parallelism)
        if len(parts) != parallelism:
            raise InvalidProgramError(
                f"{type(self.iterator).__name__}.split({parallelism}) returned {len(parts)} parts; "
                "return as many as requested; some of them may be empty"
            )
        return [IteratorSplit(part) for part in parts]


@dataclass(frozen=True, eq=False)
class IteratorSplit:
    """Some values."""

    values: Iterable[Any]

    def read(self) -> Iterator[Any]:
        """Yield the values."""
        yield from self.values
