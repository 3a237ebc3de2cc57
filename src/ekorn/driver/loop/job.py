"""The job that the driver runs: graph, settings, clocks and the parts of its handle, for all parts of the loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from ekorn.clock import Clock, SteadyClock
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.display.operator_hints import OperatorHints
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.job_log import JobLog
from ekorn.driver.job_requests import JobRequests
from ekorn.driver.job_results import JobResults
from ekorn.driver.job_view import JobView
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph

__all__ = ["Job"]


@dataclass
class Job:
    """A job on this driver.

    Attributes:
        graph: The job graph, with the maximum parallelism that restored state demands. A rescale replaces it.
        settings: The settings of the job.
        view: Where the job's progress is published.
        requests: Where requests come in.
        results: Where the collected records go.
        clock: The time of day, which timers use.
        steady: The time for intervals and timeouts, which does not depend on the time of day.
        subtasks: Every subtask of the graph.
        statistics: What is remembered about the job for people and tools.
        log: Where its start, checkpoints, restarts and end are noted.
        hints: Shows the hints of operators.
    """

    graph: JobGraph
    settings: JobSettings
    view: JobView
    requests: JobRequests
    results: JobResults
    clock: Clock
    steady: SteadyClock
    subtasks: frozenset[SubtaskId]
    statistics: JobStatistics
    log: JobLog
    hints: OperatorHints = field(default_factory=OperatorHints)

    @staticmethod
    def of(graph: JobGraph, settings: JobSettings, handle: JobHandle, clock: Clock, steady: SteadyClock) -> Job:
        """Return the job of a graph."""
        statistics = JobStatistics(graph, settings, clock)
        return Job(
            graph,
            settings,
            handle.view,
            handle.requests,
            handle.results,
            clock,
            steady,
            _subtasks_of(graph),
            statistics,
            handle.log,
        )

    def change_graph(self, graph: JobGraph) -> None:
        """Go on with the graph of another parallelism. No attempt runs."""
        self.graph, self.subtasks = graph, _subtasks_of(graph)
        self.statistics.change_graph(graph)

    @property
    def name(self) -> str:
        """The name that messages use."""
        return self.settings.job_name


def _subtasks_of(graph: JobGraph) -> frozenset[SubtaskId]:
    return frozenset(SubtaskId(v.id, index) for v in graph.vertices for index in range(v.parallelism))
