"""Translates the operators of a superstep that use resident tables.

Partition p of a flow uses partition p of a table, so a flow is partitioned by the hash of its keys as the table is.
"""

from __future__ import annotations

from ekorn.batch.plan.iteration_specs import TableCoGroupSpec, TableJoinSpec, WriteTablesSpec
from ekorn.batch.plan.operators import PlanOperator
from ekorn.batch.plan.partitioning import Partitioning, after
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.planner.groups import in_partitions
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.exits import KeyedExit
from ekorn.batch.tasks.table_operators import SearchedTable, TableCoGroup, TableJoin, WriteTables

__all__ = ["co_grouped", "joined", "written"]


def joined(stages: Stages, operator: PlanOperator, spec: TableJoinSpec, flow: Flow) -> Flow:
    """Return the flow of a join with the elements of a table."""
    flow = _by_keys(stages, operator, spec.keys, flow, none_allowed=True)
    task = TableJoin(
        operator.name,
        spec.function,
        operator.parameters,
        SearchedTable(spec.tables.access(), spec.table, spec.keys, spec.table_first),
        keeps_unmatched=spec.keeps_unmatched,
        flat=spec.flat,
    )
    return _forwarding(operator, flow, stages.then(flow, task))


def co_grouped(stages: Stages, operator: PlanOperator, spec: TableCoGroupSpec, flow: Flow) -> Flow:
    """Return the flow of a co-group with the elements of a table."""
    flow = _by_keys(stages, operator, spec.keys, flow, none_allowed=False)
    task = TableCoGroup(
        operator.name,
        spec.function,
        operator.parameters,
        SearchedTable(spec.tables.access(), spec.table, spec.keys, spec.table_first),
        sort=spec.sort,
        memory_mb=stages.memory_mb,
    )
    return _forwarding(operator, flow, stages.then(flow, task))


def written(stages: Stages, operator: PlanOperator, spec: WriteTablesSpec, flow: Flow) -> Flow:
    """Return the flow of what is written to tables. At most one of them has keys."""
    keyed = [target for target in spec.targets if target.keys is not None]
    assert len(keyed) <= 1, "a record is in one partition"
    if keyed and keyed[0].keys is not None:
        flow = _by_keys(stages, operator, keyed[0].keys, flow, none_allowed=keyed[0].drops_none)
    elif spec.targets and spec.targets[0].placed_by is not None:
        flow = _by_keys(stages, operator, spec.targets[0].placed_by, flow, none_allowed=True)
    elif spec.targets:
        flow = in_partitions(stages, operator, flow)
    return stages.then(flow, WriteTables(operator.name, spec.tables.access(), spec.targets)).partitioned(None)


def _by_keys(stages: Stages, operator: PlanOperator, keys: Keys, flow: Flow, *, none_allowed: bool) -> Flow:
    """Return a flow whose records are in the partitions where a table keeps the elements of their keys."""
    known = flow.partitioning
    if known is not None and known.is_that_of(keys, None) and flow.partitions == operator.parallelism:
        return flow
    leaving = KeyedExit(operator.name, keys, operator.parallelism, none_allowed=none_allowed)
    return stages.exchanged(flow, leaving, Partitioning(keys))


def _forwarding(operator: PlanOperator, before: Flow, flow: Flow) -> Flow:
    known = after(before.partitioning, operator.forwarded[0]) if operator.forwarded else None
    return flow.partitioned(known)
