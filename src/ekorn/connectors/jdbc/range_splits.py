"""A query read once, divided into ranges of a column."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ekorn.connectors.jdbc.ordered_query import Condition, OrderedQuery, OrderedRows, Place
from ekorn.connectors.number_seq import contiguous_ranges
from ekorn.functions.source_contract import Batch, Split, SplitReader


def ranges_of(lowest: int, highest: int, count: int) -> list[tuple[int | None, int | None]]:
    """Return ranges (first value, value behind the last) of even length that cover all numbers; None is no limit.

    The outer ranges have no limit, so rows outside of the bounds that were found are read as well.

    >>> ranges_of(1, 10, 3)
    [(None, 5), (5, 8), (8, None)]
    """
    starts = [each.first for each in contiguous_ranges(lowest, highest, count)]
    limits: list[int | None] = [None, *starts[1:], None]
    return list(itertools.pairwise(limits))


def range_splits(ranges: Sequence[tuple[int | None, int | None]]) -> list[Split]:
    """Return a split for each range, and one for the rows whose column is null."""
    splits = [Split(f"range-{number}", each) for number, each in enumerate(ranges)]
    return [*splits, Split("nulls")]


class RangeReader(SplitReader):
    """Reads a split of `range_splits`, or all rows; its position is a `Place`."""

    def __init__(self, query: OrderedQuery, split: Split, position: Any | None) -> None:
        conditions = []
        if split.id == "nulls":
            conditions.append(Condition("IS NULL"))
        elif split.what is not None:
            first, behind = split.what
            conditions += [Condition(">=", first)] if first is not None else []
            conditions += [Condition("<", behind)] if behind is not None else []
        self._rows = OrderedRows(query, conditions, None if position is None else Place(*position))

    def read(self, max_records: int) -> Batch:
        return Batch(self._rows.read(max_records))

    def position(self) -> tuple[Any, int]:
        return tuple(self._rows.place)

    @property
    def finished(self) -> bool:
        return self._rows.ended

    def close(self) -> None:
        self._rows.close()
