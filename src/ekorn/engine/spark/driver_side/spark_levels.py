"""Runs in the driver: epochs on Spark. An epoch is one Spark job, a level one stage, a subtask a task."""

from __future__ import annotations

import contextlib
import logging
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ekorn.engine.protocol import Failure
from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.spark.driver_side.job_group import SparkJobGroup, hosted_subtask
from ekorn.engine.spark.driver_side.session import active_tasks, kill_python_processes, tries_tasks_once
from ekorn.engine.spark.driver_side.worker_python import numbered_partitions
from ekorn.engine.spark.task_side.level_task import ExchangeTarget, LevelTask
from ekorn.engine.spark.task_side.rows import rows_of_driver, shuffle_pairs
from ekorn.engine.subtask_outcome import SubtaskFailure
from ekorn.graph.job_graph import JobGraph
from ekorn.graph.regions import regions
from ekorn.operators.epoch import EpochAck, EpochOrder, OutputPart

__all__ = ["SparkLevels", "collected", "shuffled"]

_log = logging.getLogger(__name__)


class SparkLevels:
    """Runs the levels of a job's epochs as stages of Spark.

    Args:
        jobs: The Spark jobs of the job.
        calls: The slots of the job.
    """

    def __init__(self, jobs: SparkJobGroup, calls: SlotCalls) -> None:
        self._jobs = jobs
        self._context = jobs.context
        self.calls = calls
        self._pool = calls.pool
        self._stalls = 0  # in a row, without an epoch that ended

    def lay_out(self, graph: JobGraph) -> None:
        self._graph = graph
        self._levels = graph.levels
        self._regions = regions(graph)
        self._partitions = [[(v, i) for v in level for i in range(v.parallelism)] for level in self._levels]
        self._base: Any = None  # an RDD with a partition for every subtask of the first level

    def begin_attempt(self) -> None:
        """Do nothing: the tasks of every epoch are new."""

    def run(self, order: EpochOrder, attempt: int) -> list[EpochAck | OutputPart | SubtaskFailure] | Failure:
        try:
            outcomes = [pickle.loads(row) for row in self._spark_job(order, attempt)]
        except Exception as error:  # py4j and Spark raise many types; each is a failed epoch
            return Failure(self._jobs.explained(error))
        self._stalls = 0
        return outcomes

    def _spark_job(self, order: EpochOrder, attempt: int) -> Iterable[bytes]:
        """Run all levels as one chain of stages: every subtask runs once, whatever the fan-out."""
        context = self._context
        context.setJobGroup(self._jobs.name, self._describe(order), interruptOnCancel=False)
        if self._base is None:
            self._base = numbered_partitions(context, len(self._partitions[0]))
        rdd = self._base
        with _named_stages(context) as name:
            for task in self._tasks(order, attempt):
                if task.level > 0:  # ends the previous level's stage, which takes the name set for it
                    rdd = shuffled(rdd, len(task.subtasks))
                name(f"epoch {order.number}: " + ", ".join(v.name for v in self._levels[task.level]))
                rdd = rdd.mapPartitionsWithIndex(task)
            return collected(rdd)

    def _tasks(self, order: EpochOrder, attempt: int) -> Iterable[LevelTask]:
        routes = self._routes()
        for level, partitions in enumerate(self._partitions):
            following = self._partitions[level + 1] if level + 1 < len(self._partitions) else None
            yield LevelTask(
                level=level,
                subtasks=tuple(hosted_subtask(self._graph, self._regions, self._pool, *of) for of in partitions),
                next_partitions=len(following) if following is not None else 1,
                routes={e: r for e, r in routes.items() if self._level_of_source(e) == level},
                secret=self._pool.secret,
                attempt=attempt,
                order=order,
                repeatable=not tries_tasks_once(self._context.master),
            )

    def _routes(self) -> dict[int, ExchangeTarget]:
        """Return the level and the first partition to which each exchange leads."""
        first: dict[int, ExchangeTarget] = {}
        for level, partitions in enumerate(self._partitions):
            for number, (vertex, index) in enumerate(partitions):
                if index == 0:
                    first[vertex.id] = ExchangeTarget(level, number)
        return {e.id: first[e.target] for e in self._graph.exchanges}

    def _level_of_source(self, exchange: int) -> int:
        found = next(e for e in self._graph.exchanges if e.id == exchange)
        return self._graph.vertices[found.source].level

    def _describe(self, order: EpochOrder) -> str:
        carried = f", checkpoint {order.checkpoint_id}" if order.checkpoint_id is not None else ""
        return f"{self._graph.name}: epoch {order.number}{carried}"

    def waits_for_resources(self) -> bool:
        """Return whether no task of the epoch has got a core: other jobs have them all, or no executor is there yet."""
        if self._stalls:  # hanging tasks of the epoch that was cancelled before may have the cores
            return False
        try:
            waits = not active_tasks(self._context, self._jobs.name)
        except Exception:  # the session is gone: cancelling its job does no harm
            return False
        if waits:
            _log.warning("an epoch waits for a core for its Spark tasks; job group %s", self._jobs.name)
        return waits

    def stop_stalled(self) -> None:
        """Cancel the Spark job. Spark kills the Python worker of a task that then does not end.

        Spark cannot kill a worker if the daemon that forks them hangs too. The next epoch stalls again then, and an
        embedded Spark loses all of its Python processes; it starts a new daemon by itself. On a cluster the executor
        ends (`spark.task.reaper.killTimeout`), and Spark starts another one.
        """
        self._stalls += 1
        if self._stalls > 1 and self._jobs.is_local:
            with contextlib.suppress(Exception):  # the session is gone, and its processes with it
                kill_python_processes(self._context)
        self._jobs.cancel_running()

    def stop_waiting_for(self, slot: int) -> None:
        self._jobs.cancel_running()  # tasks of the slot wait for an answer that will not come

    def cancel(self) -> None:
        self._jobs.cancel_for_good()

    def close(self) -> None:
        """Leave the session to the next job."""
        self._jobs.close()


@contextmanager
def _named_stages(context: Any) -> Iterator[Callable[[str], None]]:
    """Name Spark's stages after the operators that they run; without a name Spark shows a line of this file."""
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
