"""Folds: one record for each key, made by a reduce function, over chunks of records.

A fold holds the loop of a reduce, before a shuffle and after it. A sum of one field keeps numbers instead of tuples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from operator import itemgetter
from typing import Any

from ekorn.batch.tasks.task_operator import method
from ekorn.functions.data_sets.data_set_aggregates import NUMBERS, SumField
from ekorn.types.type_information import all_are

__all__ = ["Fold", "fold_of"]

_FIRST = itemgetter(0)
_TWO = (2).__eq__
_SAME_BESIDE_ZERO = NUMBERS - {Decimal}  # types for which 0 + x is exactly x


class Fold:
    """Keeps what a function makes of the records of each key."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function
        self._results: dict[Any, Any] = {}

    def add(self, keys: Iterable[Any], chunk: list[Any]) -> None:
        """Fold records into those of their keys."""
        function, results = self._function, self._results
        for key, record in zip(keys, chunk, strict=True):  # hot
            results[key] = function(results[key], record) if key in results else record

    def __len__(self) -> int:
        return len(self._results)

    def taken(self) -> dict[Any, Any]:
        """Return the record of each key, and start empty."""
        results, self._results = self._results, {}
        return results


class SumFold(Fold):
    """Adds one field of plain tuples, without a tuple for each record; the other fields are those of the last tuple.

    A chunk that holds something else goes through the function, which names the record that it cannot add. So does a
    chunk with a `Decimal`: sums begin at 0, and 0 + x rounds it.
    """

    def __init__(self, function: SumField) -> None:
        super().__init__(function.reduce)
        self._position = function.position
        self._value = itemgetter(function.position)
        self._sums: defaultdict[Any, Any] = defaultdict(int)
        self._last: dict[Any, Any] = {}

    def add(self, keys: Iterable[Any], chunk: list[Any]) -> None:
        keys, values = list(keys), self._values(chunk)
        if values is None:
            self._results = self._merged()
            super().add(keys, chunk)
            return
        sums = self._sums
        try:
            self._last.update(zip(keys, chunk, strict=True))
            for key, value in zip(keys, values, strict=True):  # hot
                sums[key] += value
        except TypeError:  # a key without a hash, or numbers that do not add; the function's loop names the record
            self._results = self._merged()
            super().add(keys, chunk)
            raise

    def __len__(self) -> int:
        return len(self._results) + len(self._sums)

    def taken(self) -> dict[Any, Any]:
        results = self._merged()
        self._results = {}
        return results

    def _values(self, chunk: list[Any]) -> list[Any] | None:
        """Return the numbers to add; None if the function has to process the chunk."""
        if self._results or not all_are(tuple, chunk):
            return None
        try:
            values = list(map(self._value, chunk))
        except IndexError:
            return None
        return values if _SAME_BESIDE_ZERO.issuperset(map(type, values)) else None

    def _merged(self) -> dict[Any, Any]:
        """Return all results as records, and forget the sums."""
        position, sums, last = self._position, self._sums, self._last
        are_pairs = position == 1 and all(map(_TWO, map(len, last.values())))
        if are_pairs and len(sums) == len(last):  # no loop is needed: both have the keys in the same order
            self._results.update(zip(sums, zip(map(_FIRST, last.values()), sums.values(), strict=True), strict=True))
        else:
            for key, total in sums.items():
                record = last[key]
                self._results[key] = (*record[:position], total, *record[position + 1 :])
        self._sums, self._last = defaultdict(int), {}
        return self._results


def fold_of(function: Any) -> Fold:
    """Return an empty fold of a reduce function."""
    return SumFold(function) if type(function) is SumField else Fold(method(function, "reduce"))
