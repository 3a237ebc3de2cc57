"""`Grouping`: records by key, before a function over the groups is chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ekorn.batch.plan.data_set_specs import (
    CombineGroupSpec,
    FirstSpec,
    GroupReduceSpec,
    Order,
    PairwiseReduceSpec,
    PartitionCustomSpec,
    SortField,
)
from ekorn.batch.plan.partitioning import ForwardedFields
from ekorn.batch.plan.record_keys import FieldKeys, Keys, SelectorKeys
from ekorn.batch.program.data_set import DataSet, Key, checked_count
from ekorn.batch.program.key_arguments import checked_partitioner, checked_positions, checked_sort_field
from ekorn.batch.program.refined_operators import AggregateOperator
from ekorn.batch.program.unfinished import Unfinished
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.data_set_aggregates import Aggregations, Extreme
from ekorn.functions.data_sets.data_set_functions import GroupCombineFunction, GroupReduceFunction
from ekorn.functions.record_functions import Partitioner, ReduceFunction
from ekorn.program.checks.argument_checks import check_function, check_single_result
from ekorn.types.type_information import TypeInformation

__all__ = ["Grouping", "SortedGrouping"]


class GroupsOf(Unfinished):
    """The groups of a data set: what sorted and unsorted groups share. Without keys, each partition is a group."""

    missing_call = "reduce(), reduce_group() or an aggregate such as sum()"

    def __init__(self, data_set: DataSet, keys: Keys | None, sort: tuple[SortField, ...] = ()) -> None:
        self.data_set = data_set
        self.keys = keys
        self.sort = sort

    def reduce_group(
        self,
        func: Callable[[Iterator[Any]], Iterable[Any] | None] | GroupReduceFunction,
        combinable: bool = False,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with each group.

        Args:
            func: A function of an iterator, which can be read once. It yields or returns the results.
            combinable: Whether parts of a group may be combined before the shuffle. A `GroupReduceFunction` that is a
                `GroupCombineFunction` too is combined by `combine`, any other function by itself.
            output_type: The type of the results.
        """
        check_function("reduce_group", func, GroupReduceFunction, 1)
        combinable = combinable or isinstance(func, GroupCombineFunction)
        spec = GroupReduceSpec(func, self.keys, self.sort, combinable)
        return self.data_set.next("GroupReduce", spec).declared("reduce_group", output_type)

    def combine_group(
        self,
        func: Callable[[Iterator[Any]], Iterable[Any] | None] | GroupCombineFunction,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with the records of a key that are in one partition, in one or more parts."""
        check_function("combine_group", func, GroupCombineFunction, 1)
        spec = CombineGroupSpec(func, self.keys, self.sort)
        return self.data_set.next("GroupCombine", spec).declared("combine_group", output_type)

    def first(self, n: int) -> DataSet:
        """Keep the first `n` records of each group; any, if the groups are not sorted."""
        data_set = self.data_set.next("First", FirstSpec(checked_count(n), self.keys, self.sort), self._type)
        data_set.forwarded = (ForwardedFields(everything=True),)
        return data_set

    def sort_group(self, field: Key, order: Order = Order.ASCENDING) -> SortedGrouping:
        """Sort each group by a field, or by a selector if the key is one. Further calls add fields."""
        by_selector = callable(field) or not isinstance(field, (int, str))
        if by_selector is not isinstance(self.keys, SelectorKeys) or (by_selector and self.sort):
            raise InvalidProgramError(
                "sort_group(): groups by a key selector are sorted by one selector, groups by fields by fields"
            )
        further = checked_sort_field("sort_group", field, order, self._type)
        return SortedGrouping(self.data_set, self.keys, (*self.sort, further))

    @property
    def _type(self) -> TypeInformation | None:
        return self.data_set.get_type()


class SortedGrouping(GroupsOf):
    """The records of a data set by key, each group sorted."""


class Grouping(GroupsOf):
    """The records of a data set by key."""

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataSet:
        """Reduce each group to one record, pair by pair, in any order. The result must keep the key."""
        check_function("reduce", func, ReduceFunction, 2)
        check_single_result("reduce", func, "reduce")
        return self.data_set.next("Reduce", PairwiseReduceSpec(func, self.keys), self._type)

    def aggregate(self, agg: Aggregations, field: int) -> AggregateOperator:
        """Compute the sum, minimum or maximum of a field of each group. `and_agg` adds another field."""
        return AggregateOperator(self.data_set, self.keys, agg, field)

    def sum(self, field: int) -> AggregateOperator:
        """Compute the sum of a field of each group."""
        return self.aggregate(Aggregations.SUM, field)

    def min(self, field: int) -> AggregateOperator:
        """Compute the minimum of a field of each group."""
        return self.aggregate(Aggregations.MIN, field)

    def max(self, field: int) -> AggregateOperator:
        """Compute the maximum of a field of each group."""
        return self.aggregate(Aggregations.MAX, field)

    def min_by(self, *fields: int) -> DataSet:
        """Keep the tuple of each group whose fields are smallest, compared one after another."""
        return self._extreme("min_by", fields, larger=False)

    def max_by(self, *fields: int) -> DataSet:
        """Keep the tuple of each group whose fields are largest, compared one after another."""
        return self._extreme("max_by", fields, larger=True)

    def with_partitioner(self, partitioner: Partitioner | Callable[[Any, int], int]) -> Grouping:
        """Let a function of the key choose the partition of each group."""
        assert self.keys is not None, "group_by() gives keys"
        checked_partitioner("with_partitioner", partitioner, self.keys)
        spec = PartitionCustomSpec(partitioner, self.keys)
        return Grouping(self.data_set.next("PartitionCustom", spec, self._type), self.keys)

    def _extreme(self, call: str, fields: tuple[int, ...], *, larger: bool) -> DataSet:
        if not isinstance(self.keys, FieldKeys):
            raise InvalidProgramError(f"{call}() needs groups by fields, not by a key selector")
        chosen = self.reduce(Extreme(checked_positions(call, fields, self._type), larger=larger))
        chosen.forwarded = (ForwardedFields(everything=True),)
        return chosen
