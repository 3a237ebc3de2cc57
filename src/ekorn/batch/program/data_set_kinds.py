"""Makes the builders that a `DataSet` returns, whose modules import `DataSet` themselves."""

from __future__ import annotations

from ekorn.batch.plan.data_set_specs import JoinHint, JoinKind, Order, Spec
from ekorn.batch.plan.record_keys import FieldKeys, Keys
from ekorn.batch.program.data_set import DataSet, Key
from ekorn.batch.program.data_set_core import DataSetCore
from ekorn.batch.program.data_set_iterations import DeltaIteration, IterativeDataSet
from ekorn.batch.program.grouping import Grouping
from ekorn.batch.program.joins import CoGroupKeys, CrossOperator, JoinKeys, OuterJoinKeys
from ekorn.batch.program.refined_operators import AggregateOperator, RangePartitionOperator, SortPartitionOperator
from ekorn.functions.data_sets.data_set_aggregates import Aggregations
from ekorn.types.type_information import TypeInformation

__all__ = ["DataSetKinds"]


class DataSetKinds:
    """The factory of builders that an environment has, so that `DataSet` need not import them."""

    def data_set(self, reads: DataSetCore, kind: str, spec: Spec, known_type: TypeInformation | None) -> DataSet:
        """Return the data set of an operator that reads another one."""
        return DataSet(reads.environment, kind, spec, (reads,), known_type)

    def grouping(self, data_set: DataSet, keys: Keys | None) -> Grouping:
        """Return the records of a data set by key."""
        return Grouping(data_set, keys)

    def bulk_iteration(self, initial: DataSet, max_iterations: int) -> IterativeDataSet:
        """Return the data set inside a new bulk iteration."""
        return IterativeDataSet(initial, max_iterations)

    def delta_iteration(
        self, initial: DataSet, work_set: DataSet, max_iterations: int, keys: FieldKeys
    ) -> DeltaIteration:
        """Return a new delta iteration."""
        return DeltaIteration(initial, work_set, max_iterations, keys)

    def aggregate(self, data_set: DataSet, keys: Keys | None, agg: Aggregations, field: int) -> AggregateOperator:
        """Return the aggregate of a field."""
        return AggregateOperator(data_set, keys, agg, field)

    def range_partition(self, data_set: DataSet, keys: Keys) -> RangePartitionOperator:
        """Return a data set partitioned by ranges of keys."""
        return RangePartitionOperator(data_set, keys)

    def sort_partition(self, data_set: DataSet, field: Key, order: Order) -> SortPartitionOperator:
        """Return a data set with sorted partitions."""
        return SortPartitionOperator(data_set, field, order)

    def join(self, first: DataSet, second: DataSet, hint: JoinHint) -> JoinKeys:
        """Return a join without keys yet."""
        return JoinKeys(first, second, JoinKind.INNER, hint)

    def outer_join(self, first: DataSet, second: DataSet, kind: JoinKind, hint: JoinHint) -> OuterJoinKeys:
        """Return an outer join without keys yet."""
        return OuterJoinKeys(first, second, kind, hint)

    def co_group(self, first: DataSet, second: DataSet) -> CoGroupKeys:
        """Return a co-group without keys yet."""
        return CoGroupKeys(first, second)

    def cross(self, first: DataSet, second: DataSet, broadcast_first: bool | None) -> CrossOperator:
        """Return all pairs of two data sets."""
        return CrossOperator(first, second, broadcast_first)
