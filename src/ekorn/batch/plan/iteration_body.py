"""The body of an iteration: which operators belong to it, and what it reads from outside."""

from __future__ import annotations

from collections.abc import Sequence

from ekorn.batch.plan.iteration_specs import BulkIterationSpec, DeltaIterationSpec
from ekorn.batch.plan.operators import Plan, PlanOperator

__all__ = ["body_of", "outside_inputs"]

IterationSpec = BulkIterationSpec | DeltaIterationSpec


def outside_inputs(spec: IterationSpec) -> list[PlanOperator]:
    """Return the operators outside the body that the body reads, each once."""
    inside = body_of(spec)
    read = (each for operator in inside for each in operator.upstream() if each not in inside)
    return list(dict.fromkeys(read))


def body_of(spec: IterationSpec) -> dict[PlanOperator, None]:
    """Return the operators of a body: those that depend on the iteration's data, inputs first."""
    inside: dict[PlanOperator, None] = dict.fromkeys(_heads(spec))
    for operator in Plan(tuple(_results(spec))).operators():
        if any(each in inside for each in operator.upstream()):
            inside[operator] = None
    return inside


def _heads(spec: IterationSpec) -> Sequence[PlanOperator]:
    return [spec.partial] if isinstance(spec, BulkIterationSpec) else [spec.solution, spec.work]


def _results(spec: IterationSpec) -> Sequence[PlanOperator]:
    if isinstance(spec, DeltaIterationSpec):
        return [spec.delta, spec.next_work]
    return [spec.result] if spec.criterion is None else [spec.result, spec.criterion]
