"""Starts a job on its engine and runs its loop on a thread of the driver."""

from __future__ import annotations

import hashlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from random import Random

from ekorn.clock import Clock, SystemClock
from ekorn.config import options
from ekorn.config.job_id import JobID
from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.display.job_lines import JobFacts
from ekorn.driver.display.progress_display import ProgressDisplay, is_told_by_log
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.job_log import open_job_log
from ekorn.driver.loop.job_loop import EngineFactory, JobLoop
from ekorn.driver.recovery.restore_check import check_restore
from ekorn.driver.recovery.resume import resumed
from ekorn.engine.protocol import AnyEngine
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.errors import ConfigurationError
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.specs import PrintSpec

__all__ = [
    "EngineChoice",
    "Submit",
    "graphs_shown_to",
    "heartbeat_of",
    "jobs_submitted_by",
    "numbered",
    "show_graph",
    "show_lines",
    "spark_engine",
    "submit",
    "submit_from_program",
]

EngineChoice = Callable[[JobSettings], EngineFactory]
Submit = Callable[[JobGraph, JobSettings], JobHandle]


def spark_engine(settings: JobSettings) -> EngineFactory:
    """Return the factory of the engine that runs jobs on Spark."""

    def make(graph: JobGraph) -> AnyEngine:
        from ekorn.engine.spark.driver_side.engine_choice import engine_on_spark

        return engine_on_spark(
            graph,
            settings.execution,
            dict(settings.configuration),
            job_name=settings.job_name,
            job_label=str(settings.job_id)[:8],
            python=settings.python,
            heartbeat=heartbeat_of(settings),
            links=settings.links,
            session=settings.spark_session,
        )

    return make


def heartbeat_of(settings: JobSettings) -> Heartbeat:
    """Return how the driver watches the slots of a job and its epochs."""
    return Heartbeat(
        interval_s=settings.heartbeat_interval_ms / 1000,
        timeout_s=settings.heartbeat_timeout_ms / 1000,
        stall_timeout_s=settings.epoch_stall_timeout_ms / 1000,
    )


def submit(
    graph: JobGraph,
    settings: JobSettings,
    engine_for: EngineChoice = spark_engine,
    clock: Clock | None = None,
    *,
    may_be_shown: bool | None = None,
) -> JobHandle:
    """Start a job and return its handle.

    An environment in which the job cannot run (no Spark, no Java, a checkpoint directory that cannot be written to, a
    checkpoint that does not fit) raises here, before any record is read.

    Args:
        graph: The job.
        settings: Its settings.
        engine_for: Chooses the engine that hosts the job's subtasks.
        clock: The clock of the driver; None for the system clock.
        may_be_shown: Whether lines about the job go to a person in front of it; None: if it runs on Spark.
    """
    clock = clock or SystemClock()
    began = clock.monotonic()
    settings = numbered(resumed(settings))
    if settings.most_slots is not None and graph.slot_count > settings.most_slots:
        raise ConfigurationError(
            f"job {settings.job_name!r} needs {graph.slot_count} slots, but may use only {settings.most_slots} "
            f"({options.MOST_SLOTS.key}): submit it with the parallelism that it needs (-p), or lower its parallelism"
        )
    if settings.only_check_restore:
        check_restore(graph, settings)
    handle = JobHandle(settings.job_id, settings.job_name)
    handle.takes_requests_from_outside = bool(
        settings.control or (settings.control is None and engine_for is spark_engine)
    )
    if handle.takes_requests_from_outside and settings.executions is None:  # a service keeps the log of its drivers
        handle.log = open_job_log(str(settings.job_id), settings.job_name, clock.now_ms())
    try:
        loop = JobLoop(graph, settings, handle, engine_for(settings), clock=clock, chance=Random())
    except BaseException as error:
        handle.log.end(JobStatus.FAILED.name, f"job {settings.job_name!r} did not start: {error}")
        raise
    if may_be_shown is None:
        may_be_shown = engine_for is spark_engine
    if may_be_shown:
        # Records that the job prints would be written into the line.
        prints = any(isinstance(each.spec, PrintSpec) for vertex in graph.vertices for each in vertex.operators)
        show_lines(handle, settings, loop.facts, clock, prints=prints, began=began)
    threading.Thread(target=loop.run, name=f"ekorn-{settings.job_name}", daemon=True).start()
    return handle


def show_lines(
    handle: JobHandle, settings: JobSettings, facts: JobFacts, clock: Clock, *, prints: bool, began: float
) -> None:
    """Show lines about a job to a person in front of it, if the settings allow that.

    Args:
        handle: The job.
        settings: Its settings.
        facts: What is known about it at its start.
        clock: The clock of the driver.
        prints: Whether the job itself prints records.
        began: When the job was submitted, by the clock's `monotonic`.
    """
    stream = sys.stderr  # None in a process that was started without one
    if settings.progress == "auto" and stream is not None and not is_told_by_log(stream):
        display = ProgressDisplay(handle.view, facts, clock, stream=stream, prints=prints, began=began)
        handle.results.after_end(display.start(handle.results.wait_for_end))


# ------------------------------------------------------------------------------------------ the seam for other engines

_submit: ContextVar[Submit] = ContextVar("ekorn_submit", default=submit)


def submit_from_program(graph: JobGraph, settings: JobSettings) -> JobHandle:
    """Start a job that a program executes: on Spark, unless a surrounding `jobs_submitted_by` says otherwise."""
    show_graph(graph, settings)
    return _submit.get()(graph, settings)


@contextmanager
def jobs_submitted_by(other: Submit) -> Iterator[Submit]:
    """Let `other` start every job that a program executes inside the block, in this thread.

    Yields:
        The function that `other` replaces.

    Example:
        with jobs_submitted_by(partial(submit, engine_for=lambda settings: LocalEngine)):
            env.execute()
    """
    before = _submit.get()
    token = _submit.set(other)
    try:
        yield before
    finally:
        _submit.reset(token)


_shown: ContextVar[Callable[[JobGraph, JobSettings], object] | None] = ContextVar("ekorn_shown_graphs", default=None)


def show_graph(graph: JobGraph, settings: JobSettings) -> None:
    """Show the graph of a job that a program executes to a surrounding `graphs_shown_to`, before the job starts."""
    show = _shown.get()
    if show is not None:
        show(graph, settings)


@contextmanager
def graphs_shown_to(show: Callable[[JobGraph, JobSettings], object]) -> Iterator[None]:
    """Show the graph of every job that a program executes inside the block, in this thread; no job starts if it raises.

    Jobs of DataSet programs are among them.
    """
    token = _shown.set(show)
    try:
        yield
    finally:
        _shown.reset(token)


_executions = itertools.count(1)


def numbered(settings: JobSettings, *, may_repeat: bool = False) -> JobSettings:
    """Return the settings of a job with its own id, if a service runs the program; else unchanged.

    Args:
        settings: The settings of the job.
        may_repeat: Whether the job may run again after it has ended, because its program is started again.

    Raises:
        ConfigurationError: The program may run one job only.
    """
    if settings.executions is None:
        return settings
    number = next(_executions)
    if number == 1:
        return settings
    if settings.executions == "one" and not may_repeat:
        raise ConfigurationError(
            "the program calls execute() a second time; a service with standbys runs programs with one job, because "
            "a program that is started again would repeat jobs that have already ended: submit a program for each job "
            f"(high-availability.type; {options.EXECUTIONS.key})"
        )
    return replace(settings, job_id=further_id(settings.job_id, number))


def further_id(first: JobID, number: int) -> JobID:
    """Return the id of a further job of a program.

    >>> str(further_id(JobID("0" * 32), 2))
    'edd378b96da97a88133dcefd836f2267'
    """
    return JobID(hashlib.sha256(f"{first}/{number}".encode()).hexdigest()[:32])
