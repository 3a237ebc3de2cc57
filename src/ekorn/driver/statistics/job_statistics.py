"""Everything that is remembered about one job for people and tools: its REST answers are made of this alone.

The job loop feeds it at events: attempts, checkpoints, failures, changes of status, and once per epoch. Nothing is done
per record. Writers replace values and readers copy them, so no thread waits for another.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ekorn.clock import Clock
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.display.job_lines import JobFacts
from ekorn.driver.statistics.checkpoint_statistics import CheckpointStatistics
from ekorn.driver.statistics.failure_history import FailureHistory
from ekorn.driver.statistics.job_metrics import JobMetrics
from ekorn.driver.statistics.mark_latencies import MarkLatencies
from ekorn.driver.statistics.metric_history import Memory, MetricHistory
from ekorn.driver.statistics.subtask_lives import SubtaskLives
from ekorn.driver.statistics.vertex_history import VertexHistory, numbers_of
from ekorn.engine.protocol import Failure
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph, Vertex, VertexId
from ekorn.metrics.process_memory import is_slot_here, resident_bytes
from ekorn.operators.epoch import Ack

__all__ = ["MOST_RESCALES", "JobStatistics", "RescaleRecord", "StatusChange", "Supersteps", "VertexChange"]

_LONGEST_TIME_LINE = 1000
MOST_RESCALES = 100


class StatusChange(NamedTuple):
    """A status of the job, and when the job entered it."""

    status: JobStatus
    at_ms: int


class _Shares(NamedTuple):
    """The parts of the time that the subtasks of a vertex work, and wait for those behind them, from 0 to 1."""

    busy: float
    blocked: float


class Supersteps(NamedTuple):
    """How far an iteration of a DataSet program has come: the superstep that runs, and the most that there may be."""

    current: int
    most: int


class VertexChange(NamedTuple):
    """The part of a vertex in a change of the job's parallelism.

    Attributes:
        operator_id: The id of the first operator of its chain.
    """

    operator_id: str
    name: str
    slot_group: str
    before: int
    wanted: int


class RescaleRecord(NamedTuple):
    """A change of the job's parallelism, or the reason why there was none.

    Attributes:
        number: The number of the rescale among those of the job, from 1.
        began_ms: When it was asked for, in milliseconds since 1970.
        at_ms: When it had ended.
        refusal: Why the job goes on as it was; None if it has the new parallelism.
        vertices: What it was to change; empty if it was refused before anything was begun.
    """

    number: int
    began_ms: int
    at_ms: int
    before: int
    wanted: int
    cause: str
    refusal: str | None
    vertices: tuple[VertexChange, ...]


class JobStatistics:
    """What is remembered about one job.

    Attributes:
        graph: The job graph, as it runs.
        settings: The settings of the job.
        metrics: The latest reports of the subtasks.
        lives: The states of the subtasks.
        checkpoints: The latest checkpoints.
        failures: The latest failures.
        history: The figures of the last hours.
        vertex_history: The metrics of the vertices over the last hours.
        slot_pids: The processes of the slots; empty if the subtasks run in the driver.
        latencies: The latencies from source to operator, if the job asks for them.
        restarts: How often the job has restarted after a failure; a rescale is none.
        facts: What was known about the job when it started; None until its loop is assembled.
        rescales: The latest changes of the parallelism, the oldest first.
        time_line: The statuses that the job was in, the oldest first.
        supersteps: The iterations of a DataSet program that have begun, by vertex.
    """

    def __init__(self, graph: JobGraph, settings: JobSettings, clock: Clock) -> None:
        self.graph = graph
        self.settings = settings
        self.clock = clock
        self.started_ms = clock.now_ms()
        self.ended_ms: int | None = None
        self.metrics = JobMetrics(graph, clock)
        self.lives = SubtaskLives(graph, self.started_ms)
        self.checkpoints = CheckpointStatistics(clock)
        self.failures = FailureHistory(graph, settings.configuration, graph.settings.job_parameters)
        self.history = MetricHistory(clock.monotonic())
        self.vertex_history = VertexHistory()
        self.slot_pids: tuple[int, ...] = ()
        self.latencies = MarkLatencies(graph, settings.latency)
        self.restarts = 0
        self.rescales: tuple[RescaleRecord, ...] = ()
        self.supersteps: dict[VertexId, Supersteps] = {}
        self.facts: JobFacts | None = None
        self.time_line: tuple[StatusChange, ...] = (StatusChange(JobStatus.CREATED, self.started_ms),)

    def change_graph(self, graph: JobGraph) -> None:
        """Remember the job at another parallelism from now on."""
        self.lives.change_graph(graph, self.clock.now_ms())
        self.metrics.change_graph(graph)
        self.failures.change_graph(graph)
        self.latencies.change_graph(graph)
        self.graph = graph
        if self.facts is not None:
            self.facts = replace(self.facts, parallelism=max(vertex.parallelism for vertex in graph.vertices))

    def rescaled(
        self,
        before: int,
        wanted: int,
        cause: str,
        refusal: str | None,
        *,
        began_ms: int,
        vertices: tuple[VertexChange, ...] = (),
    ) -> None:
        """Note the end of a rescale."""
        number = self.rescales[-1].number + 1 if self.rescales else 1
        now_ms = self.clock.now_ms()
        record = RescaleRecord(number, began_ms, now_ms, before, wanted, cause, refusal, vertices)
        self.rescales = (*self.rescales[1 - MOST_RESCALES :], record)

    def deploy(self, subtasks: Iterable[SubtaskId], attempt: int) -> None:
        """Note that an attempt begins."""
        self.lives.deploy(subtasks, attempt, self.clock.now_ms())

    def run(self, subtasks: Iterable[SubtaskId]) -> None:
        """Note that subtasks are open and process records from now on."""
        self.lives.enter(subtasks, "RUNNING", self.clock.now_ms())
        self.enter(JobStatus.RUNNING)

    def epoch(self, acks: Sequence[Ack], wall_ms: float) -> None:
        """Note which subtasks finished in an epoch, and how long the epoch took. Its metrics were added before."""
        vertices = self.graph.vertices
        self.latencies.add(acks, self.clock.now_ms() - wall_ms, self.clock.monotonic())
        self.history.count(sum(ack.records_in for ack in acks if vertices[ack.vertex].is_source), wall_ms)
        if self.history.is_due(self.clock.monotonic()):
            self._remember()
        finished = [SubtaskId(ack.vertex, ack.subtask) for ack in acks if ack.finished]
        if finished:
            self.lives.enter(finished, "FINISHED", self.clock.now_ms())

    def _remember(self) -> None:
        """Add the figures of this moment to the history."""
        last = self.checkpoints.last_completed
        shares = [self._shares(vertex) for vertex in self.graph.vertices]
        self.history.add(
            self.clock.monotonic(),
            self.clock.now_ms(),
            busy=max((each.busy for each in shares), default=0.0),
            blocked=max((each.blocked for each in shares), default=0.0),
            restarts=self.restarts,
            state_bytes=None if last is None else last.state_bytes,
            checkpoint_ms=None if last is None or last.ended_ms is None else last.ended_ms - last.triggered_ms,
            checkpoint_bytes=None if last is None else last.written_bytes,
            memory=Memory(resident_bytes(os.getpid()), _resident_bytes_of_slots(self.slot_pids)),
        )
        self._remember_vertices()

    def _remember_vertices(self) -> None:
        """Add the metrics of the vertices to their history, unless that was done only just."""
        began_s = self.clock.monotonic()
        if not self.vertex_history.is_due(began_s):
            return
        reported = {
            vertex.id: [
                numbers_of(self.metrics.of_subtask(SubtaskId(vertex.id, index))) for index in range(vertex.parallelism)
            ]
            for vertex in self.graph.vertices
        }
        self.vertex_history.add(self.clock.now_ms(), reported)
        now_s = self.clock.monotonic()
        self.vertex_history.rest(now_s, now_s - began_s)

    def _shares(self, vertex: Vertex) -> _Shares:
        rates = [self.metrics.rates(SubtaskId(vertex.id, index)) for index in range(vertex.parallelism)]
        count = 1000 * len(rates)
        return _Shares(sum(each.busy_ms for each in rates) / count, sum(each.blocked_ms for each in rates) / count)

    def fail(self, failure: Failure) -> None:
        """Note that an attempt has failed."""
        now_ms = self.clock.now_ms()
        others = [(other.error, other.slot) for other in failure.others]
        self.failures.add(failure.error, failure.subtasks, failure.slot, now_ms, others)
        self.lives.enter(failure.subtasks, "FAILED", now_ms)

    def restart(self) -> None:
        """Note that the job restarts after a failure."""
        self.restarts += 1
        self.enter(JobStatus.RESTARTING)

    def enter(self, status: JobStatus) -> None:
        """Note a status of the job."""
        if self.time_line[-1].status is not status:
            self.time_line = (*self.time_line[1 - _LONGEST_TIME_LINE :], StatusChange(status, self.clock.now_ms()))

    def end(self, status: JobStatus) -> None:
        """Note that the job has ended."""
        now_ms = self.clock.now_ms()
        self.lives.end(status, now_ms)
        self.checkpoints.end()
        self.enter(status)
        self.ended_ms = now_ms


def _resident_bytes_of_slots(pids: Iterable[int]) -> int | None:
    """Return the memory of the slots on this machine; None if there are none."""
    here = [pid for pid in pids if pid != os.getpid() and is_slot_here(pid)]
    return sum(resident_bytes(pid) for pid in here) if here else None
