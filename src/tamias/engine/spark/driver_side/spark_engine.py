"""Runs in the driver: the engine on Spark. An epoch is one Spark job, a level one stage, a subtask's epoch one task."""

from __future__ import annotations

import contextlib
import logging
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tamias.config.link_settings import LinkSettings
from tamias.config.python_dependencies import PythonDependencies
from tamias.engine.protocol import EpochResult, Failure
from tamias.engine.slots.local_pool import LocalSlotPool
from tamias.engine.slots.slot_engine import SlotEngine
from tamias.engine.slots.slot_handle import Heartbeat
from tamias.engine.slots.slot_pool import SlotPool
from tamias.engine.spark.driver_side.cluster import cluster_slots
from tamias.engine.spark.driver_side.session import (
    SparkLog,
    active_tasks,
    expects_cluster,
    first_line_of,
    is_started_by_us,
    kill_python_processes,
    loss_of,
    spark_context,
    tries_tasks_once,
)
from tamias.engine.spark.driver_side.shuffle import collected, shuffled
from tamias.engine.spark.driver_side.stage_bars import StageBars
from tamias.engine.spark.driver_side.worker_python import numbered_partitions
from tamias.engine.spark.task_side.level_task import HostedSubtask, LevelTask, Route
from tamias.errors import DeploymentError, SparkSessionLostError
from tamias.graph.addresses import SubtaskId
from tamias.graph.job_graph import JobGraph, Vertex
from tamias.graph.regions import regions
from tamias.operators.epoch import EpochOrder

_log = logging.getLogger(__name__)
_runs: Counter[str] = Counter()  # how often each job ran in this driver


class SparkEngine(SlotEngine):
    """Runs one job on a Spark session, with slot processes beside it."""

    def __init__(
        self,
        graph: JobGraph,
        configuration: dict[str, str],
        *,
        job_label: str,
        python: PythonDependencies | None = None,
        heartbeat: Heartbeat | None = None,
        links: LinkSettings | None = None,
        session: Any = None,
    ) -> None:
        self._context, pool = self._start(
            graph.slot_count,
            configuration=configuration,
            python=python or PythonDependencies(),
            heartbeat=heartbeat or Heartbeat(),
            links=links or LinkSettings(),
            session=session,
        )
        super().__init__(graph, pool, (heartbeat or Heartbeat()).stall_timeout_s)
        _runs[job_label] += 1
        self._group = f"tamias-{job_label}"
        if _runs[job_label] > 1:  # Spark runs no further job of a group that was cancelled
            self._group += f"-{_runs[job_label]}"
        self._bars = StageBars(self._context)
        self._bars.hide()
        self._cancelled = threading.Event()
        self._stalls = 0  # in a row, without an epoch that ended
        self._levels = graph.levels
        self._base: Any = None
        self._regions = regions(graph)
        self._partitions = [[(v, i) for v in level for i in range(v.parallelism)] for level in self._levels]

    @staticmethod
    def _start(
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

    def _run_levels(self, order: EpochOrder) -> EpochResult:
        assert self._deployment is not None, "deploy comes before the first epoch"
        try:
            outcomes = [pickle.loads(row) for row in self._spark_job(order)]
        except Exception as error:  # py4j and Spark raise many types; each is a failed epoch
            return EpochResult(failure=Failure(self._explained(error)))
        self._stalls = 0
        return self._result(outcomes)

    def _spark_job(self, order: EpochOrder) -> Iterable[bytes]:
        """Run all levels as one chain of stages: every subtask runs once, whatever the fan-out."""
        assert self._deployment is not None
        context = self._context
        context.setJobGroup(self._group, self._describe(order), interruptOnCancel=False)
        if self._base is None:
            self._base = numbered_partitions(context, len(self._partitions[0]))
        rdd = self._base
        with _named_stages(context) as name:
            for task in self._tasks(order):
                if task.level > 0:  # ends the previous level's stage, which takes the name set for it
                    rdd = shuffled(rdd, len(task.subtasks))
                name(f"epoch {order.number}: " + ", ".join(v.name for v in self._levels[task.level]))
                rdd = rdd.mapPartitionsWithIndex(task)
            return collected(rdd)

    def _tasks(self, order: EpochOrder) -> Iterable[LevelTask]:
        assert self._deployment is not None
        routes = self._routes()
        for level, partitions in enumerate(self._partitions):
            following = self._partitions[level + 1] if level + 1 < len(self._partitions) else None
            yield LevelTask(
                level=level,
                subtasks=tuple(self._hosted(vertex, index) for vertex, index in partitions),
                next_partitions=len(following) if following is not None else 1,
                routes={e: r for e, r in routes.items() if self._level_of_source(e) == level},
                secret=self.pool.secret,
                attempt=self._deployment.attempt,
                order=order,
                repeatable=not tries_tasks_once(self._context.master),
            )

    def _hosted(self, vertex: Vertex, index: int) -> HostedSubtask:
        subtask = SubtaskId(vertex.id, index)
        slot = self._graph.slot_of(vertex, index)
        return HostedSubtask(subtask, slot, self.pool.slots[slot].address, self._regions[subtask])

    def _routes(self) -> dict[int, Route]:
        first: dict[int, Route] = {}
        for level, partitions in enumerate(self._partitions):
            for number, (vertex, index) in enumerate(partitions):
                if index == 0:
                    first[vertex.id] = Route(level, number)
        return {e.id: first[e.target] for e in self._graph.exchanges}

    def _level_of_source(self, exchange: int) -> int:
        found = next(e for e in self._graph.exchanges if e.id == exchange)
        return self._graph.vertices[found.source].level

    def _describe(self, order: EpochOrder) -> str:
        carried = f", checkpoint {order.checkpoint_id}" if order.checkpoint_id is not None else ""
        return f"{self._graph.name}: epoch {order.number}{carried}"

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

    def cancel_epoch(self) -> None:
        self._cancelled.set()
        with contextlib.suppress(Exception):  # the session is gone, and its jobs with it
            # This also cancels a job that another thread is about to submit.
            self._context._jsc.sc().cancelJobGroupAndFutureJobs(self._group)

    def _slot_lost(self, number: int) -> None:
        self._cancel_jobs()  # tasks of the slot wait for an answer that will not come

    def _waits_for_resources(self) -> bool:
        """Return whether no task of the epoch has got a core: other jobs have them all, or no executor is there yet."""
        if self._stalls:  # the cores may be held by hanging tasks of the epoch that was cancelled before
            return False
        try:
            waits = not active_tasks(self._context, self._group)
        except Exception:  # the session is gone: cancelling its job does no harm
            return False
        if waits:
            _log.warning("an epoch waits for Spark to give its tasks a core; job group %s", self._group)
        return waits

    def _epoch_stalled(self) -> None:
        """Cancel the Spark job. Spark kills the Python worker of a task that then does not end.

        Spark cannot kill a worker if the daemon that forks them hangs too. The next epoch stalls again then, and an
        embedded Spark loses all of its Python processes; it starts a new daemon by itself. On a cluster the executor
        ends (`spark.task.reaper.killTimeout`), and Spark starts another one.
        """
        self._stalls += 1
        if self._stalls > 1 and self._context.master.startswith("local"):
            with contextlib.suppress(Exception):  # the session is gone, and its processes with it
                kill_python_processes(self._context)
        self._cancel_jobs()

    def _cancel_jobs(self) -> None:
        with contextlib.suppress(Exception):  # no job runs, or the session is gone
            self._context.cancelJobGroup(self._group)

    def shutdown(self) -> None:
        """End the slots. The session stays for the next job."""
        super().shutdown()
        self._bars.show()
        with contextlib.suppress(Exception):  # the user may have stopped the session already
            self._context.setJobGroup("", "")


@contextmanager
def _named_stages(context: Any) -> Iterator[Callable[[str], None]]:
    """Name Spark's stages after the operators they run; without a name Spark shows a line of this file."""
    from pyspark.traceback_utils import SCCallSiteSync  # here: `spark_context` explains a missing PySpark

    with SCCallSiteSync(context):  # while a call site is set, PySpark does not replace it in nested calls
        yield context._jsc.setCallSite
