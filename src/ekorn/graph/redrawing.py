"""A job as it was drawn when it was submitted, from which its graph is made again at another parallelism."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

from ekorn.errors import InvalidProgramError
from ekorn.graph.job_graph import JobGraph, Operator, OperatorId, Vertex
from ekorn.graph.stream_graph import Edge, Node, StreamGraph
from ekorn.graph.translation import GraphSettings, translate

__all__ = ["Drawing", "carried_over"]


@dataclass(frozen=True)
class Drawing:
    """The operators of a submitted job. Later changes of the program do not reach them."""

    nodes: tuple[Node, ...]
    settings: GraphSettings

    @staticmethod
    def of(graph: StreamGraph, settings: GraphSettings) -> Drawing:
        """Copy the operators that the program has drawn so far."""
        copies: dict[int, Node] = {}
        for node in graph.nodes():  # inputs first
            copied = copies[node.id] = copy.copy(node)
            copied.inputs = tuple(_reading(edge, copies) for edge in node.inputs)
            copied.beside = None if node.beside is None else copies[node.beside.id]
        return Drawing(tuple(copies.values()), settings)

    def at(self, parallelism: int) -> JobGraph:
        """Return the graph that the program has with another default parallelism.

        Operators whose parallelism the program sets keep it.

        Raises:
            InvalidProgramError: The job cannot run with this parallelism.
        """
        return translate(self.nodes, replace(self.settings, parallelism=parallelism))


def _reading(edge: Edge, copies: dict[int, Node]) -> Edge:
    return replace(edge, source=copies[edge.source.id])


def carried_over(drawn: JobGraph, running: JobGraph) -> JobGraph:
    """Return a graph that was drawn at another parallelism, with everything that is fixed once a job runs.

    Fixed are the number of key groups of every operator, the sources that were made when the job was submitted, and the
    settings of the whole job.

    Raises:
        InvalidProgramError: A vertex would have more subtasks than key groups.
    """
    operators = {each.id: each for vertex in running.vertices for each in vertex.operators}
    widths = {each.id: vertex.max_parallelism for vertex in running.vertices for each in vertex.operators}
    vertices = tuple(_carried_over(vertex, operators, widths) for vertex in drawn.vertices)
    return replace(drawn, name=running.name, vertices=vertices, settings=running.settings)


def _carried_over(vertex: Vertex, running: dict[OperatorId, Operator], widths: dict[OperatorId, int]) -> Vertex:
    # As in the translation: key groups belong to the head, and a chain without keys takes the widest of its members.
    members = vertex.operators[:1] if vertex.operators[0].key is not None else vertex.operators
    width = max(widths[each.id] for each in members)
    if vertex.parallelism > width:
        raise InvalidProgramError(
            f"{vertex.name!r} would have parallelism {vertex.parallelism}, above its max parallelism of {width}, which "
            f"is fixed while the job runs; use {width} or less"
        )
    return replace(vertex, operators=tuple(running[each.id] for each in vertex.operators), max_parallelism=width)
