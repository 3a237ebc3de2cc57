"""Runs in the driver: what both engines on Spark share: the session, a job group, the levels as partitions."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import Counter
from typing import Any

from ekorn.config.python_dependencies import PythonDependencies
from ekorn.config.settings.link_settings import LinkSettings
from ekorn.engine.slots.local_pool import LocalSlotPool
from ekorn.engine.slots.slot_engine import SlotEngine
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.driver_side.cluster import cluster_slots
from ekorn.engine.spark.driver_side.session import (
    SparkLog,
    expects_cluster,
    first_line_of,
    is_started_by_us,
    loss_of,
    spark_context,
)
from ekorn.engine.spark.driver_side.task_places import task_places
from ekorn.engine.spark.task_side.level_task import ExchangeTarget, HostedSubtask
from ekorn.errors import DeploymentError, SparkSessionLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph, Vertex
from ekorn.graph.regions import regions

__all__ = ["OnSpark", "start_with_slots"]

_runs: Counter[str] = Counter()  # how often each job ran in this driver


def start_with_slots(
    count: int,
    *,
    configuration: dict[str, str],
    python: PythonDependencies,
    heartbeat: Heartbeat,
    links: LinkSettings,
    session: Any,
) -> tuple[Any, SlotPool]:
    """Start Spark unless it runs, and the slots. Local slots start while Spark does; those of a cluster later."""
    local = None if expects_cluster(configuration) else LocalSlotPool(count, python, heartbeat=heartbeat)
    try:
        if local is not None:
            local.begin_start()
        context = spark_context(configuration, session)
        if context.master.startswith("local"):
            return context, local or LocalSlotPool(count, python, heartbeat=heartbeat)
    except BaseException:
        if local is not None:
            local.shutdown()
        raise
    if local is not None:
        local.shutdown()
    return context, cluster_slots(count, context, python, heartbeat, links)


class OnSpark(SlotEngine):
    """The part of an engine that deals with the Spark session of a job."""

    def _begin_on_spark(self, context: Any, job_label: str) -> None:
        self._context = context
        _runs[job_label] += 1
        self._group = f"ekorn-{job_label}"
        if _runs[job_label] > 1:  # Spark runs no further job of a group that was cancelled
            self._group += f"-{_runs[job_label]}"
        self._bars = StageBars(context)
        self._bars.hide()
        self._lay_out(self._graph)

    def _lay_out(self, graph: JobGraph) -> None:
        super()._lay_out(graph)
        self._levels = graph.levels
        self._regions = regions(graph)
        self._partitions = [[(v, i) for v in level for i in range(v.parallelism)] for level in self._levels]

    @property
    def places(self) -> int | None:
        """How many tasks the session can run at the same time: the cores of its executors."""
        try:
            return task_places(self._context)
        except Exception:  # the session is gone: the next epoch says so
            return None

    def _end_on_spark(self) -> None:
        self._bars.show()
        with contextlib.suppress(Exception):  # the user may have stopped the session already
            self._context.setJobGroup("", "")

    @property
    def description(self) -> str:
        """Return whose Spark runs the job, and its master."""
        master = self._context.master
        if not is_started_by_us(self._context):
            return f"your Spark session at {master}"
        return f"embedded Spark {master}" if master.startswith("local") else f"Spark at {master}"

    @property
    def log_path(self) -> str | None:
        """Return the path of Spark's log if this driver started the session."""
        return SparkLog.path if is_started_by_us(self._context) else None

    def keep_log(self) -> str | None:
        """Return the path of Spark's log if this driver started the session, and keep the file."""
        return SparkLog.keep()

    def _hosted(self, vertex: Vertex, index: int) -> HostedSubtask:
        subtask = SubtaskId(vertex.id, index)
        slot = self._graph.slot_of(vertex, index)
        return HostedSubtask(subtask, slot, self.pool.slots[slot].address, self._regions[subtask])

    def _routes(self) -> dict[int, ExchangeTarget]:
        first: dict[int, ExchangeTarget] = {}
        for level, partitions in enumerate(self._partitions):
            for number, (vertex, index) in enumerate(partitions):
                if index == 0:
                    first[vertex.id] = ExchangeTarget(level, number)
        return {e.id: first[e.target] for e in self._graph.exchanges}

    def _level_of_source(self, exchange: int) -> int:
        found = next(e for e in self._graph.exchanges if e.id == exchange)
        return self._graph.vertices[found.source].level

    def _explained(self, error: Exception) -> BaseException:
        """Turn an error of a Spark job into one line, without the JVM's frames."""
        if self._cancelled.is_set():
            return DeploymentError("the epoch was cancelled")
        lost = self._lost_slot()
        if lost is not None:
            return lost
        why = loss_of(self._context)
        if why is not None:
            return SparkSessionLostError(why, self.keep_log())
        log = self.keep_log() or "the log of your session"
        return DeploymentError(f"Spark could not run the epoch: {first_line_of(error)}; Spark's log: {log}")

    def _cancel_for_good(self, group: str | None = None) -> None:
        """Cancel the running Spark job and all later ones of a group; by default that of the job. Thread-safe."""
        with contextlib.suppress(Exception):  # the session is gone, and its jobs with it
            # This also cancels a job that another thread is about to submit.
            self._context._jsc.sc().cancelJobGroupAndFutureJobs(group or self._group)

    def _cancel_jobs(self, group: str | None = None) -> None:
        with contextlib.suppress(Exception):  # no job runs, or the session is gone
            self._context.cancelJobGroup(group or self._group)


_log = logging.getLogger(__name__)
_lock = threading.Lock()
_hidden: Counter[str] = Counter()  # jobs for which the bars of an application are hidden


class StageBars:
    """The stage bars of a session, for one job.

    Args:
        context: Spark's context.
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._application: str | None = None  # whose bars are hidden for this job

    def hide(self) -> None:
        """Draw no bars from now on."""
        try:
            with _lock:
                application = self._context.applicationId
                shown = self._context._jsc.sc().progressBar()
                if shown.isDefined():
                    self._replace(self._context._jvm.scala.Option.empty())
                    shown.get().finishAll()  # clears what stands on the line
                    shown.get().stop()
                elif not _hidden[application]:
                    return  # the session draws none
                _hidden[application] += 1
                self._application = application
        except Exception as error:  # Spark's internals differ between versions: the job runs all the same
            _log.info("Spark's stage bars stay on the terminal; set spark.ui.showConsoleProgress=false: %s", error)

    def show(self) -> None:
        """Draw bars again, unless another job of the session still runs."""
        application, self._application = self._application, None
        if application is None:
            return
        with _lock:
            _hidden[application] -= 1
            if _hidden[application]:
                return
            del _hidden[application]
            try:
                bar = getattr(self._context._jvm, "org.apache.spark.ui.ConsoleProgressBar")
                self._replace(self._context._jvm.scala.Option.apply(bar(self._context._jsc.sc())))
            except Exception as error:  # the user may have stopped the session already
                _log.info("Spark's stage bars do not come back: %s", error)

    def _replace(self, bar: Any) -> None:
        java = self._context._jsc.sc()
        field = java.getClass().getDeclaredField("_progressBar")
        field.setAccessible(True)
        field.set(java, bar)
