"""Aggregates of windows by name, on rows: `window(...).aggregate(total=Sum("amount"))`.

The accumulator of a window is one tuple with the accumulators of all aggregates, one after the other. Windows on
columns (`operators/columns/column_windows.py`) have the same state and give the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ekorn.functions.column_aggregates import ColumnAggregate
from ekorn.functions.record_functions import AggregateFunction
from ekorn.functions.windows.window_functions import AllWindowFunction, WindowFunction
from ekorn.types.row import Row, make_row

__all__ = ["WINDOW_END", "WINDOW_START", "AllWindowRows", "NamedAggregates", "WindowRows"]

WINDOW_START, WINDOW_END = "window_start", "window_end"
"""The columns of results with the bounds of a window, in milliseconds since the epoch."""


class NamedAggregates(AggregateFunction):
    """Computes several aggregates of columns at once. The result is a tuple with a value for each of them."""

    def __init__(self, aggregates: Sequence[ColumnAggregate]) -> None:
        self._aggregates = tuple(aggregates)

    def create_accumulator(self) -> tuple[Any, ...]:
        return sum((aggregate.create() for aggregate in self._aggregates), ())

    def add(self, value: Any, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        pairs = zip(self._aggregates, self._parts(accumulator), strict=True)
        return sum((aggregate.add_record(part, value) for aggregate, part in pairs), ())

    def get_result(self, accumulator: tuple[Any, ...]) -> tuple[Any, ...]:
        pairs = zip(self._aggregates, self._parts(accumulator), strict=True)
        return tuple(aggregate.result(part) for aggregate, part in pairs)

    def merge(self, acc_a: tuple[Any, ...], acc_b: tuple[Any, ...]) -> tuple[Any, ...]:
        triples = zip(self._aggregates, self._parts(acc_a), self._parts(acc_b), strict=True)
        return sum((aggregate.merge(one, other) for aggregate, one, other in triples), ())

    def _parts(self, accumulator: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        parts, first = [], 0
        for aggregate in self._aggregates:
            parts.append(accumulator[first : first + aggregate.width])
            first += aggregate.width
        return parts


class WindowRows(WindowFunction[Any, Row, Any, Any]):
    """Makes the row of a window: the fields of the key, the bounds of a time window, and the aggregates."""

    def __init__(self, names: Sequence[str], *, bounds: bool) -> None:
        self._names = list(names)
        self._bounds = bounds

    def apply(self, key: Any, window: Any, inputs: Iterable[Any]) -> list[Row]:
        bounds = (window.start, window.end) if self._bounds else ()
        return [make_row([*key, *bounds, *results], self._names) for results in inputs]


class AllWindowRows(AllWindowFunction[Any, Row, Any]):
    """Makes the row of a window of a stream without keys."""

    def __init__(self, names: Sequence[str], *, bounds: bool) -> None:
        self._rows = WindowRows(names, bounds=bounds)

    def apply(self, window: Any, inputs: Iterable[Any]) -> list[Row]:
        return self._rows.apply((), window, inputs)
