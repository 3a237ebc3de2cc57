"""Translates operators over groups: a combiner, a shuffle unless the groups are together already, and the function."""

from __future__ import annotations

from typing import Any

from ekorn.batch.plan.data_set_specs import CombineGroupSpec, GroupReduceSpec, PairwiseReduceSpec, PartitionCustomSpec
from ekorn.batch.plan.operators import PlanOperator
from ekorn.batch.plan.partitioning import Partitioning, after
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.exits import CustomExit, DealingExit, KeyedExit
from ekorn.batch.tasks.group_operators import (
    CombineBeforeShuffle,
    CombineGroups,
    CombineReduce,
    GroupReduce,
    KeyedReduce,
    WholeGroupReduce,
    WholeReduce,
)
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.functions.data_sets.data_set_functions import GroupCombineFunction

__all__ = ["are_together", "combining", "gathered", "group_reduced", "grouped", "in_partitions", "reduced"]


def reduced(stages: Stages, operator: PlanOperator, spec: PairwiseReduceSpec, flow: Flow) -> Flow:
    """Return the flow of a reduce."""
    name, parameters = operator.name, operator.parameters
    if spec.keys is None:
        if flow.partitions > 1:
            flow = gathered(stages, operator, stages.then(flow, WholeReduce(name, spec.function, parameters)))
        return stages.then(flow, WholeReduce(name, spec.function, parameters)).partitioned(None)
    together = are_together(flow, spec.keys, operator.parallelism)
    if not together:
        flow = stages.then(flow, CombineReduce(name, spec.function, spec.keys, parameters))
        flow = grouped(stages, operator, flow, spec.keys)
    # Flink: a reduce function must keep the key. This planner does not rely on that, unless the function declares it.
    kept = after(flow.partitioning, operator.forwarded[0]) if operator.forwarded else None
    unchecked = together or _partitioner(operator, spec.keys) is not None
    final = KeyedReduce(name, spec.function, spec.keys, parameters, memory_mb=stages.memory_mb, checks_keys=unchecked)
    return stages.then(flow, final).partitioned(kept)


def group_reduced(stages: Stages, operator: PlanOperator, spec: GroupReduceSpec, flow: Flow) -> Flow:
    """Return the flow of a function over groups."""
    name, parameters = operator.name, operator.parameters
    combine = "combine" if isinstance(spec.function, GroupCombineFunction) else "reduce"
    if spec.keys is None:
        if flow.partitions > 1:
            if spec.combinable:
                flow = stages.then(flow, WholeGroupReduce(name, spec.function, parameters, combine))
            flow = gathered(stages, operator, flow)
        return stages.then(flow, WholeGroupReduce(name, spec.function, parameters)).partitioned(None)
    if not are_together(flow, spec.keys, operator.parallelism):
        if spec.combinable:
            flow = stages.then(
                flow,
                CombineBeforeShuffle(
                    name,
                    spec.function,
                    spec.keys,
                    spec.sort,
                    parameters=parameters,
                    method_name=combine,
                    memory_mb=stages.memory_mb,
                ),
            )
        flow = grouped(stages, operator, flow, spec.keys)
    kept = after(flow.partitioning, operator.forwarded[0]) if operator.forwarded else None
    final = GroupReduce(name, spec.function, spec.keys, spec.sort, parameters=parameters, memory_mb=stages.memory_mb)
    return stages.then(flow, final).partitioned(kept)


def combining(operator: PlanOperator, spec: CombineGroupSpec) -> TaskOperator:
    """Return the operator of a combine function, which runs where the records are."""
    if spec.keys is None:
        return WholeGroupReduce(operator.name, spec.function, operator.parameters, "combine")
    return CombineGroups(operator.name, spec.function, spec.keys, spec.sort, parameters=operator.parameters)


def are_together(flow: Flow, keys: Keys, parallelism: int) -> bool:
    """Return whether the records of each group are in one partition already."""
    if flow.partitions != parallelism:
        return False
    return flow.partitions == 1 or (flow.partitioning is not None and flow.partitioning.keeps_together(keys))


def grouped(stages: Stages, operator: PlanOperator, flow: Flow, keys: Keys) -> Flow:
    """Return the records of a flow after a shuffle by their keys: by the program's partitioner, or else by hash."""
    partitioner = _partitioner(operator, keys)
    if partitioner is None:
        return stages.exchanged(flow, KeyedExit(operator.name, keys, operator.parallelism), Partitioning(keys))
    leaving = CustomExit(operator.name, keys, operator.parallelism, partitioner)
    return stages.exchanged(flow, leaving, Partitioning(keys, partitioner))


def _partitioner(operator: PlanOperator, keys: Keys) -> Any:
    """Return the partitioner that the program gave for the keys of groups; None for the hash."""
    spec = operator.inputs[0].spec
    return spec.partitioner if isinstance(spec, PartitionCustomSpec) and spec.keys == keys else None


def in_partitions(stages: Stages, operator: PlanOperator, flow: Flow) -> Flow:
    """Return a flow with as many partitions as an operator has subtasks. Flink deals records out in turn too."""
    if flow.partitions == operator.parallelism:
        return flow
    if flow.partitions > operator.parallelism:
        return stages.fewer(flow, operator.parallelism)
    return stages.exchanged(flow, DealingExit(operator.name, operator.parallelism), None)


def gathered(stages: Stages, operator: PlanOperator, flow: Flow) -> Flow:
    """Return all records of a flow in one partition."""
    return stages.exchanged(flow, DealingExit(operator.name, 1), None)
