"""Co-groups: the two keys, the order of the groups, and the function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

from ekorn.batch.plan.data_set_specs import CoGroupSpec, Order
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.program.data_set import DataSet, Key
from ekorn.batch.program.joins import Inputs
from ekorn.batch.program.key_arguments import (
    check_keys_match,
    checked_keys,
    checked_partitioner,
    checked_sort_field,
)
from ekorn.batch.program.unfinished import Unfinished
from ekorn.functions.record_functions import Partitioner
from ekorn.functions.windows.window_functions import CoGroupFunction
from ekorn.program.checks.argument_checks import check_function
from ekorn.types.type_information import TypeInformation

__all__ = ["CoGroup", "CoGroupKeys", "CoGroupOtherKeys"]


class CoGroupKeys(Unfinished):
    """A co-group without keys yet."""

    missing_call = "where(...).equal_to(...).using(function)"

    def __init__(self, first: DataSet, second: DataSet) -> None:
        first.check_other("co_group", second)
        self._inputs = Inputs(first, second)

    def where(self, *keys: Key) -> CoGroupOtherKeys:
        """Set the key of the first input."""
        return CoGroupOtherKeys(self._inputs, checked_keys("where", keys, self._inputs.first.get_type()))


class CoGroupOtherKeys(Unfinished):
    """A co-group without the key of its second input yet."""

    missing_call = "equal_to(...).using(function)"

    def __init__(self, inputs: Inputs, first_keys: Keys) -> None:
        self._inputs = inputs
        self._first_keys = first_keys

    def equal_to(self, *keys: Key) -> CoGroup:
        """Set the key of the second input."""
        first, second = self._inputs
        checked = checked_keys("equal_to", keys, second.get_type())
        check_keys_match("equal_to", self._first_keys, first.get_type(), checked, second.get_type())
        return CoGroup(self._inputs, CoGroupSpec(None, self._first_keys, checked))


class CoGroup(Unfinished):
    """A co-group without a function yet."""

    missing_call = "using(function)"

    def __init__(self, inputs: Inputs, spec: CoGroupSpec) -> None:
        self._inputs = inputs
        self._spec = spec

    def sort_first_group(self, field: Key, order: Order = Order.ASCENDING) -> Self:
        """Sort the groups of the first input by a field. Further calls add fields."""
        further = checked_sort_field("sort_first_group", field, order, self._inputs.first.get_type())
        self._spec = replace(self._spec, first_sort=(*self._spec.first_sort, further))
        return self

    def sort_second_group(self, field: Key, order: Order = Order.ASCENDING) -> Self:
        """Sort the groups of the second input by a field. Further calls add fields."""
        further = checked_sort_field("sort_second_group", field, order, self._inputs.second.get_type())
        self._spec = replace(self._spec, second_sort=(*self._spec.second_sort, further))
        return self

    def with_partitioner(self, partitioner: Partitioner | Callable[[Any, int], int]) -> Self:
        """Let a function of the key choose the partition where groups meet."""
        checked_partitioner("with_partitioner", partitioner, self._spec.first_keys)
        self._spec = replace(self._spec, partitioner=partitioner)
        return self

    def using(
        self,
        func: CoGroupFunction[Any, Any, Any] | Callable[[Iterator[Any], Iterator[Any]], Iterable[Any] | None],
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with the two groups of each key that either input has. A missing group is empty."""
        check_function("using", func, CoGroupFunction, 2)
        spec = replace(self._spec, function=func)
        data_set = DataSet(self._inputs.first.environment, "CoGroup", spec, tuple(self._inputs))
        return data_set.declared("using", output_type)

    with_ = using
