"""Iterations as values: what a superstep computes, what it reads, and when the iteration ends.

An iteration is one operator of a plan. Its inputs are the initial data and what the body reads from outside. The
operators of the body are not part of the plan: `iterations/step_plan.py` makes a separate plan from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ekorn.batch.plan.record_keys import FieldKeys, Keys
from ekorn.functions.data_sets.iteration_context import Aggregator, ConvergenceCriterion

if TYPE_CHECKING:
    from ekorn.batch.plan.operators import PlanOperator

__all__ = [
    "BulkIterationSpec",
    "Convergence",
    "DeltaIterationSpec",
    "IterationInputSpec",
    "IterationLimits",
    "TableCoGroupSpec",
    "TableJoinSpec",
    "WriteTablesSpec",
    "WriteTarget",
]


@dataclass(frozen=True)
class Convergence:
    """Ends an iteration by the merged value of an aggregator."""

    aggregator: str
    criterion: ConvergenceCriterion[Any]


@dataclass(frozen=True)
class IterationLimits:
    """When an iteration ends, and what its functions aggregate."""

    max_iterations: int
    aggregators: Mapping[str, Aggregator[Any]] = field(default_factory=dict)
    convergence: Convergence | None = None


@dataclass(frozen=True, eq=False)
class IterationInputSpec:
    """What the body of an iteration reads: the partial solution, the work set or the solution set."""


@dataclass(frozen=True, eq=False)
class BulkIterationSpec:
    """Replaces its whole data in each superstep.

    Attributes:
        partial: The operator of the body that stands for the data of the last superstep.
        result: The operator whose records are the data of the next superstep.
        criterion: The iteration goes on as long as this operator has records; None for no such criterion.
        limits: When the iteration ends.
    """

    partial: PlanOperator
    result: PlanOperator
    criterion: PlanOperator | None
    limits: IterationLimits


@dataclass(frozen=True, eq=False)
class DeltaIterationSpec:
    """Changes some elements of its solution set in each superstep.

    Attributes:
        solution: The operator of the body that stands for the solution set. It is joined or co-grouped only.
        work: The operator of the body that stands for the work set.
        delta: The operator whose records replace elements of the solution set by key.
        next_work: The operator whose records are the next work set.
        keys: The keys of the solution set.
        limits: When the iteration ends; it also ends when the work set is empty.
    """

    solution: PlanOperator
    work: PlanOperator
    delta: PlanOperator
    next_work: PlanOperator
    keys: FieldKeys
    limits: IterationLimits


# ---------------------------------------------------------------------------------- operators of a superstep's plan


@dataclass(frozen=True, eq=False)
class TableJoinSpec:
    """Joins records with the elements that a resident table keeps for their keys.

    Attributes:
        table: The number of the table.
        tables: The tables of the iteration, `IterationTables`.
        keys: The keys of the records.
        table_first: Whether the element of the table is the first argument of the function.
        keeps_unmatched: Whether a record without an element is joined with None.
        function: The join function; None makes a tuple.
        flat: Whether the function returns any number of results.
    """

    table: int
    tables: Any
    keys: Keys
    table_first: bool
    keeps_unmatched: bool
    function: Any
    flat: bool


@dataclass(frozen=True, eq=False)
class TableCoGroupSpec:
    """Calls a function with the group of each key that the records have, and the elements of a resident table."""

    table: int
    tables: Any
    keys: Keys
    sort: tuple[Any, ...]
    table_first: bool
    function: Any


@dataclass(frozen=True)
class WriteTarget:
    """A table that records are written to, with the keys of a table that has keys."""

    table: int
    keys: Keys | None = None
    drops_none: bool = False  # leaves out a record whose key is None, because no join finds it
    placed_by: Keys | None = None  # for a table without keys: the keys whose hash chooses a record's partition


@dataclass(frozen=True, eq=False)
class WriteTablesSpec:
    """Writes all records to one table or several. Emits one record per partition, which describes what was written."""

    tables: Any
    targets: tuple[WriteTarget, ...]
