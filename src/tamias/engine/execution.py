"""Decides whether a job runs continuously or in epochs, as far as the job itself decides that."""

from __future__ import annotations

from tamias.graph.job_graph import JobGraph
from tamias.graph.specs import FeedbackHeadSpec

__all__ = ["reason_for_epochs"]


def reason_for_epochs(graph: JobGraph) -> str | None:
    """Return why a job cannot run continuously, or None if it can."""
    if graph.settings.batch:
        return "the job runs in BATCH mode"
    if any(isinstance(operator.spec, FeedbackHeadSpec) for vertex in graph.vertices for operator in vertex.operators):
        return "the job has a loop (iterate), which goes round once an epoch"
    return None
