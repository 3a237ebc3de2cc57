"""Decides what follows a superstep. Pure: it is told what the superstep gave, and returns whether it was the last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from ekorn.batch.plan.iteration_specs import IterationLimits
from ekorn.functions.data_sets.iteration_context import Aggregator

__all__ = ["SuperstepEnd", "is_last", "merged_aggregates"]


@dataclass(frozen=True)
class SuperstepEnd:
    """What a superstep gave.

    Attributes:
        number: The number of the superstep, from 1.
        aggregates: The merged values of the aggregators, by name.
        goes_on_with: The number of records that let the iteration go on: those of the termination criterion, or of
            the next work set. None if neither is there.
    """

    number: int
    aggregates: Mapping[str, Any]
    goes_on_with: int | None


def is_last(end: SuperstepEnd, limits: IterationLimits) -> bool:
    """Return whether an iteration ends after a superstep."""
    if end.number >= limits.max_iterations or end.goes_on_with == 0:
        return True
    wanted = limits.convergence
    return wanted is not None and wanted.criterion.is_converged(end.number, end.aggregates[wanted.aggregator])


def merged_aggregates(
    aggregators: Mapping[str, Aggregator[Any]], of_subtasks: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the value of each aggregator over all subtasks, given their values in a fixed order."""
    merged = {name: deepcopy(each) for name, each in aggregators.items()}
    for each in merged.values():
        each.reset()
    for values in of_subtasks:
        for name, value in values.items():
            merged[name].aggregate(value)
    return {name: each.get_aggregate() for name, each in merged.items()}
