"""Translates joins, co-groups and crosses: where the two inputs meet, and which of them waits in memory."""

from __future__ import annotations

from typing import Any

from ekorn.batch.plan.data_set_specs import CoGroupSpec, CrossSpec, JoinHint, JoinKind, JoinSpec
from ekorn.batch.plan.operators import PlanOperator
from ekorn.batch.plan.partitioning import Partitioning, after
from ekorn.batch.plan.record_keys import Keys
from ekorn.batch.planner.groups import in_partitions
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.blobs import FIRST, SECOND
from ekorn.batch.tasks.exits import CustomExit, KeyedExit, ShuffleExit
from ekorn.batch.tasks.join_operators import BroadcastCross, BroadcastJoin, HashJoin, SortMergeCoGroup, SortMergeJoin

__all__ = ["co_grouped", "crossed", "joined"]


def joined(stages: Stages, operator: PlanOperator, spec: JoinSpec, first: Flow, second: Flow) -> Flow:
    """Return the flow of a join."""
    name, parameters, memory_mb = operator.name, operator.parameters, stages.memory_mb
    match spec.hint:
        case JoinHint.BROADCAST_HASH_FIRST | JoinHint.BROADCAST_HASH_SECOND:
            second_built = spec.hint is JoinHint.BROADCAST_HASH_SECOND
            built, probed = (second, first) if second_built else (first, second)
            join = BroadcastJoin(name, spec, parameters, builds_second=second_built, memory_mb=memory_mb)
            join.shared["built"] = stages.broadcast(built, name)
            probed = in_partitions(stages, operator, probed)
            return stages.then(probed, join).partitioned(_kept(operator, 0 if second_built else 1, probed.partitioning))
        case JoinHint.REPARTITION_SORT_MERGE:
            merge = SortMergeJoin(name, spec, parameters, builds_second=False, memory_mb=memory_mb)
            inputs = _met(stages, operator, spec, first, second, none_allowed=True)
            return stages.together(*inputs, merge).partitioned(_kept_of_pairs(operator, spec))
        case _:
            # The sizes are unknown. Most programs name the larger input first.
            second_built = spec.hint is not JoinHint.REPARTITION_HASH_FIRST
            table = HashJoin(name, spec, parameters, builds_second=second_built, memory_mb=memory_mb)
            inputs = _met(stages, operator, spec, first, second, none_allowed=True, second_first=second_built)
            return stages.together(*inputs, table).partitioned(_kept_of_pairs(operator, spec))


def co_grouped(stages: Stages, operator: PlanOperator, spec: CoGroupSpec, first: Flow, second: Flow) -> Flow:
    """Return the flow of a co-group."""
    task = SortMergeCoGroup(operator.name, spec, operator.parameters, stages.memory_mb)
    return stages.together(*_met(stages, operator, spec, first, second, none_allowed=False), task).partitioned(None)


def crossed(stages: Stages, operator: PlanOperator, spec: CrossSpec, first: Flow, second: Flow) -> Flow:
    """Return the flow of a cross. Every task has one input whole: the second one, unless there is a hint."""
    whole, other = (first, second) if spec.broadcast_first else (second, first)
    cross = BroadcastCross(operator.name, spec.function, operator.parameters, other_is_first=bool(spec.broadcast_first))
    cross.shared["other"] = stages.broadcast(whole, operator.name)
    return stages.then(in_partitions(stages, operator, other), cross).partitioned(None)


def _kept_of_pairs(operator: PlanOperator, spec: JoinSpec) -> Partitioning | None:
    """Return what is known of the partitions of a join's results: a copied key stays in its partition.

    A record without a partner has no key on the other side, so that side's copies say nothing of it.
    """
    sides = {JoinKind.INNER: (0, 1), JoinKind.LEFT: (0,), JoinKind.RIGHT: (1,), JoinKind.FULL: ()}[spec.kind]
    for side in sides:
        kept = _kept(operator, side, Partitioning((spec.first_keys, spec.second_keys)[side], spec.partitioner))
        if kept is not None:
            return kept
    return None


def _kept(operator: PlanOperator, side: int, partitioning: Partitioning | None) -> Partitioning | None:
    return after(partitioning, operator.forwarded[side]) if operator.forwarded else None


def _met(
    stages: Stages,
    operator: PlanOperator,
    spec: JoinSpec | CoGroupSpec,
    first: Flow,
    second: Flow,
    *,
    none_allowed: bool,
    second_first: bool = False,
) -> tuple[Flow, Flow]:
    """Return both inputs with equal keys in equal partitions, in the order in which a task is to read them.

    An input that is partitioned by its key already is not shuffled again.
    """
    given = [(first, spec.first_keys), (second, spec.second_keys)]
    if second_first:
        given.reverse()
    flows = []
    for side, (flow, keys) in zip((FIRST, SECOND), given, strict=True):
        if not _is_placed(flow, keys, spec.partitioner, operator.parallelism):
            leaving = _exit(operator, keys, spec.partitioner, side, none_allowed=none_allowed)
            flow = stages.exchanged(flow, leaving, Partitioning(keys, spec.partitioner))  # noqa: PLW2901
        flows.append(flow)
    return flows[0], flows[1]


def _is_placed(flow: Flow, keys: Keys, partitioner: Any, parallelism: int) -> bool:
    return (
        flow.shuffled
        and flow.partitions == parallelism
        and flow.partitioning is not None
        and flow.partitioning.is_that_of(keys, partitioner)
    )


def _exit(operator: PlanOperator, keys: Keys, partitioner: Any, side: int, *, none_allowed: bool) -> ShuffleExit:
    if partitioner is not None:
        return CustomExit(operator.name, keys, operator.parallelism, partitioner, side)
    return KeyedExit(operator.name, keys, operator.parallelism, none_allowed=none_allowed, side=side)
