"""Streams as text for people: the operator that a stream comes from, its side output, partitioning and type."""

from __future__ import annotations

from collections.abc import Sequence

from ekorn.functions.dead_letters import DEAD_LETTERS
from ekorn.graph.plan import partitioning_text
from ekorn.graph.specs import SplitSpec
from ekorn.graph.stream_graph import Edge
from ekorn.legacy.selection import names_in

__all__ = ["edges_text", "output_text"]


def edges_text(edges: Sequence[Edge]) -> str:
    """Return the open edges of a stream: ``Map -> HASH by fields 0, gives String``."""
    each = [_edge_text(edge) for edge in edges]
    text = each[0] if len(each) == 1 else f"union of {', '.join(each)}"
    declared = edges[0].type_info
    return text if declared is None else f"{text}, gives {declared}"


def output_text(edge: Edge) -> str | None:
    """Return which of the operator's outputs an edge leaves; None for the main output."""
    if edge.tag is None:
        return None
    if edge.tag == DEAD_LETTERS.tag_id:
        return "dead letters"
    if isinstance(edge.source.spec, SplitSpec):
        return f"select {', '.join(map(repr, sorted(names_in(edge.tag))))}"
    return f"side output {edge.tag!r}"


def _edge_text(edge: Edge) -> str:
    output = output_text(edge)
    text = edge.source.full_name if output is None else f"{output} of {edge.source.full_name}"
    return text if edge.partitioning is None else f"{text} -> {partitioning_text(edge.partitioning)}"
