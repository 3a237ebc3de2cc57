"""Decides whether a job runs continuously or in epochs, as far as the job itself decides that."""

from __future__ import annotations

from ekorn.graph.job_graph import JobGraph
from ekorn.graph.specs import FeedbackHeadSpec, SourceSpec

__all__ = ["reason_for_epochs"]


def reason_for_epochs(graph: JobGraph) -> str | None:
    """Return why a job cannot run continuously, or None if it can."""
    if graph.settings.batch:
        return "the job runs in BATCH mode (execution.runtime-mode)"
    specs = [operator.spec for vertex in graph.vertices for operator in vertex.operators]
    if any(isinstance(spec, FeedbackHeadSpec) for spec in specs):
        return "the job has a loop (iterate), which runs once per epoch"
    if any(isinstance(spec, SourceSpec) and spec.source.reads_in_steps for spec in specs):
        return "a source of the job reads in steps, and all of its subtasks must finish a step in the same epoch"
    return None
