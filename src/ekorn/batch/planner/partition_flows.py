"""Translates operators that move, sort, number or sample records as they are."""

from __future__ import annotations

import random
from collections import Counter
from itertools import accumulate
from typing import Any

from ekorn.batch.plan.data_set_specs import FirstSpec, Order, PartitionRangeSpec, SampleSpec, SampleWithSizeSpec
from ekorn.batch.plan.operators import PlanOperator
from ekorn.batch.plan.partitioning import Partitioning
from ekorn.batch.planner.groups import are_together, gathered, grouped
from ekorn.batch.planner.stages import Flow, Stages
from ekorn.batch.tasks.exits import CountExit, RangeExit, in_order
from ekorn.batch.tasks.group_operators import FirstInPartition, FirstOfGroups, FirstRecords
from ekorn.batch.tasks.partition_operators import (
    KeySample,
    KeySampleExit,
    Numbering,
    PickNumbered,
    SampleFraction,
)
from ekorn.errors import InvalidProgramError

__all__ = ["first", "numbered", "partitioned_by_range", "sampled", "sampled_with_size"]

_SAMPLED_KEYS = 1000  # keys sampled from each partition


def partitioned_by_range(stages: Stages, operator: PlanOperator, spec: PartitionRangeSpec, flow: Flow) -> Flow:
    """Return a flow whose partitions follow each other in the order of the keys. A job samples the keys first."""
    flow = stages.kept(flow)
    samples = stages.collected(flow, KeySampleExit(operator.name, spec.keys, _SAMPLED_KEYS))
    descending = tuple([order is Order.DESCENDING for order in spec.orders])
    try:
        bounds = range_bounds(samples, operator.parallelism, descending)
    except TypeError as error:
        raise InvalidProgramError(f"operator {operator.name!r} cannot sort its keys: {error}") from None
    leaving = RangeExit(operator.name, spec.keys, operator.parallelism, bounds, descending)
    return stages.exchanged(flow, leaving, Partitioning(spec.keys, leaving))


def range_bounds(samples: list[KeySample], partitions: int, descending: tuple[bool, ...]) -> list[Any]:
    """Return keys between which partitions get about equally many records; fewer if there are not enough keys.

    >>> range_bounds([KeySample(6, [1, 2, 3]), KeySample(1, [9])], 2, (False,))
    [2]
    """
    weighted = [(key, sample.records / len(sample.keys)) for sample in samples for key in sample.keys]
    weighted.sort(key=lambda pair: in_order(pair[0], descending))
    step = sum(weight for _, weight in weighted) / partitions
    bounds: list[Any] = []
    passed = 0.0
    for key, weight in weighted:
        passed += weight
        if passed >= step * (len(bounds) + 1) and len(bounds) < partitions - 1 and (not bounds or bounds[-1] != key):
            bounds.append(key)
    return bounds


def first(stages: Stages, operator: PlanOperator, spec: FirstSpec, flow: Flow) -> Flow:
    """Return the flow of the first records, of all or of each group."""
    if spec.keys is None:
        if flow.partitions > 1:
            flow = gathered(stages, operator, stages.then(flow, FirstRecords(operator.name, spec.count)))
        return stages.then(flow, FirstRecords(operator.name, spec.count))
    if not are_together(flow, spec.keys, operator.parallelism):
        if not spec.sort:
            flow = stages.then(flow, FirstInPartition(operator.name, spec.count, spec.keys))
        flow = grouped(stages, operator, flow, spec.keys)
    return stages.then(flow, FirstOfGroups(operator.name, spec.count, spec.keys, spec.sort, stages.memory_mb))


def numbered(stages: Stages, operator: PlanOperator, flow: Flow) -> Flow:
    """Return a flow of pairs of a number and a record. A job counts the partitions first."""
    flow = stages.kept(flow)
    return stages.then(flow, Numbering(operator.name, _starts(stages, operator, flow))).partitioned(None)


def sampled(stages: Stages, operator: PlanOperator, spec: SampleSpec, flow: Flow) -> Flow:
    """Return the flow of a sample of a fraction of the records."""
    seed = _seed(spec.seed)
    return stages.then(flow, SampleFraction(operator.name, spec.fraction, seed, with_replacement=spec.with_replacement))


def sampled_with_size(stages: Stages, operator: PlanOperator, spec: SampleWithSizeSpec, flow: Flow) -> Flow:
    """Return the flow of a sample of a fixed size. A job counts the partitions, and the driver draws numbers."""
    flow = stages.kept(flow)
    starts = _starts(stages, operator, flow)
    chance = random.Random(_seed(spec.seed))
    numbers = range(starts[-1])
    if spec.with_replacement:
        picks = Counter(chance.choices(numbers, k=spec.size) if numbers else ())
    else:
        picks = Counter(chance.sample(numbers, min(spec.size, len(numbers))))
    return stages.then(flow, PickNumbered(operator.name, starts, picks))


def _starts(stages: Stages, operator: PlanOperator, flow: Flow) -> list[int]:
    """Return the number of the first record of each partition, and the number of all records."""
    return [0, *accumulate(stages.collected(flow, CountExit(operator.name)))]


def _seed(given: int | None) -> int:
    return random.getrandbits(63) if given is None else given
