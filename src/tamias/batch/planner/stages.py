"""Spark's stages: chains of operators that run in one task, and the exchanges between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tamias.batch.plan.partitioning import Partitioning
from tamias.batch.tasks.blobs import FIRST, SECOND
from tamias.batch.tasks.exits import Exit, ForwardExit, ShuffleExit
from tamias.batch.tasks.stage_task import StageTask
from tamias.batch.tasks.task_context import JobFacts
from tamias.batch.tasks.task_operator import TaskOperator
from tamias.engine.spark.driver_side.worker_python import DriverPythonContext

__all__ = ["Flow", "Stages"]

_LONGEST_CHAIN = 100  # operators; each is a generator that calls the one before it, and Python bounds such calls
_PARTITIONER = 0x7461  # the same for all shuffles: Spark then puts partition i of two inputs together


@dataclass(frozen=True)
class Flow:
    """The records of an operator: an RDD, and the operators that run on it within one stage, not yet applied.

    Attributes:
        rdd: The RDD of what the stage reads.
        reads: What that is; see `StageTask`.
        partitions: The number of partitions.
        chain: The operators.
        partitioning: Which records are known to be together.
        shuffled: Whether the RDD comes from a shuffle, so that Spark can put it together with another one.
        side: The input, of an operator with two, that the blobs are marked for.
    """

    rdd: Any
    reads: str
    partitions: int
    chain: tuple[TaskOperator, ...] = ()
    partitioning: Partitioning | None = None
    shuffled: bool = False
    side: int = FIRST

    def partitioned(self, partitioning: Partitioning | None) -> Flow:
        """Return the flow with another knowledge of its partitions."""
        return replace(self, partitioning=partitioning)


class Stages:
    """Builds the RDDs of one job.

    Args:
        context: Spark's context.
        facts: The job.
        first_number: The number of the first operator. Supersteps of an iteration give equal operators equal numbers.
    """

    def __init__(self, context: Any, facts: JobFacts, first_number: int = 0) -> None:
        local = context.master.startswith("local")
        self._context = DriverPythonContext(context) if local else context
        self._facts = facts
        self._local = local
        self.next_number = first_number
        self._shuffles: list[Any] = []
        self._kept: list[Any] = []
        self.memory_mb = _megabytes(context.getConf().get("spark.python.worker.memory", "512m"))

    def source(self, splits: Sequence[Any], parallelism: int, reading: TaskOperator) -> Flow:
        """Return a flow of splits, shared out to the partitions in turn."""
        shares = [list(splits[number::parallelism]) for number in range(parallelism)]
        rdd = self._context.parallelize(shares, parallelism)
        rdd.ctx = self._context
        return self.then(Flow(rdd.flatMap(_itself), "splits", parallelism), reading)

    def then(self, flow: Flow, operator: TaskOperator) -> Flow:
        """Return a flow with one more operator in its stage. What is known of its partitions stays."""
        operator.number = self.next_number
        self.next_number += 1
        if len(flow.chain) >= _LONGEST_CHAIN:
            flow = self._cut(flow)
        return replace(flow, chain=(*flow.chain, operator))

    def exchanged(self, flow: Flow, leaving: ShuffleExit, partitioning: Partitioning | None) -> Flow:
        """Return a flow whose records have passed a shuffle."""
        moved = self._shuffle(flow, leaving)
        return Flow(moved, "blobs", leaving.partitions, partitioning=partitioning, shuffled=True, side=leaving.side)

    def fewer(self, flow: Flow, partitions: int) -> Flow:
        """Return a flow with fewer partitions, without a shuffle."""
        blobs = self.written(flow, ForwardExit())
        return Flow(blobs.coalesce(partitions), "blobs", partitions)

    def together(self, first: Flow, second: Flow, operator: TaskOperator) -> Flow:
        """Return a flow of an operator over two flows: partition i of both goes to one task."""
        assert first.shuffled and second.shuffled and first.partitions == second.partitions
        rdds = [self._sided(first, FIRST), self._sided(second, SECOND)]
        return self.then(Flow(self._union(rdds), "two", first.partitions, shuffled=True), operator)

    def union(self, flows: Iterable[Flow]) -> Flow:
        """Return the records of all flows. Partitions are put together if all flows come from equal shuffles."""
        given = list(flows)
        united = self._union([self.written(flow, ForwardExit()) for flow in given])
        aligned = all(flow.shuffled and flow.partitions == given[0].partitions for flow in given)
        partitions = given[0].partitions if aligned else sum(flow.partitions for flow in given)
        same = aligned and all(flow.partitioning == given[0].partitioning for flow in given)
        return Flow(united, "blobs", partitions, partitioning=given[0].partitioning if same else None, shuffled=aligned)

    def kept(self, flow: Flow) -> Flow:
        """Return a flow that is computed once, however often it is read, until `release`."""
        if not flow.chain:
            return flow  # a shuffle's result is on disk already
        from pyspark import StorageLevel

        cut = self._cut(flow)
        cut.rdd.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(cut.rdd)
        if not self._local:  # two executors may compute a partition each, and a function need not repeat its results
            cut.rdd._jrdd.count()
        return cut

    def release(self) -> None:
        """Drop what `kept` keeps."""
        while self._kept:
            self._kept.pop().unpersist()

    def drop_shuffles(self) -> None:
        """Remove the files of all shuffles, which nothing reads any more.

        Spark removes them when the JVM collects garbage. A thousand supersteps may pass before it does.
        """
        cleaner = self._context._jsc.sc().cleaner()
        while self._shuffles:
            shuffle_id = self._shuffles.pop().rdd().dependencies().head().shuffleId()
            if cleaner.isDefined():
                cleaner.get().doCleanupShuffle(shuffle_id, False)

    def written(self, flow: Flow, leaving: Exit) -> Any:
        """Return the RDD of the blobs that a stage writes."""
        if not flow.chain and flow.reads == "blobs" and type(leaving) is ForwardExit and leaving.side == flow.side:
            return flow.rdd
        return self._staged(flow, leaving, keeps_partitions=True)

    def _cut(self, flow: Flow) -> Flow:
        """Return the same records as blobs of their own stage."""
        return replace(flow, rdd=self.written(flow, ForwardExit()), reads="blobs", chain=(), side=FIRST)

    def _sided(self, flow: Flow, side: int) -> Any:
        return self.written(flow, ForwardExit(side=side))

    def _staged(self, flow: Flow, leaving: Exit, *, keeps_partitions: bool) -> Any:
        from pyspark import RDD
        from pyspark.serializers import NoOpSerializer

        task = StageTask(self._facts, flow.reads, flow.chain, leaving, flow.partitions, flow.side)
        staged = flow.rdd.mapPartitionsWithIndex(task, preservesPartitioning=keeps_partitions)
        staged._bypass_serializer = True  # what a stage yields are bytes
        return RDD(staged._jrdd, flow.rdd.ctx, NoOpSerializer())

    def _shuffle(self, flow: Flow, leaving: ShuffleExit) -> Any:
        from pyspark import RDD
        from pyspark.serializers import NoOpSerializer

        pairs = self._staged(flow, leaving, keeps_partitions=False)
        jvm = self._context._jvm
        paired = jvm.PairwiseRDD(pairs._jrdd.rdd()).asJavaPairRDD()
        moved = paired.partitionBy(jvm.PythonPartitioner(leaving.partitions, _PARTITIONER))
        self._shuffles.append(moved)
        return RDD(jvm.PythonRDD.valueOfPair(moved), pairs.ctx, NoOpSerializer())

    def _union(self, rdds: list[Any]) -> Any:
        united = self._context.union(rdds)
        united.ctx = rdds[0].ctx
        return united


def _itself(splits: list[Any]) -> list[Any]:
    return splits


def _megabytes(text: str) -> int:
    """Return a size of memory as Spark's settings spell it, in megabytes."""
    from pyspark.util import _parse_memory

    return int(_parse_memory(text))
