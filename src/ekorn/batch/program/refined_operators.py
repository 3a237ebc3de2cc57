"""Operators that a program refines by further calls: aggregates, range partitions, sorted partitions."""

from __future__ import annotations

from typing import Any, Self

from ekorn.batch.plan.data_set_specs import Order, PairwiseReduceSpec, PartitionRangeSpec, SortField, SortPartitionSpec
from ekorn.batch.plan.partitioning import ForwardedFields
from ekorn.batch.plan.record_keys import FieldKeys, FieldPath, Keys
from ekorn.batch.program.data_set import DataSet, Key
from ekorn.batch.program.key_arguments import checked_positions, checked_sort_field
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.data_set_aggregates import AggregateFields, Aggregations, FieldAggregation, SumField
from ekorn.types.basic_types import BasicTypeInfo
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["AggregateOperator", "RangePartitionOperator", "SortPartitionOperator"]

_WITHOUT_SUM = (Types.STRING(), Types.BOOLEAN(), Types.CHAR())


class AggregateOperator(DataSet):
    """Aggregates of fields. `and_agg` adds a field; the other fields are those of any tuple."""

    def __init__(self, data_set: DataSet, keys: Keys | None, agg: Aggregations, field: int) -> None:
        if keys is not None and not isinstance(keys, FieldKeys):
            raise InvalidProgramError("aggregate() needs groups by fields, not by a key selector; use reduce() instead")
        self._keys = keys
        self._aggregations: tuple[FieldAggregation, ...] = (_checked("aggregate", agg, field, data_set.get_type()),)
        super().__init__(data_set.environment, "Aggregate", self._reduce(), (data_set,), data_set.get_type())
        if keys is None:
            self.set_parallelism(1)
        self._forward_other_fields()

    def and_agg(self, agg: Aggregations, field: int) -> Self:
        """Compute the aggregate of one more field."""
        self._aggregations += (_checked("and_agg", agg, field, self.inputs[0].get_type()),)
        self.spec = self._reduce()
        self._forward_other_fields()
        return self

    def and_sum(self, field: int) -> Self:
        """Compute the sum of one more field."""
        return self.and_agg(Aggregations.SUM, field)

    def and_min(self, field: int) -> Self:
        """Compute the minimum of one more field."""
        return self.and_agg(Aggregations.MIN, field)

    def and_max(self, field: int) -> Self:
        """Compute the maximum of one more field."""
        return self.and_agg(Aggregations.MAX, field)

    def _reduce(self) -> PairwiseReduceSpec:
        first = self._aggregations[0]
        if len(self._aggregations) == 1 and first.function is Aggregations.SUM:
            return PairwiseReduceSpec(SumField(first.position), self._keys)
        return PairwiseReduceSpec(AggregateFields(self._aggregations), self._keys)

    def _forward_other_fields(self) -> None:
        changed = {(each.position,) for each in self._aggregations}
        keys = () if self._keys is None else self._keys.paths
        kept: dict[FieldPath, tuple[FieldPath, ...]] = {path: (path,) for path in keys if path not in changed}
        self.forwarded = (ForwardedFields(kept),)


class RangePartitionOperator(DataSet):
    """Records in partitions that follow each other in the order of the keys."""

    def __init__(self, data_set: DataSet, keys: Keys) -> None:
        self._keys = keys
        count = len(keys.paths) if isinstance(keys, FieldKeys) else 1
        spec = PartitionRangeSpec(keys, (Order.ASCENDING,) * count)
        super().__init__(data_set.environment, "PartitionByRange", spec, (data_set,), data_set.get_type())

    def with_orders(self, *orders: Order) -> Self:
        """Set the direction of each key."""
        assert isinstance(self.spec, PartitionRangeSpec)
        if not all(isinstance(order, Order) for order in orders) or len(orders) != len(self.spec.orders):
            raise InvalidProgramError(f"with_orders() takes an Order for each of {len(self.spec.orders)} keys")
        self.spec = PartitionRangeSpec(self._keys, orders)
        return self


class SortPartitionOperator(DataSet):
    """Sorted partitions."""

    def __init__(self, data_set: DataSet, field: Key, order: Order) -> None:
        sort = (checked_sort_field("sort_partition", field, order, data_set.get_type()),)
        super().__init__(
            data_set.environment, "SortPartition", SortPartitionSpec(sort), (data_set,), data_set.get_type()
        )

    def sort_partition(self, field: Key, order: Order = Order.ASCENDING) -> Self:
        """Sort records that are equal so far by one more field."""
        assert isinstance(self.spec, SortPartitionSpec)
        further = checked_sort_field("sort_partition", field, order, self.get_type())
        _check_no_mixture((*self.spec.sort, further))
        self.spec = SortPartitionSpec((*self.spec.sort, further))
        return self


def _check_no_mixture(sort: tuple[SortField, ...]) -> None:
    if len(sort) > 1 and any(callable(each.by) for each in sort):
        raise InvalidProgramError(
            "sort_partition(): a key selector cannot be combined with further fields; return a tuple from it instead"
        )


def _checked(call: str, agg: Any, field: Any, type_info: TypeInformation | None) -> FieldAggregation:
    if not isinstance(agg, Aggregations):
        raise InvalidProgramError(f"{call}() takes Aggregations.SUM, MIN or MAX, got {agg!r}")
    if type_info is not None and isinstance(type_info, BasicTypeInfo):
        raise InvalidProgramError(f"{call}() aggregates fields of tuples, and the records are {type_info}")
    (position,) = checked_positions(call, (field,), type_info)
    if isinstance(type_info, TupleTypeInfo) and agg is Aggregations.SUM:
        field_type = type_info.get_field_types()[position]
        if field_type in _WITHOUT_SUM:
            raise InvalidProgramError(f"{call}(): field {position} is a {field_type}, which cannot be summed")
    return FieldAggregation(agg, position)
