"""Combines the values of slices into the value of a window, per kind of function.

A combiner must give exactly what adding the records one by one would give. Where records of an earlier slice arrived
after records of a later one, order matters: of two equal records, `max_by` keeps the one that arrived first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import reduce
from operator import itemgetter
from typing import Any

from ekorn.functions.record_fields import Field, read_field, with_field
from ekorn.functions.rolling_aggregates import OnField
from ekorn.operators.windows.contents import Contents
from ekorn.types.by_value import own

Part = tuple[int, int, int, Any]
"""One slice of a key: its start, first arrival number, the arrival number of the chosen record, its value.

A plain tuple, as it is cut out of a strip: every slice of a firing window makes one.
"""

_FIRST_ARRIVAL, _CHOSEN_ARRIVAL = itemgetter(1), itemgetter(2)


class ValueCombiner(ABC):
    """Combines the values of slices. The result shares nothing with the values."""

    min_windows_per_record = 5

    tracks_chosen = False
    """Whether the arrival number of the chosen record must be known."""

    is_combinable: Callable[[Any], bool] | None = None
    """Says whether a record can be combined with others; None if all can."""

    combine_two: Callable[[Any, Any], Any]
    """Combines two values, the earlier one first, and changes neither."""

    @abstractmethod
    def combine(self, values: list[Any]) -> Any:
        """Combine the values of slices whose records arrived in the order of the slices."""

    @abstractmethod
    def combine_unordered(self, parts: list[Part]) -> Any:
        """Combine the values of slices whose records arrived in any order."""


class PromisedCombiner(ValueCombiner):
    """Functions that promise `combines_exactly`: order does not matter, and `merge` may change its arguments."""

    min_windows_per_record = 10

    def __init__(self, contents: Contents) -> None:
        merge = self._merge = contents.merge
        self.combine_two = lambda one, other: merge(own(one), own(other))

    def combine(self, values: list[Any]) -> Any:
        merge, combined = self._merge, own(values[0])
        for value in values[1:]:
            combined = merge(combined, own(value))
        return combined

    def combine_unordered(self, parts: list[Part]) -> Any:
        return self.combine([part[3] for part in parts])


class SumCombiner(ValueCombiner):
    """`sum` of integers: the first record, with the sum in one field."""

    def __init__(self, function: OnField) -> None:
        self.combine_two = function.reduce  # a built-in function changes none of its arguments
        self.is_combinable = _field_check(function.field, lambda summand: type(summand) is int)

    def combine(self, values: list[Any]) -> Any:
        return own(reduce(self.combine_two, values))

    def combine_unordered(self, parts: list[Part]) -> Any:
        return self.combine([part[3] for part in sorted(parts, key=_FIRST_ARRIVAL)])


class ChoiceCombiner(ValueCombiner):
    """`min_by` and `max_by`: a whole record is chosen. Of equal records the function keeps the earlier or the later."""

    tracks_chosen = True

    def __init__(self, function: OnField) -> None:
        self.combine_two = function.reduce  # a built-in function changes none of its arguments
        self.is_combinable = _field_check(function.field, _is_ordered)

    def combine(self, values: list[Any]) -> Any:
        return own(reduce(self.combine_two, values))

    def combine_unordered(self, parts: list[Part]) -> Any:
        return self.combine([part[3] for part in sorted(parts, key=_CHOSEN_ARRIVAL)])


class ExtremeCombiner(ValueCombiner):
    """`min` and `max`: the first record, with the chosen field in it."""

    tracks_chosen = True

    def __init__(self, function: OnField) -> None:
        self._field = function.field
        self._choice = ChoiceCombiner(function)
        self.combine_two = self._choice.combine_two
        self.is_combinable = self._choice.is_combinable

    def combine(self, values: list[Any]) -> Any:
        return own(reduce(self.combine_two, values))

    def combine_unordered(self, parts: list[Part]) -> Any:
        chosen = read_field(self._choice.combine_unordered(parts), self._field)
        return own(with_field(min(parts, key=_FIRST_ARRIVAL)[3], self._field, chosen))


_ORDERED_TYPES = frozenset({int, float, str, bool, bytes})


def _is_ordered(compared: Any) -> bool:
    """Return whether a value is of a totally ordered type, and not NaN."""
    return type(compared) in _ORDERED_TYPES and compared == compared


def _field_check(field: Field, accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a function that says whether a record's field is accepted."""

    def check(record: Any) -> bool:  # hot
        try:
            return accepts(record[field] if type(record) is tuple and type(field) is int else read_field(record, field))
        except (TypeError, IndexError):
            return False  # the record has no such field; the user's function raises the error when it gets the record

    return check
