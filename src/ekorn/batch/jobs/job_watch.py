"""Turns what a run of a DataSet program tells into what is seen of its job.

The statistics of the job, its progress and its accumulators are those of jobs of streams: the REST API, the page and
the command line are made of them. Reports of tasks come on a thread of Spark, and all the rest on the job's own.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ekorn.batch.jobs.drawn_graph import DrawnGraph
from ekorn.batch.plan.operators import Plan, PlanOperator
from ekorn.batch.planner.run_watch import RunningTask, StageKey
from ekorn.batch.tasks.stage_task import StageReports
from ekorn.batch.tasks.task_reports import TaskReport, TaskReports
from ekorn.clock import Clock
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.statistics.job_statistics import JobStatistics, Supersteps
from ekorn.errors import JobCancelledError
from ekorn.functions.results.accumulators import merge_accumulators
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import VertexId
from ekorn.operators.epoch import Ack

__all__ = ["JobWatch"]


class JobWatch:
    """Watches the runs of one job. Thread-safe."""

    def __init__(
        self, plan: Plan, drawn: DrawnGraph, handle: JobHandle, statistics: JobStatistics, clock: Clock
    ) -> None:
        self._numbers = {operator: number for number, operator in enumerate(plan.operators())}
        self._drawn = drawn
        self._handle = handle
        self._statistics = statistics
        self._clock = clock
        self._lock = threading.RLock()
        self._in_iterations = {each.vertex for each in drawn.iterations.values()}
        self._channel: TaskReports = _Direct(self)
        self._subtasks = frozenset(
            SubtaskId(vertex.id, index) for vertex in drawn.graph.vertices for index in range(vertex.parallelism)
        )
        self._attempt = -1
        self._forget()

    def _forget(self) -> None:
        self._stages = 0
        self._of_attempt = range(0)
        self._seen: set[tuple[int, int]] = set()  # the tasks that have reported, by stage and partition
        self._left = {vertex.id: set(range(vertex.parallelism)) for vertex in self._drawn.graph.vertices}
        self._vertex_of: dict[int, VertexId] = {}  # by the number of an RDD
        self._accumulators: dict[SubtaskId, dict[str, Any]] = {}
        self._merged: dict[str, Any] = {}
        self._records_read = 0
        self._seen_running: dict[SubtaskId, int] = {}  # when each task that runs was last seen to run
        self._busy_so_far: dict[SubtaskId, float] = {}  # the time counted for tasks that have not reported

    # ---------------------------------------------------------------------------------------- what the run tells

    def check(self) -> None:
        if self._handle.requests.cancel_requested:
            raise JobCancelledError(self._handle.job_name)

    def begin(self) -> None:
        """Note that the plan runs from its beginning: what the attempt before has done no longer counts."""
        with self._lock:
            self._attempt += 1
            self._forget()
            self._statistics.metrics.restart(self._subtasks if self._attempt else ())
            self._statistics.lives.schedule(self._subtasks, self._attempt, self._clock.now_ms())
            self._statistics.enter(JobStatus.RUNNING)
            self._publish()

    def number_of(self, operator: PlanOperator) -> int | None:
        return self._numbers.get(operator)

    def report_through(self, channel: TaskReports) -> None:
        self._channel = channel

    def reports_of(self, key: StageKey) -> StageReports | None:
        with self._lock:
            vertex = self._drawn.vertices.get(key)
            self._stages += 1
            # The number of the attempt keeps late reports of the one before apart.
            return None if vertex is None else StageReports((self._attempt << 32) | self._stages, vertex, self._channel)

    def staged(self, rdd: int | None, key: StageKey) -> None:
        vertex = self._drawn.vertices.get(key)
        if rdd is not None and vertex is not None:
            with self._lock:
                self._vertex_of[rdd] = vertex

    def superstep(self, operator: PlanOperator, number: int) -> None:
        found = self._drawn.iterations.get(self._numbers.get(operator, -1))
        if found is not None:
            self._statistics.supersteps[found.vertex] = Supersteps(number, found.most)

    def ended(self, operator: PlanOperator) -> None:
        found = self._drawn.iterations.get(self._numbers.get(operator, -1))
        if found is not None:
            with self._lock:
                self._enter(found.vertex, self._left[found.vertex], "FINISHED", self._clock.now_ms())

    def run_now(self, tasks: Iterable[RunningTask]) -> None:
        """Note the tasks that run at this moment. They are busy: what they did is told when they end."""
        now_ms = self._clock.now_ms()
        with self._lock:
            running = {
                SubtaskId(vertex, self._index(vertex, task.partition))
                for task in tasks
                for vertex in {self._vertex_of[rdd] for rdd in task.rdds if rdd in self._vertex_of}
            }
            for subtask in sorted(running):
                self._enter(subtask.vertex, [subtask.subtask], "RUNNING", now_ms)
            acks = []
            for subtask in sorted(running & self._seen_running.keys()):
                busy_ms = float(now_ms - self._seen_running[subtask])
                self._busy_so_far[subtask] = self._busy_so_far.get(subtask, 0.0) + busy_ms
                acks.append(Ack(subtask.vertex, subtask.subtask, 0, busy_ms=busy_ms))
            if acks:
                self._statistics.metrics.add(acks)
            self._seen_running = dict.fromkeys(running, now_ms)

    def take(self, reports: Iterable[TaskReport]) -> None:
        """Take the reports of tasks that have ended. A task that Spark has repeated counts once."""
        with self._lock:
            fresh = [
                each
                for each in reports
                if each.stage >> 32 == self._attempt and (each.stage, each.partition) not in self._seen
            ]
            self._seen |= {(each.stage, each.partition) for each in fresh}
            acks = [self._ack(each) for each in fresh]
            if not acks:
                return
            self._statistics.metrics.add(acks)
            vertices = self._drawn.graph.vertices
            self._records_read += sum(ack.records_in for ack in acks if vertices[ack.vertex].is_source)
            self._statistics.epoch(acks, max(each.busy_ms for each in fresh))
            if self._merged:
                self._handle.results.set_accumulators(dict(self._merged))
            for each in fresh:
                self._end_task(each)
            self._publish()

    def _ack(self, report: TaskReport) -> Ack:
        subtask = SubtaskId(report.vertex, self._index(report.vertex, report.partition))
        if report.accumulators:
            found = pickle.loads(report.accumulators)
            self._merged = merge_accumulators([self._merged, found])
            before = self._accumulators.get(subtask, {})
            self._accumulators[subtask] = merge_accumulators([before, found])
        return Ack(
            subtask.vertex,
            subtask.subtask,
            0,
            records_in=report.records_in,
            records_out=report.records_out,
            busy_ms=max(report.busy_ms - self._busy_so_far.pop(subtask, 0.0), 0.0),
            bytes_in=report.bytes_in,
            bytes_out=report.bytes_out,
            accumulators=self._accumulators.get(subtask, {}),
        )

    def _end_task(self, report: TaskReport) -> None:
        index = self._index(report.vertex, report.partition)
        began_ms = report.ended_ms - int(report.busy_ms)
        self._enter(report.vertex, [index], "RUNNING", began_ms)
        if report.vertex not in self._in_iterations:
            self._enter(report.vertex, [index], "FINISHED", report.ended_ms)

    def _enter(self, vertex: int, indices: Iterable[int], state: Any, at_ms: int) -> None:
        subtasks = [SubtaskId(vertex, index) for index in sorted(indices)]
        if state == "RUNNING":
            self._statistics.lives.enter(
                [each for each in subtasks if self._statistics.lives.present(each).state == "SCHEDULED"],
                "DEPLOYING",
                at_ms,
            )
        self._statistics.lives.enter(subtasks, state, at_ms)

    def _index(self, vertex: int, index: int) -> int:
        """Return the subtask of a partition. A stage that reads a DataFrame has the partitions of the DataFrame."""
        return index % self._drawn.graph.vertices[vertex].parallelism

    def _publish(self) -> None:
        view = self._handle.view
        restarts = self._statistics.restarts
        view.update(
            replace(
                view.progress(),
                status=JobStatus.RUNNING,
                attempt=self._attempt,
                records_read=self._records_read,
                restarts=restarts,
            )
        )


class _Direct:
    """Takes the reports of tasks that run in this process."""

    def __init__(self, watch: JobWatch) -> None:
        self._watch = watch

    def add(self, term: list[TaskReport]) -> None:
        self._watch.take(term)
