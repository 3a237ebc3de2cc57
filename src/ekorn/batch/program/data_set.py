"""`DataSet`: a bounded set of records, and the transformations that make others from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, overload

from ekorn.batch.plan.data_set_specs import (
    CollectAllSpec,
    CountSpec,
    FirstSpec,
    FrameSpec,
    GroupReduceSpec,
    JoinHint,
    JoinKind,
    MapPartitionSpec,
    Order,
    PairwiseReduceSpec,
    PartitionCustomSpec,
    PartitionHashSpec,
    RebalanceSpec,
    SampleSpec,
    SampleWithSizeSpec,
    UnionSpec,
    ZipWithIndexSpec,
    ZipWithUniqueIdSpec,
)
from ekorn.batch.plan.partitioning import ForwardedFields
from ekorn.batch.plan.record_keys import FieldKeys
from ekorn.batch.planner.explained_plan import plan_as_text
from ekorn.batch.program.data_set_core import DataSetCore
from ekorn.batch.program.data_set_outputs import DataSetOutputs
from ekorn.batch.program.key_arguments import checked_keys, checked_partitioner, checked_positions
from ekorn.errors import InvalidProgramError
from ekorn.functions.data_sets.data_set_aggregates import Aggregations, Extreme, KeepFirst
from ekorn.functions.data_sets.data_set_functions import GroupCombineFunction, GroupReduceFunction, MapPartitionFunction
from ekorn.functions.record_functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ReduceFunction,
)
from ekorn.graph.specs import FilterSpec, FlatMapSpec, MapSpec, ProjectSpec
from ekorn.program.checks.argument_checks import check_function, check_single_result
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.factory import Types
from ekorn.types.record_text import record_text
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.batch.program.data_set_iterations import DeltaIteration, IterativeDataSet, SolutionSet
    from ekorn.batch.program.grouping import Grouping
    from ekorn.batch.program.joins import CoGroupKeys, CrossOperator, JoinKeys, OuterJoinKeys
    from ekorn.batch.program.refined_operators import (
        AggregateOperator,
        RangePartitionOperator,
        SortPartitionOperator,
    )

__all__ = ["DataSet", "DataSetResults", "Key"]


class DataSetResults(DataSetCore):
    """The part of `DataSet` that runs a program now."""

    def collect(self) -> list[Any]:
        """Run what this data set needs, and return its records."""
        return self.environment.run_now(self.next("collect()", CollectAllSpec(), self._known_type))

    def count(self) -> int:
        """Run what this data set needs, and return the number of its records."""
        return sum(self.environment.run_now(self.next("count()", CountSpec())))

    def explain(self) -> str:
        """Return the operators that this data set needs, one on each line, with how their records get there."""
        return plan_as_text(self.environment.plan([self]))

    def to_data_frame(self, schema: Any = None) -> Any:
        """Run what this data set needs; return its records as a DataFrame of Spark.

        Spark keeps the records as long as the DataFrame is used. They do not pass the driver.

        Args:
            schema: The columns: a `StructType`, text such as ``id long, word string``, ``DataTypes.ROW(...)`` or
                ``Types.ROW_NAMED(...)``. By default the columns of the declared type. Records are `Row`s, tuples or
                dicts.
        """
        from ekorn.engine.spark.data_frames.result_frames import row_type_for

        if isinstance(schema, str):
            self.environment.start_spark()  # Spark parses the text
        row_type = row_type_for(schema, self._known_type, "to_data_frame()")
        (frame,) = self.environment.run_now(self.next("to_data_frame()", FrameSpec(row_type)))
        return frame

    def print(self) -> None:
        """Run what this data set needs, and print its records in the driver, one on each line."""
        for record in self.collect():
            print(record_text(self._known_type if self._declares_type else None, record))


Key = int | str | KeySelector | Callable[[Any], Any]
"""A field by position, name or path; ``"*"`` for the whole record; or a function that returns the key."""

_UNCHANGED = (ForwardedFields(everything=True),)


class DataSet(DataSetOutputs, DataSetResults):
    """Records, without an order. Nothing runs before `env.execute()`, `collect()`, `count()` or `print()`."""

    # ------------------------------------------------------------------------------ record by record

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataSet:
        """Make one record of each record."""
        check_function("map", func, MapFunction, 1)
        check_single_result("map", func, "map")
        return self.next("Map", MapSpec(func)).declared("map", output_type)

    def flat_map(
        self,
        func: Callable[[Any], Iterable[Any] | None] | FlatMapFunction,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Make any number of records of each record."""
        check_function("flat_map", func, FlatMapFunction, 1)
        return self.next("FlatMap", FlatMapSpec(func)).declared("flat_map", output_type)

    def map_partition(
        self,
        func: Callable[[Iterator[Any]], Iterable[Any] | None] | MapPartitionFunction,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Make records of each partition. The function is called once for each partition, also for an empty one."""
        check_function("map_partition", func, MapPartitionFunction, 1)
        return self.next("MapPartition", MapPartitionSpec(func)).declared("map_partition", output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataSet:
        """Keep the records for which the function returns True."""
        check_function("filter", func, FilterFunction, 1)
        check_single_result("filter", func, "filter")
        return self.next("Filter", FilterSpec(func), self._known_type)

    def project(self, *fields: int) -> DataSet:
        """Make tuples of some fields, in the given order; a field may be given twice."""
        positions = checked_positions("project", fields, self._known_type)
        known = self._known_type
        if isinstance(known, TupleTypeInfo):
            types = known.get_field_types()
            known = TupleTypeInfo([types[position] for position in positions])
        return self.next("Projection", ProjectSpec(positions), known)

    # ------------------------------------------------------------------------------ all records

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataSet:
        """Reduce all records to one, pair by pair, in any order. An empty data set stays empty."""
        check_function("reduce", func, ReduceFunction, 2)
        check_single_result("reduce", func, "reduce")
        return self.next("Reduce", PairwiseReduceSpec(func, None), self._known_type).set_parallelism(1)

    def reduce_group(
        self,
        func: Callable[[Iterator[Any]], Iterable[Any] | None] | GroupReduceFunction,
        combinable: bool = False,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with all records, in one subtask. It is not called for an empty data set.

        Args:
            func: A function of an iterator, which can be read once. It yields or returns the results.
            combinable: Whether parts of the records may be combined first. A `GroupReduceFunction` that is a
                `GroupCombineFunction` too is combined by `combine`, any other function by itself.
            output_type: The type of the results.
        """
        check_function("reduce_group", func, GroupReduceFunction, 1)
        spec = GroupReduceSpec(func, None, combinable=combinable or isinstance(func, GroupCombineFunction))
        return self.next("GroupReduce", spec).declared("reduce_group", output_type).set_parallelism(1)

    def combine_group(
        self,
        func: Callable[[Iterator[Any]], Iterable[Any] | None] | GroupCombineFunction,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Call a function with the records of each partition, unless it is empty."""
        return self.environment.kinds.grouping(self, None).combine_group(func, output_type)

    def aggregate(self, agg: Aggregations, field: int) -> AggregateOperator:
        """Compute the sum, minimum or maximum of a field of all tuples. `and_agg` adds another field."""
        return self.environment.kinds.aggregate(self, None, agg, field)

    def sum(self, field: int) -> AggregateOperator:
        """Compute the sum of a field of all tuples."""
        return self.aggregate(Aggregations.SUM, field)

    def min(self, field: int) -> AggregateOperator:
        """Compute the minimum of a field of all tuples."""
        return self.aggregate(Aggregations.MIN, field)

    def max(self, field: int) -> AggregateOperator:
        """Compute the maximum of a field of all tuples."""
        return self.aggregate(Aggregations.MAX, field)

    def min_by(self, *fields: int) -> DataSet:
        """Keep the tuple whose fields are smallest, compared one after another."""
        positions = checked_positions("min_by", fields, self._known_type)
        return self.reduce(Extreme(positions, larger=False))

    def max_by(self, *fields: int) -> DataSet:
        """Keep the tuple whose fields are largest, compared one after another."""
        positions = checked_positions("max_by", fields, self._known_type)
        return self.reduce(Extreme(positions, larger=True))

    def first(self, n: int) -> DataSet:
        """Keep any `n` records, or all if there are fewer."""
        return self.next("First", FirstSpec(checked_count(n)), self._known_type).set_parallelism(1)

    # ------------------------------------------------------------------------------ groups

    def group_by(self, *keys: Key) -> Grouping:
        """Group records by fields (positions, names, paths, ``"*"``), or by a key selector."""
        return self.environment.kinds.grouping(self, checked_keys("group_by", keys, self._known_type))

    def distinct(self, *keys: Key) -> DataSet:
        """Keep one record of each key; without keys, one of several equal records."""
        checked = checked_keys("distinct", keys, self._known_type) if keys else FieldKeys(((),))
        distinct = self.next("Distinct", PairwiseReduceSpec(KeepFirst(), checked), self._known_type)
        distinct.forwarded = _UNCHANGED
        return distinct

    # ------------------------------------------------------------------------------ two inputs

    def union(self, *others: DataSet) -> DataSet:
        """Put the records of data sets together. Duplicates stay."""
        for other in others:
            self.check_other("union", other)
        types = {each.get_type() for each in (self, *others)}
        known = self._known_type if len(types) == 1 else None
        return DataSet(self.environment, "Union", UnionSpec(), (self, *others), known)

    def join(self, other: DataSet, hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> JoinKeys:
        """Join with another data set: ``a.join(b).where(0).equal_to(1)`` pairs records with equal keys."""
        return self.environment.kinds.join(self, other, hint)

    def join_with_tiny(self, other: DataSet) -> JoinKeys:
        """Join with a data set that is so small that every subtask gets all of it."""
        return self.join(other, JoinHint.BROADCAST_HASH_SECOND)

    def join_with_huge(self, other: DataSet) -> JoinKeys:
        """Join with a data set that is much larger than this one, of which every subtask gets all."""
        return self.join(other, JoinHint.BROADCAST_HASH_FIRST)

    def left_outer_join(self, other: DataSet, hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> OuterJoinKeys:
        """Join, and keep records of this data set without a partner: its partner is None."""
        return self.environment.kinds.outer_join(self, other, JoinKind.LEFT, hint)

    def right_outer_join(self, other: DataSet, hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> OuterJoinKeys:
        """Join, and keep records of the other data set without a partner: its partner is None."""
        return self.environment.kinds.outer_join(self, other, JoinKind.RIGHT, hint)

    def full_outer_join(self, other: DataSet, hint: JoinHint = JoinHint.OPTIMIZER_CHOOSES) -> OuterJoinKeys:
        """Join, and keep records of both data sets without a partner: their partner is None."""
        return self.environment.kinds.outer_join(self, other, JoinKind.FULL, hint)

    def co_group(self, other: DataSet) -> CoGroupKeys:
        """Group this and another data set: ``a.co_group(b).where(0).equal_to(1).using(f)``."""
        return self.environment.kinds.co_group(self, other)

    def cross(self, other: DataSet) -> CrossOperator:
        """Pair every record with every record of another data set."""
        return self.environment.kinds.cross(self, other, None)

    def cross_with_tiny(self, other: DataSet) -> CrossOperator:
        """Pair every record with every record of a small data set, of which every subtask gets all."""
        return self.environment.kinds.cross(self, other, False)

    def cross_with_huge(self, other: DataSet) -> CrossOperator:
        """Pair every record with every record of a large data set; every subtask gets all of this one."""
        return self.environment.kinds.cross(self, other, True)

    # ------------------------------------------------------------------------------ where records are

    def rebalance(self) -> DataSet:
        """Deal records to all partitions in turn."""
        return self.next("Rebalance", RebalanceSpec(), self._known_type)

    def partition_by_hash(self, *keys: Key) -> DataSet:
        """Put records with equal keys into one partition, by the hash of the key."""
        checked = checked_keys("partition_by_hash", keys, self._known_type)
        return self.next("PartitionByHash", PartitionHashSpec(checked), self._known_type)

    def partition_by_range(self, *keys: Key) -> RangePartitionOperator:
        """Put smaller keys into earlier partitions, equal keys into one. `with_orders` changes the directions."""
        return self.environment.kinds.range_partition(self, checked_keys("partition_by_range", keys, self._known_type))

    def partition_custom(self, partitioner: Partitioner | Callable[[Any, int], int], key: Key) -> DataSet:
        """Put each record into the partition that a function of its key and the number of partitions returns."""
        checked = checked_keys("partition_custom", (key,), self._known_type)
        checked_partitioner("partition_custom", partitioner, checked)
        return self.next("PartitionCustom", PartitionCustomSpec(partitioner, checked), self._known_type)

    def sort_partition(self, field: Key, order: Order = Order.ASCENDING) -> SortPartitionOperator:
        """Sort each partition by a field or a selector. Further calls add fields for records that are equal so far."""
        return self.environment.kinds.sort_partition(self, field, order)

    # ------------------------------------------------------------------------------ numbers and samples

    def zip_with_index(self) -> DataSet:
        """Pair each record with a number: 0, 1, 2 and so on. The results are (number, record)."""
        return self.next("ZipWithIndex", ZipWithIndexSpec(), self._numbered_type())

    def zip_with_unique_id(self) -> DataSet:
        """Pair each record with a number that no other record has. The results are (number, record)."""
        return self.next("ZipWithUniqueId", ZipWithUniqueIdSpec(), self._numbered_type())

    def sample(self, with_replacement: bool, fraction: float, seed: int | None = None) -> DataSet:
        """Keep each record with a probability; with replacement, each record `fraction` times on average."""
        if fraction < 0 or (fraction > 1 and not with_replacement):
            raise InvalidProgramError(
                f"sample(): a fraction must be from 0 to 1, or at least 0 with replacement, got {fraction!r}"
            )
        return self.next("Sample", SampleSpec(with_replacement, fraction, seed), self._known_type)

    def sample_with_size(self, with_replacement: bool, num_samples: int, seed: int | None = None) -> DataSet:
        """Keep a fixed number of records; every choice is equally probable."""
        if num_samples < 0:
            raise InvalidProgramError(
                f"sample_with_size(): the number of records must be at least 0, got {num_samples!r}"
            )
        return self.next("Sample", SampleWithSizeSpec(with_replacement, num_samples, seed), self._known_type)

    def _numbered_type(self) -> TypeInformation | None:
        return None if self._known_type is None else TupleTypeInfo([Types.LONG(), self._known_type])

    # ------------------------------------------------------------------------------ iterations

    @overload
    def iterate(self, max_iterations: int, step: None = None) -> IterativeDataSet: ...

    @overload
    def iterate(self, max_iterations: int, step: Callable[[IterativeDataSet], DataSet]) -> DataSet: ...

    def iterate(
        self, max_iterations: int, step: Callable[[IterativeDataSet], DataSet] | None = None
    ) -> IterativeDataSet | DataSet:
        """Begin a bulk iteration: each superstep makes a new data set of the whole last one.

        Args:
            max_iterations: The largest number of supersteps.
            step: If given, it is called once with the data set inside the iteration, and returns the result of a
                superstep. The iteration is then closed with it, and `iterate` returns the final result.
        """
        iteration = self.environment.kinds.bulk_iteration(self, max_iterations)
        return iteration if step is None else iteration.close_with(step(iteration))

    def iterate_with_termination(
        self, max_iterations: int, step: Callable[[IterativeDataSet], tuple[DataSet, DataSet]]
    ) -> DataSet:
        """Run a bulk iteration that ends when the second data set that `step` returns is empty."""
        iteration = self.environment.kinds.bulk_iteration(self, max_iterations)
        return iteration.close_with(*step(iteration))

    @overload
    def iterate_delta(
        self, work_set: DataSet, max_iterations: int, *key_fields: int | str, step: None = None
    ) -> DeltaIteration: ...

    @overload
    def iterate_delta(
        self,
        work_set: DataSet,
        max_iterations: int,
        *key_fields: int | str,
        step: Callable[[SolutionSet, DataSet], tuple[DataSet, DataSet]],
    ) -> DataSet: ...

    def iterate_delta(
        self,
        work_set: DataSet,
        max_iterations: int,
        *key_fields: int | str,
        step: Callable[[SolutionSet, DataSet], tuple[DataSet, DataSet]] | None = None,
    ) -> DeltaIteration | DataSet:
        """Begin a delta iteration: each superstep changes some elements of this data set, the solution set.

        Args:
            work_set: The work set of the first superstep.
            max_iterations: The largest number of supersteps.
            *key_fields: The fields that identify an element of the solution set.
            step: If given, it is called once with the solution set and the work set, and returns the delta and the
                next work set. The iteration is then closed with them, and `iterate_delta` returns the final result.
        """
        keys = checked_keys("iterate_delta", key_fields, self._known_type)
        if not isinstance(keys, FieldKeys):
            raise InvalidProgramError("iterate_delta() takes fields as keys, not a key selector")
        iteration = self.environment.kinds.delta_iteration(self, work_set, max_iterations, keys)
        if step is None:
            return iteration
        return iteration.close_with(*step(iteration.get_solution_set(), iteration.get_workset()))


def checked_count(n: int) -> int:
    """Return the number given to `first`."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InvalidProgramError(f"first() takes a number of records of at least 1, got {n!r}")
    return n
