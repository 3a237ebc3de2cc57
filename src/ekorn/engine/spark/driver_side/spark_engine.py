"""Runs in the driver: the engine of epochs on Spark. An epoch is one Spark job, a level one stage, a subtask a task."""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ekorn.engine.protocol import EpochResult, Failure
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.driver_side.on_spark import OnSpark
from ekorn.engine.spark.driver_side.session import (
    active_tasks,
    kill_python_processes,
    tries_tasks_once,
)
from ekorn.engine.spark.driver_side.worker_python import numbered_partitions
from ekorn.engine.spark.task_side.level_task import LevelTask
from ekorn.engine.spark.task_side.rows import rows_of_driver, shuffle_pairs
from ekorn.graph.job_graph import JobGraph
from ekorn.operators.epoch import EpochOrder

_log = logging.getLogger(__name__)


class SparkEngine(OnSpark):
    """Runs one job on a Spark session, with slot processes beside it."""

    def __init__(self, graph: JobGraph, context: Any, pool: SlotPool, *, job_label: str, heartbeat: Heartbeat) -> None:
        super().__init__(graph, pool, heartbeat.stall_timeout_s)
        self._begin_on_spark(context, job_label)
        self._stalls = 0  # in a row, without an epoch that ended
        self._base: Any = None

    def _lay_out(self, graph: JobGraph) -> None:
        super()._lay_out(graph)
        self._base = None  # it has a partition for every subtask of the first level

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

    def _describe(self, order: EpochOrder) -> str:
        carried = f", checkpoint {order.checkpoint_id}" if order.checkpoint_id is not None else ""
        return f"{self._graph.name}: epoch {order.number}{carried}"

    def _cancel_levels(self) -> None:
        self._cancel_for_good()

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

    def shutdown(self) -> None:
        """End the slots. The session stays for the next job."""
        super().shutdown()
        self._end_on_spark()


@contextmanager
def _named_stages(context: Any) -> Iterator[Callable[[str], None]]:
    """Name Spark's stages after the operators they run; without a name Spark shows a line of this file."""
    from pyspark.traceback_utils import SCCallSiteSync  # here: `spark_context` explains a missing PySpark

    with SCCallSiteSync(context):  # while a call site is set, PySpark does not replace it in nested calls
        yield context._jsc.setCallSite


def shuffled(rdd: Any, partitions: int) -> Any:
    """Return the rows of an RDD, encoded, each in the partition of its `via`."""
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer

    context = rdd.ctx
    pairs = _as_bytes(rdd.mapPartitions(shuffle_pairs))
    java_pairs = context._jvm.PairwiseRDD(pairs._jrdd.rdd()).asJavaPairRDD()
    partitioner = context._jvm.PythonPartitioner(partitions, id(shuffled))  # a row's key is its partition
    moved = context._jvm.PythonRDD.valueOfPair(java_pairs.partitionBy(partitioner))
    return RDD(moved, context, NoOpSerializer())


def collected(rdd: Any) -> list[bytes]:
    """Return the data of the rows for the driver."""
    found: list[bytes] = _as_bytes(rdd.mapPartitions(rows_of_driver)).collect()
    return found


def _as_bytes(rdd: Any) -> Any:
    """Let the elements of an RDD, which are bytes, travel without being pickled."""
    rdd._bypass_serializer = True
    return rdd
