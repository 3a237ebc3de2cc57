"""`NumberSequenceSource`: generates a range of integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["NumberSequenceSource"]

_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1


class NumberSequenceSource(Source):
    """Generates the integers from `start` to `end`, both included. Each subtask reads one contiguous range, in order.

    >>> source = NumberSequenceSource(1, 5)
    >>> [split.what for split in source.discover_splits(parallelism=2)]
    [(1, 3), (4, 5)]
    """

    def __init__(self, start: int, end: int) -> None:
        """Create a source of the numbers from `start` to `end`; `end` is `start - 1` for an empty sequence."""
        for name, value in (("start", start), ("end", end)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"NumberSequenceSource() takes two ints, but {name} is {value!r}")
            if not _LONG_MIN <= value <= _LONG_MAX:
                raise ValueError(f"NumberSequenceSource() takes numbers of 64 bits, but {name} is {value}")
        if start > end + 1:
            raise ValueError(
                f"NumberSequenceSource() takes a sequence with start <= end + 1, but start is {start} and end is {end}"
            )
        self._start = start
        self._end = end

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED."""
        return Boundedness.BOUNDED

    def get_produced_type(self) -> TypeInformation:
        """Return LONG, as in Flink."""
        return Types.LONG()

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return one range per subtask, without empty ranges."""
        ranges = contiguous_ranges(self._start, self._end, parallelism)
        return [Split(str(number), tuple(bounds)) for number, bounds in enumerate(ranges)]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open a range at its first number, or at the position of an earlier reader."""
        start, end = split.what
        return _RangeReader(start if position is None else position, end)

    def __repr__(self) -> str:
        return f"NumberSequenceSource({self._start}, {self._end})"


class _RangeReader(SplitReader):
    """Reads a range; its position is the next number."""

    def __init__(self, start: int, end: int) -> None:
        self._next = start
        self._end = end

    def read(self, max_records: int) -> Batch:
        values = list(range(self._next, min(self._next + max_records, self._end + 1)))  # hot
        self._next += len(values)
        return Batch(values)

    def position(self) -> int:
        return self._next

    @property
    def finished(self) -> bool:
        return self._next > self._end


class NumberRange(NamedTuple):
    """A run of numbers, both ends inclusive. Checkpoints hold it as a plain tuple."""

    first: int
    last: int


def contiguous_ranges(start: int, end: int, count: int) -> list[NumberRange]:
    """Divide the numbers from `start` to `end` into at most `count` ranges of even length, none of them empty.

    >>> [tuple(each) for each in contiguous_ranges(0, 9, 4)]
    [(0, 2), (3, 5), (6, 7), (8, 9)]
    """
    # Flink: the ranges with one number more come first.
    size, longer = divmod(end - start + 1, count)
    ranges = []
    for number in range(count):
        length = size + (number < longer)
        if length:
            ranges.append(NumberRange(start, start + length - 1))
        start += length
    return ranges
