"""What each operator of a plan does, as frozen values. Functions are the objects of the user.

A spec knows nothing of Spark. `planner/plan_translation.py` has the page that lists all specs and what becomes of them.
Specs of operators that work on each record by itself are those of the stream graph.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ekorn.batch.outputs.output import Output
from ekorn.batch.plan.iteration_specs import (
    BulkIterationSpec,
    DeltaIterationSpec,
    IterationInputSpec,
    TableCoGroupSpec,
    TableJoinSpec,
    WriteTablesSpec,
)
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.plan.record_keys import FieldPath, Keys
from ekorn.graph.specs import FilterSpec, FlatMapSpec, MapSpec, ProjectSpec
from ekorn.types.data_types import RowType

__all__ = [
    "CoGroupSpec",
    "CollectAllSpec",
    "CombineGroupSpec",
    "CountSpec",
    "CrossSpec",
    "FilterSpec",
    "FirstSpec",
    "FlatMapSpec",
    "FrameInputSpec",
    "FrameSpec",
    "GroupReduceSpec",
    "InputSpec",
    "InputSplit",
    "JoinHint",
    "JoinKind",
    "JoinSpec",
    "MapPartitionSpec",
    "MapSpec",
    "Order",
    "OutputSpec",
    "PairwiseReduceSpec",
    "PartitionCustomSpec",
    "PartitionHashSpec",
    "PartitionRangeSpec",
    "ProjectSpec",
    "RebalanceSpec",
    "SampleSpec",
    "SampleWithSizeSpec",
    "SortField",
    "SortPartitionSpec",
    "Spec",
    "UnionSpec",
    "ZipWithIndexSpec",
    "ZipWithUniqueIdSpec",
]


class Order(enum.Enum):
    """The direction of a sort."""

    ASCENDING = "ascending"
    DESCENDING = "descending"


class JoinHint(enum.Enum):
    """How a join is to be run. The result is the same with every hint that its kind of join allows."""

    OPTIMIZER_CHOOSES = "OPTIMIZER_CHOOSES"
    BROADCAST_HASH_FIRST = "BROADCAST_HASH_FIRST"
    BROADCAST_HASH_SECOND = "BROADCAST_HASH_SECOND"
    REPARTITION_HASH_FIRST = "REPARTITION_HASH_FIRST"
    REPARTITION_HASH_SECOND = "REPARTITION_HASH_SECOND"
    REPARTITION_SORT_MERGE = "REPARTITION_SORT_MERGE"


class JoinKind(enum.Enum):
    """Which records without a partner a join keeps."""

    INNER = "join"
    LEFT = "left_outer_join"
    RIGHT = "right_outer_join"
    FULL = "full_outer_join"


@dataclass(frozen=True)
class SortField:
    """A field, or a selector's result, and the direction in which records are sorted by it."""

    by: FieldPath | Callable[[Any], Any]
    order: Order


class InputSplit(Protocol):
    """A part of an input. The driver pickles it, and one task reads it."""

    def read(self) -> Iterator[Any]:
        """Yield the records of the split. Called again when Spark repeats the task."""
        ...


class Input(Protocol):
    """An input. Each time the plan runs, the driver asks it for its splits."""

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[InputSplit]:
        """Return the splits: the tasks share them out. `parameters` is what `with_parameters` gave."""
        ...


# ---------------------------------------------------------------------------------- sources and results


@dataclass(frozen=True, eq=False)
class InputSpec:
    """Reads an input."""

    input: Input

    def partitioning(self) -> Partitioning | None:
        """Return what is known of the partitions; for most inputs nothing is known."""
        known: Partitioning | None = getattr(self.input, "partitioning", None)
        return known


@dataclass(frozen=True, eq=False)
class OutputSpec:
    """Writes records to an output."""

    output: Output


@dataclass(frozen=True, eq=False)
class FrameInputSpec:
    """Reads the rows of a DataFrame of Spark."""

    frame: Any
    row_type: RowType


@dataclass(frozen=True)
class FrameSpec:
    """Makes a Spark DataFrame from the records."""

    row_type: RowType


@dataclass(frozen=True)
class CollectAllSpec:
    """Brings all records to the driver."""


@dataclass(frozen=True)
class CountSpec:
    """Counts the records of each partition."""


# ---------------------------------------------------------------------------------- partition by partition


@dataclass(frozen=True, eq=False)
class MapPartitionSpec:
    function: Any


# ---------------------------------------------------------------------------------- groups; keys None: all records


@dataclass(frozen=True, eq=False)
class PairwiseReduceSpec:
    """Reduces each group to one record, pair by pair. A combiner runs before the shuffle."""

    function: Any
    keys: Keys | None


@dataclass(frozen=True, eq=False)
class GroupReduceSpec:
    """Calls a function with each group, sorted if asked for. A combiner runs before the shuffle if there is one."""

    function: Any
    keys: Keys | None
    sort: tuple[SortField, ...] = ()
    combinable: bool = False


@dataclass(frozen=True, eq=False)
class CombineGroupSpec:
    """Calls a function with the records of a key that are in one partition, in one or more parts. No shuffle."""

    function: Any
    keys: Keys | None
    sort: tuple[SortField, ...] = ()


@dataclass(frozen=True)
class FirstSpec:
    """Keeps up to `count` records, of each group if there are keys."""

    count: int
    keys: Keys | None = None
    sort: tuple[SortField, ...] = ()


# ---------------------------------------------------------------------------------- where records are


@dataclass(frozen=True)
class RebalanceSpec:
    """Deals records to all partitions in turn."""


@dataclass(frozen=True)
class PartitionHashSpec:
    keys: Keys


@dataclass(frozen=True)
class PartitionRangeSpec:
    """Partition i holds smaller keys than partition i + 1."""

    keys: Keys
    orders: tuple[Order, ...]


@dataclass(frozen=True, eq=False)
class PartitionCustomSpec:
    partitioner: Any
    keys: Keys


@dataclass(frozen=True)
class SortPartitionSpec:
    sort: tuple[SortField, ...]


# ---------------------------------------------------------------------------------- numbers and samples


@dataclass(frozen=True)
class ZipWithIndexSpec:
    """Pairs each record with its number: 0, 1, 2 and so on, partition after partition."""


@dataclass(frozen=True)
class ZipWithUniqueIdSpec:
    """Pairs each record with a number that no other record has."""


@dataclass(frozen=True)
class SampleSpec:
    """Keeps each record with a probability; with replacement, keeps each record that many times on average."""

    with_replacement: bool
    fraction: float
    seed: int | None


@dataclass(frozen=True)
class SampleWithSizeSpec:
    """Keeps a fixed number of records. Every choice is equally probable."""

    with_replacement: bool
    size: int
    seed: int | None


# ---------------------------------------------------------------------------------- two inputs


@dataclass(frozen=True)
class UnionSpec:
    pass


@dataclass(frozen=True, eq=False)
class JoinSpec:
    """Calls a function with each pair of records whose keys are equal.

    Attributes:
        function: The join function; None makes a tuple of the two records.
        flat: Whether the function returns any number of results.
        partitioner: Chooses the partition of a key, in place of its hash.
    """

    kind: JoinKind
    first_keys: Keys
    second_keys: Keys
    hint: JoinHint
    function: Any = None
    flat: bool = False
    partitioner: Any = None


@dataclass(frozen=True, eq=False)
class CoGroupSpec:
    """Calls a function with the two groups of each key that either input has."""

    function: Any
    first_keys: Keys
    second_keys: Keys
    first_sort: tuple[SortField, ...] = ()
    second_sort: tuple[SortField, ...] = ()
    partitioner: Any = None


@dataclass(frozen=True, eq=False)
class CrossSpec:
    """Calls a function with each pair of records.

    Attributes:
        function: The cross function; None makes a tuple of the two records.
        broadcast_first: Whether the first input is the one that every task gets whole; None for no hint.
    """

    function: Any
    broadcast_first: bool | None


Spec = (
    InputSpec
    | CollectAllSpec
    | CountSpec
    | OutputSpec
    | FrameInputSpec
    | FrameSpec
    | MapSpec
    | FlatMapSpec
    | FilterSpec
    | MapPartitionSpec
    | ProjectSpec
    | PairwiseReduceSpec
    | GroupReduceSpec
    | CombineGroupSpec
    | FirstSpec
    | RebalanceSpec
    | PartitionHashSpec
    | PartitionRangeSpec
    | PartitionCustomSpec
    | SortPartitionSpec
    | ZipWithIndexSpec
    | ZipWithUniqueIdSpec
    | SampleSpec
    | SampleWithSizeSpec
    | UnionSpec
    | IterationInputSpec
    | BulkIterationSpec
    | DeltaIterationSpec
    | TableJoinSpec
    | TableCoGroupSpec
    | WriteTablesSpec
    | JoinSpec
    | CoGroupSpec
    | CrossSpec
)
