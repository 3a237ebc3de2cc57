"""The state of `aggregate`: the accumulators of all aggregates of a key, and what a query of it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from ekorn.types.row import Row, make_row

__all__ = ["AggregateStateDescriptor", "parts_of_entry"]


class AggregateStateDescriptor(ValueStateDescriptor):
    """Declares a value state whose values are accumulators; a query returns a row of their results.

    Args:
        name: The name of the state.
        aggregates: The aggregates by the names of their results.
        queryable_name: The name under which clients read the state; None if they cannot.
    """

    def __init__(
        self, name: str, aggregates: Sequence[tuple[str, ColumnAggregate]], queryable_name: str | None
    ) -> None:
        super().__init__(name, None)
        self._names = [result for result, _ in aggregates]
        self._aggregates = [aggregate for _, aggregate in aggregates]
        if queryable_name is not None:
            self.set_queryable(queryable_name)

    def answer(self, entry: tuple[Any, ...]) -> Row:
        """Return the results of a key's accumulators."""
        parts = parts_of_entry(self._aggregates, entry)
        results = [aggregate.result(part) for aggregate, part in zip(self._aggregates, parts, strict=True)]
        return make_row(results, self._names)


def parts_of_entry(aggregates: Sequence[ColumnAggregate], entry: tuple[Any, ...] | None) -> list[tuple[Any, ...]]:
    """Return the accumulator of each aggregate; those of no rows if a key has no entry."""
    if entry is None:
        return [aggregate.create() for aggregate in aggregates]
    parts, first = [], 0
    for aggregate in aggregates:
        parts.append(entry[first : first + aggregate.width])
        first += aggregate.width
    return parts
