"""`DataSet`: a bounded set of records, and the transformations that make others from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self, overload

from tamias.batch.plan.keys import FieldKeys
from tamias.batch.plan.partitioning import ForwardedFields
from tamias.batch.plan.specs import (
    CollectSpec,
    CountSpec,
    FilterSpec,
    FlatMapSpec,
    GroupReduceSpec,
    MapPartitionSpec,
    MapSpec,
    OutputSpec,
    PartitionHashSpec,
    ProjectSpec,
    RebalanceSpec,
    ReduceSpec,
    Spec,
    UnionSpec,
)
from tamias.batch.program.call_site import call_site
from tamias.batch.program.data_set_outputs import DataSetOutputs
from tamias.batch.program.iteration_scope import scope_of
from tamias.batch.program.key_arguments import checked_keys
from tamias.errors import InvalidProgramError
from tamias.functions.data_set_functions import GroupCombineFunction, GroupReduceFunction, MapPartitionFunction
from tamias.functions.record_functions import (
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    ReduceFunction,
)
from tamias.program.argument_checks import check_function, check_output_type, check_single_result
from tamias.types.composite_types import TupleTypeInfo
from tamias.types.record_text import record_text
from tamias.types.type_information import TypeInformation

if TYPE_CHECKING:
    from tamias.batch.program.execution_environment import ExecutionEnvironment
    from tamias.batch.program.grouping import Grouping
    from tamias.batch.program.iterations import DeltaIteration, IterativeDataSet, SolutionSet

__all__ = ["DataSet"]

Key = int | str | KeySelector | Callable[[Any], Any]
"""A field by position, name or path; ``"*"`` for the whole record; or a function that returns the key."""


class DataSet(DataSetOutputs):
    """Records, without an order. Nothing runs before `env.execute()`, `collect()`, `count()` or `print()`.

    Attributes:
        environment: The environment that runs it.
        spec: What its operator does.
        inputs: The data sets that its operator reads.
        site: The line of the program that drew it.
        scope: The iteration that it is inside of.
        solution_keys: The keys of a solution set; None for any other data set.
    """

    solution_keys: FieldKeys | None = None

    def __init__(
        self,
        environment: ExecutionEnvironment,
        kind: str,
        spec: Spec,
        inputs: tuple[DataSet, ...] = (),
        known_type: TypeInformation | None = None,
    ) -> None:
        self.environment = environment
        self.spec = spec
        self.inputs = inputs
        self.site = call_site()
        self.scope = scope_of(kind, spec, inputs)
        super().__init__(f"{kind} at {self.site}", known_type)

    @property
    def forwarded(self) -> tuple[ForwardedFields, ...]:
        """Return the fields that the function copies unchanged, for each input."""
        return ()

    def get_execution_environment(self) -> ExecutionEnvironment:
        """Return the environment that runs this data set."""
        return self.environment

    # ------------------------------------------------------------------------------ record by record

    def map(self, func: Callable[[Any], Any] | MapFunction, output_type: TypeInformation | None = None) -> DataSet:
        """Make one record of each record."""
        check_function("map", func, MapFunction, 1)
        check_single_result("map", func, "map")
        return self._next("Map", MapSpec(func))._declared("map", output_type)

    def flat_map(
        self,
        func: Callable[[Any], Iterable[Any] | None] | FlatMapFunction,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Make any number of records of each record."""
        check_function("flat_map", func, FlatMapFunction, 1)
        return self._next("FlatMap", FlatMapSpec(func))._declared("flat_map", output_type)

    def map_partition(
        self,
        func: Callable[[Iterator[Any]], Iterable[Any] | None] | MapPartitionFunction,
        output_type: TypeInformation | None = None,
    ) -> DataSet:
        """Make records of each partition. The function is called once for each partition, also for an empty one."""
        check_function("map_partition", func, MapPartitionFunction, 1)
        return self._next("MapPartition", MapPartitionSpec(func))._declared("map_partition", output_type)

    def filter(self, func: Callable[[Any], bool] | FilterFunction) -> DataSet:
        """Keep the records for which the function returns True."""
        check_function("filter", func, FilterFunction, 1)
        check_single_result("filter", func, "filter")
        return self._next("Filter", FilterSpec(func), self._known_type)

    def project(self, *fields: int) -> DataSet:
        """Make tuples of some fields, in the given order; a field may be given twice."""
        positions = checked_positions("project", fields, self._known_type)
        known = self._known_type
        if isinstance(known, TupleTypeInfo):
            types = known.get_field_types()
            known = TupleTypeInfo([types[position] for position in positions])
        return self._next("Projection", ProjectSpec(positions), known)

    # ------------------------------------------------------------------------------ all records, or groups

    def reduce(self, func: Callable[[Any, Any], Any] | ReduceFunction) -> DataSet:
        """Reduce all records to one, pair by pair, in any order. An empty data set stays empty."""
        check_function("reduce", func, ReduceFunction, 2)
        check_single_result("reduce", func, "reduce")
        return self._next("Reduce", ReduceSpec(func, None), self._known_type).set_parallelism(1)

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
        return self._next("GroupReduce", spec)._declared("reduce_group", output_type).set_parallelism(1)

    def group_by(self, *keys: Key) -> Grouping:
        """Group records by fields (positions, names, paths, ``"*"``), or by a key selector."""
        return self.environment.kinds.grouping(self, checked_keys("group_by", keys, self._known_type))

    # ------------------------------------------------------------------------------ where records are

    def union(self, *others: DataSet) -> DataSet:
        """Put the records of data sets together. Duplicates stay."""
        for other in others:
            self.check_other("union", other)
        types = {each.get_type() for each in (self, *others)}
        return DataSet(
            self.environment, "Union", UnionSpec(), (self, *others), self._known_type if len(types) == 1 else None
        )

    def rebalance(self) -> DataSet:
        """Deal records to all partitions in turn."""
        return self._next("Rebalance", RebalanceSpec(), self._known_type)

    def partition_by_hash(self, *keys: Key) -> DataSet:
        """Put records with equal keys into one partition, by the hash of the key."""
        checked = checked_keys("partition_by_hash", keys, self._known_type)
        return self._next("PartitionByHash", PartitionHashSpec(checked), self._known_type)

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

    # ------------------------------------------------------------------------------ results

    def collect(self) -> list[Any]:
        """Run what this data set needs, and return its records."""
        return self.environment.run_now(self._next("collect()", CollectSpec(), self._known_type))

    def count(self) -> int:
        """Run what this data set needs, and return the number of its records."""
        return sum(self.environment.run_now(self._next("count()", CountSpec())))

    def print(self) -> None:
        """Run what this data set needs, and print its records in the driver, one on each line."""
        for record in self.collect():
            print(record_text(self._known_type if self._declares_type else None, record))

    # ------------------------------------------------------------------------------ for the other builders

    def _next(self, kind: str, spec: Spec, known_type: TypeInformation | None = None) -> DataSet:
        return DataSet(self.environment, kind, spec, (self,), known_type)

    def _drawn_sink(self, kind: str, spec: OutputSpec) -> DataSet:
        sink = self._next(kind, spec)
        self.environment.add_sink(sink)
        return sink

    def _declared(self, call: str, output_type: TypeInformation | None) -> Self:
        check_output_type(call, output_type)
        return self if output_type is None else self.returns(output_type)

    def check_other(self, call: str, other: object) -> None:
        """Check that an argument is a data set of the same environment."""
        if not isinstance(other, DataSet):
            raise TypeError(f"{call}() takes a DataSet, got {other!r}")
        if other.environment is not self.environment:
            raise InvalidProgramError(f"{call}(): the two data sets belong to different environments")

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a DataSet is part of the program, not of a function: collect() it first, or use with_broadcast_set()"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.get_name()!r})"


def checked_positions(call: str, fields: tuple[Any, ...], type_info: TypeInformation | None) -> tuple[int, ...]:
    """Return positions of fields, given to a method that takes positions alone."""
    if not fields or not all(isinstance(field, int) and not isinstance(field, bool) for field in fields):
        raise InvalidProgramError(f"{call}() takes positions of fields, got {', '.join(map(repr, fields)) or 'none'}")
    checked_keys(call, fields, type_info)
    return fields
