"""Sources whose input is made when their job is submitted, and the parts of them that run in the driver."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import replace

from ekorn.config.settings.job_settings import JobSettings
from ekorn.connectors.data_frames.deferred_source import DeferredSource
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.recovery.resume import resumed
from ekorn.engine.beside_job import BesideJob, StartingJob
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Boundedness
from ekorn.graph.job_graph import JobGraph, Operator, Vertex
from ekorn.graph.specs import SourceSpec
from ekorn.types.type_information import TypeInformation

__all__ = ["DeferredInputs"]


class DeferredInputs:
    """The deferred sources of one environment."""

    def __init__(self) -> None:
        self._parts: dict[str, BesideJob] = {}

    def source(self, part: BesideJob, what: str, produced: TypeInformation, boundedness: Boundedness) -> DeferredSource:
        """Return the source that stands in the graph for the input that a part will make."""
        token = uuid.uuid4().hex
        self._parts[token] = part
        return DeferredSource(token, what, produced, boundedness)

    @contextlib.contextmanager
    def started(self, graph: JobGraph, settings: JobSettings) -> Iterator[StartedInputs]:
        """Start the parts of a graph's deferred sources; end them if the block raises.

        Yields:
            The graph with its real sources, and the settings to submit it with. `end_with` ties the parts to the job.
        """
        if not any(_is_deferred(operator) for vertex in graph.vertices for operator in vertex.operators):
            yield StartedInputs(graph, settings, ())
            return
        settings = resumed(settings)  # parts need the id of the job that is continued
        running: list[BesideJob] = []
        try:
            vertices = tuple(
                self._with_sources(vertex, settings, running, batch=graph.settings.batch) for vertex in graph.vertices
            )
            yield StartedInputs(replace(graph, vertices=vertices), settings, tuple(running))
        except BaseException:
            for part in running:
                part.end(JobStatus.FAILED, False)
            raise

    def _with_sources(self, vertex: Vertex, settings: JobSettings, running: list[BesideJob], *, batch: bool) -> Vertex:
        operators = []
        for operator in vertex.operators:
            spec = operator.spec
            if isinstance(spec, SourceSpec) and isinstance(spec.source, DeferredSource):
                part = self._parts[spec.source.token]
                running.append(part)
                source = part.start(StartingJob(settings, operator.id, vertex.parallelism, batch))
                operator = replace(operator, spec=replace(spec, source=source))  # noqa: PLW2901
            operators.append(operator)
        return replace(vertex, operators=tuple(operators))


class StartedInputs:
    """A graph whose deferred sources have been replaced, and the parts that make their input."""

    def __init__(self, graph: JobGraph, settings: JobSettings, running: tuple[BesideJob, ...]) -> None:
        self.graph = graph
        self.settings = settings
        self._running = running

    def end_with(self, handle: JobHandle) -> None:
        """End the parts with the job."""
        for part in self._running:
            handle.at_end(part.end)


def _is_deferred(operator: Operator) -> bool:
    return isinstance(operator.spec, SourceSpec) and isinstance(operator.spec.source, DeferredSource)
