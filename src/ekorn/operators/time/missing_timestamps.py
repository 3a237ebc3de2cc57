"""The error about a record without a timestamp that reaches an operator of event time."""

from __future__ import annotations

from typing import Any

from ekorn.errors import InvalidProgramError, preview
from ekorn.functions.watermark_strategy import makes_watermarks
from ekorn.functions.windows.time_assigners import no_timestamp
from ekorn.graph.job_graph import JobGraph, Vertex
from ekorn.operators.environment import SubtaskEnvironment

__all__ = ["missing_timestamp"]


def missing_timestamp(record: Any, environment: SubtaskEnvironment) -> InvalidProgramError:
    """Return the error for a record. It says what is missing: a watermark strategy, or the strategy's assigner."""
    incomplete = _strategy_without_assigner(environment.graph, environment.vertex)
    if incomplete is None:
        return no_timestamp(record)
    return InvalidProgramError(
        f"the record {preview(record)} has no timestamp, but its windows use event time; the watermark strategy of "
        f"operator {incomplete!r} has no timestamp assigner: give it one with "
        "with_timestamp_assigner(lambda record, timestamp: ...), or use processing-time windows"
    )


def _strategy_without_assigner(graph: JobGraph, vertex: Vertex) -> str | None:
    """Return the operator in front of a vertex or in it whose strategy has no assigner; None if there is none."""
    seen: set[int] = set()
    waiting = [vertex]
    while waiting:
        found = waiting.pop()
        if found.id in seen:
            continue
        seen.add(found.id)
        for operator in found.operators:
            strategy = getattr(operator.spec, "watermarks", None)
            if strategy is not None and strategy.timestamp_assigner is None and makes_watermarks(strategy):
                return operator.name
        waiting += [graph.vertices[exchange.source] for exchange in graph.inputs_of(found.id)]
    return None
