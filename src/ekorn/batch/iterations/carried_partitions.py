"""Decides whether the data of an iteration stays partitioned by key from superstep to superstep.

The data of a superstep is written where it is, and read there by the next superstep. If it comes from an operator whose
partitions are known, and still does when the superstep begins with such partitions, a join or a group by these keys
needs no shuffle in any superstep. The initial data is then partitioned in the same way, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ekorn.batch.iterations.iteration_tables import IterationTables
from ekorn.batch.iterations.step_plan import StepPlan
from ekorn.batch.plan.operators import PlanOperator
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.planner.no_rdds import NoRdds
from ekorn.batch.planner.plan_translation import Translation
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.task_context import TaskJobInfo

__all__ = ["carry_partitioning"]


def carry_partitioning(plan: StepPlan, tables: IterationTables, given: Mapping[PlanOperator, Flow]) -> Keys | None:
    """Let the supersteps read their data as partitioned by key if it is; return the keys, or None."""
    tables.partitionings.clear()
    found = _of_next_data(plan, given)
    if found is None or found.partitioner is not None:
        return None
    tables.partitionings[plan.data_table] = found
    if _of_next_data(plan, given) == found:
        return found.keys
    tables.partitionings.clear()
    return None


def _of_next_data(plan: StepPlan, given: Mapping[PlanOperator, Flow]) -> Partitioning | None:
    """Return how a superstep leaves its data, by translating its plan without Spark."""
    if plan.delta_keys is not None:
        return Partitioning(plan.delta_keys)
    flows = {operator: replace(flow, rdd=None) for operator, flow in given.items()}
    translated = Translation(Stages(NoRdds(), TaskJobInfo("", "")), plan.superstep, flows).flows[plan.next_data]
    return translated.partitioning if translated.partitions == plan.parallelism else None
