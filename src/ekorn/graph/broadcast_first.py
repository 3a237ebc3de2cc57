"""Which sources of a continuous job are read only after a bounded broadcast input has ended.

A program that reads its rules from a file and its events from elsewhere expects that the rules are there when the
first event comes. Jobs in epochs read the broadcast records of each epoch first. In a continuous job the sources of the
other input wait.
"""

from __future__ import annotations

from ekorn.functions.source_contract import Boundedness
from ekorn.graph.column_specs import MapBatchesWithTableSpec
from ekorn.graph.job_graph import JobGraph, VertexId
from ekorn.graph.specs import BroadcastProcessSpec, SourceSpec

__all__ = ["awaited_by_sources"]

_BROADCAST_INPUT = 1


def awaited_by_sources(graph: JobGraph) -> dict[VertexId, frozenset[VertexId]]:
    """Return the vertices that have to finish before a source is read, by the sources for which there are any.

    No source waits for a broadcast input that has an unbounded source, or that has the same source. Sources that would
    wait for each other do not wait.
    """
    awaited: dict[VertexId, frozenset[VertexId]] = {}
    for vertex in graph.vertices:
        if isinstance(vertex.operators[0].spec, BroadcastProcessSpec | MapBatchesWithTableSpec):
            broadcast = _upstream(graph, vertex.id, of_broadcast=True)
            if all(_is_bounded(graph, source) for source in _sources(graph, broadcast)):
                for source in _sources(graph, _upstream(graph, vertex.id, of_broadcast=False)) - broadcast:
                    awaited[source] = awaited.get(source, frozenset()) | broadcast
    return _without_cycles(awaited)


def _upstream(graph: JobGraph, vertex: VertexId, *, of_broadcast: bool) -> frozenset[VertexId]:
    """Return the vertices whose records reach a vertex by its broadcast input, or by its other input."""
    exchanges = graph.inputs_of(vertex)
    open_ids = [e.source for e in exchanges if (e.input_index == _BROADCAST_INPUT) == of_broadcast]
    found: set[VertexId] = set()
    while open_ids:
        if (above := open_ids.pop()) not in found:
            found.add(above)
            open_ids.extend(exchange.source for exchange in graph.inputs_of(above))
    return frozenset(found)


def _sources(graph: JobGraph, vertices: frozenset[VertexId]) -> frozenset[VertexId]:
    return frozenset(each for each in vertices if graph.vertices[each].is_source)


def _is_bounded(graph: JobGraph, vertex: VertexId) -> bool:
    spec = graph.vertices[vertex].operators[0].spec
    return isinstance(spec, SourceSpec) and spec.source.boundedness is Boundedness.BOUNDED


def _without_cycles(awaited: dict[VertexId, frozenset[VertexId]]) -> dict[VertexId, frozenset[VertexId]]:
    """Return the entries whose sources are read at some time: none of them waits for one that waits for ever."""
    left = dict(awaited)
    while free := [source for source, above in left.items() if not above & left.keys()]:
        for source in free:
            del left[source]
    return {source: above for source, above in awaited.items() if source not in left}
