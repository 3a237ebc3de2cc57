"""Makes the plan of a superstep from the body of an iteration, once for all supersteps.

The operators that stand for the iteration's data become sources over resident tables, and the results of the body are
written to tables. A join with the solution set becomes a look-up by key, and so does a join with data from outside the
iteration: its elements are put into an index before the first superstep. A superstep then touches only the keys of the
records that it moves. Everything else that comes from outside is computed once and kept by Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ekorn.batch.plan.data_set_specs import (
    CoGroupSpec,
    CollectAllSpec,
    InputSpec,
    InputSplit,
    JoinHint,
    JoinKind,
    JoinSpec,
    UnionSpec,
)
from ekorn.batch.plan.iteration_specs import (
    BulkIterationSpec,
    DeltaIterationSpec,
    TableCoGroupSpec,
    TableJoinSpec,
    WriteTablesSpec,
    WriteTarget,
)
from ekorn.batch.plan.operators import Plan, PlanOperator, body_of
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.tasks.table_operators import TableSplit, Written
from ekorn.engine.slots.resident_tables import ResidentTables
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.task_side.table_access import TableAccess
from ekorn.errors import SlotLostError
from ekorn.slot_protocol.table_messages import TableKind, TablePartition

__all__ = ["IterationTables", "StepPlan", "TableSource"]


class StepPlan:
    """The plans of an iteration.

    Args:
        operator: The iteration, an operator with a `BulkIterationSpec` or `DeltaIterationSpec`.
        tables: Where its data will be.

    Attributes:
        superstep: Reads and writes tables. It ends in one sink, whose records are `Written`.
        result_table: The table that holds the result.
        data_table: The table that a superstep reads and replaces: the partial solution, or the work set.
        next_data: The operator whose records become the data of the next superstep.
        delta_keys: The keys of the solution set if the changes are the next work set too, which is then partitioned by
            them; else None.
        parallelism: The number of partitions of each table.
        work_table: The table whose emptiness ends the iteration; None for a bulk iteration.
    """

    def __init__(self, operator: PlanOperator, tables: IterationTables) -> None:
        spec = operator.spec
        assert isinstance(spec, BulkIterationSpec | DeltaIterationSpec)
        self._operator = operator
        self._tables = tables
        self._made: dict[PlanOperator, PlanOperator] = {}
        self._initial: list[tuple[PlanOperator, WriteTarget]] = []
        self.next_data: PlanOperator
        self.delta_keys: Keys | None = None
        self.parallelism = operator.parallelism
        self._solution = spec.solution if isinstance(spec, DeltaIterationSpec) else None
        self._inside = body_of(spec)
        self.result_table = tables.add(TableKind.BAG if self._solution is None else TableKind.SOLUTION)
        self.work_table: int | None = None if self._solution is None else tables.add(TableKind.BAG)
        self.data_table = self.result_table if self.work_table is None else self.work_table
        ends = self._bulk(spec) if isinstance(spec, BulkIterationSpec) else self._delta(spec)
        self.superstep = self._collecting(ends)

    def beginning(self, keys: Keys | None) -> Plan:
        """Return the plan that writes the initial data and the indexes to tables.

        Args:
            keys: The keys by which the supersteps keep their data partitioned; None if they do not.
        """
        data = self._initial[0 if self.work_table is None else 1][1]
        ends = []
        for operator, target in self._initial:
            ends.append(self._writing(operator, replace(target, placed_by=keys) if target is data else target))
        return self._collecting(ends)

    def _bulk(self, spec: BulkIterationSpec) -> list[PlanOperator]:
        partial = WriteTarget(self.result_table)
        self._initial.append((self._operator.inputs[0], partial))
        self._made[spec.partial] = self._reading(spec.partial, self.result_table)
        self._rewrite_body()
        self.next_data = self._in_step(spec.result)
        ends = [self._writing(self._in_step(spec.result), partial)]
        if spec.criterion is not None:
            ends.append(self._writing(self._in_step(spec.criterion)))  # these records are only counted
        return ends

    def _delta(self, spec: DeltaIterationSpec) -> list[PlanOperator]:
        assert self.work_table is not None
        solution, work = WriteTarget(self.result_table, spec.keys), WriteTarget(self.work_table)
        self._initial += [(self._operator.inputs[0], solution), (self._operator.inputs[1], work)]
        self._made[spec.work] = self._reading(spec.work, self.work_table)
        self._rewrite_body()
        self.next_data = self._in_step(spec.next_work)
        if spec.delta is spec.next_work:  # true in most programs: the records are then computed and sent only once
            self.delta_keys = spec.keys
            return [self._writing(self._in_step(spec.delta), solution, work)]
        return [
            self._writing(self._in_step(spec.delta), solution),
            self._writing(self._in_step(spec.next_work), work),
        ]

    # ------------------------------------------------------------------------------ the body

    def _rewrite_body(self) -> None:
        for operator in self._inside:
            if operator not in self._made and operator is not self._solution:
                self._made[operator] = self._rewritten(operator)

    def _rewritten(self, operator: PlanOperator) -> PlanOperator:
        match operator.spec:
            case JoinSpec() as spec:
                table_side = self._table_side(operator, spec)
                if table_side is not None:
                    return self._look_up(operator, spec, table_side)
            case CoGroupSpec() as spec if self._solution in operator.inputs:
                return self._look_up_groups(operator, spec)
        return replace(
            operator,
            inputs=tuple([self._in_step(each) for each in operator.inputs]),
            broadcasts={name: self._in_step(each) for name, each in operator.broadcasts.items()},
        )

    def _in_step(self, operator: PlanOperator) -> PlanOperator:
        """Return the operator that replaces an operator in the plan of a superstep; one from outside stays as it is."""
        return self._made.get(operator, operator)

    def _table_side(self, operator: PlanOperator, spec: JoinSpec) -> int | None:
        """Return which input of a join is looked up by key: 0, 1, or None if neither can be.

        An index is kept in memory. `REPARTITION_SORT_MERGE` asks for a join that does not depend on memory.
        """
        if self._solution in operator.inputs:
            return operator.inputs.index(self._solution)
        if spec.partitioner is not None or spec.hint is JoinHint.REPARTITION_SORT_MERGE:
            return None
        outside = [number for number, each in enumerate(operator.inputs) if each not in self._inside]
        if len(outside) != 1:
            return None
        keeps_inside = JoinKind.LEFT if outside == [1] else JoinKind.RIGHT
        return outside[0] if spec.kind in (JoinKind.INNER, keeps_inside) else None

    def _look_up(self, operator: PlanOperator, spec: JoinSpec, table_side: int) -> PlanOperator:
        keys = (spec.first_keys, spec.second_keys)
        searched = operator.inputs[table_side]
        table = self.result_table if searched is self._solution else self._index(searched, keys[table_side])
        return self._over_table(
            operator,
            1 - table_side,
            TableJoinSpec(
                table=table,
                tables=self._tables,
                keys=keys[1 - table_side],
                table_first=table_side == 0,
                keeps_unmatched=spec.kind is not JoinKind.INNER,
                function=spec.function,
                flat=spec.flat,
            ),
        )

    def _look_up_groups(self, operator: PlanOperator, spec: CoGroupSpec) -> PlanOperator:
        table_first = operator.inputs[0] is self._solution
        return self._over_table(
            operator,
            1 if table_first else 0,
            TableCoGroupSpec(
                table=self.result_table,
                tables=self._tables,
                keys=spec.second_keys if table_first else spec.first_keys,
                sort=spec.second_sort if table_first else spec.first_sort,
                table_first=table_first,
                function=spec.function,
            ),
        )

    def _over_table(self, operator: PlanOperator, side: int, spec: TableJoinSpec | TableCoGroupSpec) -> PlanOperator:
        """Return an operator that reads one of its inputs, in as many partitions as the tables have."""
        return replace(
            operator,
            spec=spec,
            inputs=(self._in_step(operator.inputs[side]),),
            broadcasts={name: self._in_step(each) for name, each in operator.broadcasts.items()},
            forwarded=operator.forwarded[side : side + 1],
            parallelism=self._operator.parallelism,
        )

    def _index(self, constant: PlanOperator, keys: Keys) -> int:
        """Plan an index over data from outside, which is built before the first superstep; return its table."""
        table = self._tables.add(TableKind.INDEX)
        self._initial.append((constant, WriteTarget(table, keys, drops_none=True)))
        return table

    # ------------------------------------------------------------------------------ both ends

    def _reading(self, head: PlanOperator, table: int) -> PlanOperator:
        source = InputSpec(TableSource(self._tables, table))
        return replace(head, spec=source, inputs=(), parallelism=self._operator.parallelism)

    def _writing(self, operator: PlanOperator, *targets: WriteTarget) -> PlanOperator:
        return PlanOperator(
            name=operator.name,
            spec=WriteTablesSpec(self._tables, targets),
            inputs=(operator,),
            parallelism=self._operator.parallelism,
            call_site=operator.call_site,
        )

    def _collecting(self, ends: list[PlanOperator]) -> Plan:
        """Return a plan that runs all ends in one Spark job."""
        name, parallelism = self._operator.name, self._operator.parallelism
        end = ends[0] if len(ends) == 1 else PlanOperator(name, UnionSpec(), tuple(ends), parallelism)
        return Plan((PlanOperator(name, CollectAllSpec(), (end,), parallelism),))


class IterationTables:
    """The resident tables of one iteration. The plan refers to them by number, before the slots exist.

    Tables are added while the plan of a superstep is made, and start empty.

    Attributes:
        partitionings: What is known of the partitions of tables that are read as a source.
    """

    def __init__(self) -> None:
        self._kinds: list[TableKind] = []
        self._resident: ResidentTables | None = None
        self.partitionings: dict[int, Partitioning] = {}

    def add(self, kind: TableKind) -> int:
        """Add a table; return its number."""
        self._kinds.append(kind)
        return len(self._kinds) - 1

    def start(self, pool: SlotPool, memory_bytes: int) -> None:
        """Take over the slots that will hold the tables."""
        self._resident = ResidentTables(pool, self._kinds, memory_bytes)

    def begin(self) -> None:
        """Begin an attempt of the iteration with empty tables."""
        self._started.begin()

    def access(self) -> TableAccess:
        """Return what the tasks of the next Spark job need to reach the tables."""
        started = self._started
        return TableAccess(started.addresses, started.secret, started.fence)

    def commit(self, written: Iterable[Written]) -> None:
        """Let what the tasks of a Spark job wrote take effect."""
        self._started.commit(write for each in written for write in each.writes)

    def lost(self) -> SlotLostError | None:
        """Return the error of a slot that is gone, or None if all are there."""
        return self._started.lost()

    def close(self) -> None:
        """End the slots."""
        if self._resident is not None:
            self._resident.close()

    @property
    def _started(self) -> ResidentTables:
        assert self._resident is not None, "start() comes first"
        return self._resident


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table as the source of a plan. Each run reads the table as it is then."""

    tables: IterationTables
    table: int

    @property
    def partitioning(self) -> Partitioning | None:
        """Return what is known of the table's partitions."""
        return self.tables.partitionings.get(self.table)

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[InputSplit]:
        """Return one split for each partition of the table."""
        access = self.tables.access()
        return [TableSplit(access, TablePartition(self.table, number)) for number in range(parallelism)]
