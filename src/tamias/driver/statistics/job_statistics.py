"""Everything that is remembered about one job for people and tools: its REST answers are made of this alone.

The job loop feeds it at events: attempts, checkpoints, failures, changes of status, and once per epoch. Nothing is done
per record. Writers replace values and readers copy them, so no thread waits for another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tamias.clock import Clock
from tamias.config.job_settings import JobSettings
from tamias.driver.job_lines import JobFacts
from tamias.driver.job_metrics import JobMetrics
from tamias.driver.statistics.checkpoint_statistics import CheckpointStatistics
from tamias.driver.statistics.failure_history import FailureHistory
from tamias.driver.statistics.subtask_lives import SubtaskLives
from tamias.engine.protocol import Failure
from tamias.functions.job_status import JobStatus
from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph
from tamias.operators.epoch import Ack

__all__ = ["JobStatistics", "StatusChange"]

_LONGEST_TIME_LINE = 1000


class StatusChange(NamedTuple):
    """A status of the job, and when the job entered it."""

    status: JobStatus
    at_ms: int


class JobStatistics:
    """What is remembered about one job.

    Attributes:
        graph: The job graph, as it runs.
        settings: The settings of the job.
        metrics: The latest reports of the subtasks.
        lives: The states of the subtasks.
        checkpoints: The latest checkpoints.
        failures: The latest failures.
        facts: What was known about the job when it started; None until its loop is assembled.
        time_line: The statuses that the job was in, the oldest first.
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
        self.failures = FailureHistory(graph)
        self.facts: JobFacts | None = None
        self.time_line: tuple[StatusChange, ...] = (StatusChange(JobStatus.CREATED, self.started_ms),)

    def deploy(self, subtasks: Iterable[SubtaskId], attempt: int) -> None:
        """Note that an attempt begins."""
        self.lives.deploy(subtasks, attempt, self.clock.now_ms())

    def run(self, subtasks: Iterable[SubtaskId]) -> None:
        """Note that subtasks are open and process records from now on."""
        self.lives.enter(subtasks, "RUNNING", self.clock.now_ms())
        self.enter(JobStatus.RUNNING)

    def epoch(self, acks: list[Ack]) -> None:
        """Note which subtasks finished in an epoch."""
        finished = [SubtaskId(ack.vertex, ack.subtask) for ack in acks if ack.finished]
        if finished:
            self.lives.enter(finished, "FINISHED", self.clock.now_ms())

    def fail(self, failure: Failure) -> None:
        """Note that an attempt has failed."""
        now_ms = self.clock.now_ms()
        self.failures.add(failure.error, failure.subtasks, failure.slot, now_ms)
        self.lives.enter(failure.subtasks, "FAILED", now_ms)

    def enter(self, status: JobStatus) -> None:
        """Note a status of the job."""
        if self.time_line[-1].status is not status:
            self.time_line = (*self.time_line[1 - _LONGEST_TIME_LINE :], StatusChange(status, self.clock.now_ms()))

    def end(self, status: JobStatus) -> None:
        """Note that the job has ended."""
        now_ms = self.clock.now_ms()
        self.lives.end(status, now_ms)
        self.enter(status)
        self.ended_ms = now_ms
