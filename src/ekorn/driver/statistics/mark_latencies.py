"""The latency from the sources to each operator: Flink's latency markers, computed from the acknowledgements of epochs.

The end of an epoch travels through the same channels as the records and bypasses user functions, as Flink's markers
do, so no marker is sent: the driver knows when it ordered an epoch, and each subtask reports when it ended the epoch.
In a job that runs in epochs this is the latency of the first record of an epoch. Unlike Flink's markers, a mark is
aligned with those of the other channels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ekorn.config.settings.metric_settings import LatencySettings
from ekorn.graph.job_graph import JobGraph
from ekorn.metrics.histogram import ValueHistogram
from ekorn.operators.epoch import Ack

__all__ = ["MarkLatencies", "MarkPath"]


class MarkPath(NamedTuple):
    """From where to where a mark travelled.

    Attributes:
        source_id: The id of the source; None if sources are not told apart.
        source_subtask: The subtask of the source; None if its subtasks are not told apart.
        operator_id: The id of the operator.
        subtask: The subtask of the operator.
    """

    source_id: str | None
    source_subtask: int | None
    operator_id: str
    subtask: int

    def variables(self) -> dict[str, str]:
        """Return the path as Flink's variables, in Flink's order."""
        found = {} if self.source_id is None else {"source_id": self.source_id}
        if self.source_subtask is not None:
            found["source_subtask_index"] = str(self.source_subtask)
        return found | {"operator_id": self.operator_id, "operator_subtask_index": str(self.subtask)}


class MarkLatencies:
    """The latencies of one job, in milliseconds. The job's thread writes, any thread reads."""

    def __init__(self, graph: JobGraph, settings: LatencySettings) -> None:
        self._settings = settings
        self._last_s: float | None = None
        self.change_graph(graph)

    def change_graph(self, graph: JobGraph) -> None:
        """Start with the subtasks of another graph: another parallelism may chain operators to other vertices."""
        self._graph = graph
        self._sources = _sources_of(graph)
        self.by_path: Mapping[MarkPath, ValueHistogram] = {}

    def add(self, acks: Iterable[Ack], ordered_ms: float, now_s: float) -> None:
        """Add the latencies of an epoch, if it is time."""
        interval_ms = self._settings.interval_ms
        if not interval_ms or (self._last_s is not None and (now_s - self._last_s) * 1000 < interval_ms):
            return
        self._last_s = now_s
        found = dict(self.by_path)
        for ack in acks:
            for path in self._paths(ack):
                histogram = found.setdefault(path, ValueHistogram(self._settings.history_size))
                histogram.update(max(ack.ended_ms - ordered_ms, 0.0))  # the clocks of two machines may differ
        self.by_path = found

    def _paths(self, ack: Ack) -> Iterable[MarkPath]:
        for operator in self._graph.vertices[ack.vertex].operators:
            for source_id, parallelism in self._sources[ack.vertex].items():
                match self._settings.granularity:
                    case "single":
                        yield MarkPath(None, None, operator.id, ack.subtask)
                        break
                    case "operator":
                        yield MarkPath(source_id, None, operator.id, ack.subtask)
                    case "subtask":
                        for index in range(parallelism):
                            yield MarkPath(source_id, index, operator.id, ack.subtask)


def _sources_of(graph: JobGraph) -> dict[int, dict[str, int]]:
    """Return the ids and the parallelism of the sources above each vertex; none for a vertex that is one itself."""
    found: dict[int, dict[str, int]] = {}
    for vertex in graph.vertices:  # in topological order
        above: dict[str, int] = {}
        for exchange in graph.inputs_of(vertex.id):
            source = graph.vertices[exchange.source]
            if source.is_source:
                above[source.operators[0].id] = source.parallelism
            above |= found.get(source.id, {})
        found[vertex.id] = above
    return found
