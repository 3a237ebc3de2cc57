"""Runs in the driver: one Spark job whose stages run at the same time, joined by Spark's pipelined shuffle.

Spark 4.3 has a shuffle that pushes rows from writing to reading tasks as they are produced. An RDD reads from it if its
dependency is a `PipelinedShuffleDependency`, and Spark then schedules all stages of the job at once. Spark itself uses
it in plans of Spark SQL alone. `_pipelined` makes such an RDD without SQL: see docs/decisions/0049-pipelined-rdds.md.

On a cluster a task prefers the host of its slot. Spark runs a task where its data is, so each partition begins with an
empty row that is said to be there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tamias.engine.spark.driver_side.conduit_layout import ConduitShuffle
from tamias.engine.spark.driver_side.task_places import UnfitSession
from tamias.engine.spark.driver_side.worker_daemon import FOR_CONDUITS, task_environment
from tamias.engine.spark.task_side.conduit_tasks import InletRows, NoRows, OutletRows, no_rows
from tamias.engine.spark.task_side.level_task import HostedSubtask

__all__ = ["SESSION_SETTINGS", "check_session", "run_pipelined", "start_workers"]

# Settings of the session, which cannot be changed while it runs. Without them a job uses more of the machine.
SESSION_SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",  # TCP to the worker costs up to 40 ms
    "spark.buffer.size": "4096",  # what Spark gathers before it writes to a Python worker; 65,536 by default
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",  # a row waits so long for others; 50 by default
    # What is on its way from a task and to one. Spark counts a row as one buffer of 32 kB, and a blob has up to 2 MB.
    "spark.shuffle.streaming.writerMaxMemory": "1048576",
    "spark.shuffle.streaming.readerMaxMemory": "8388608",
}
_OLDEST = (4, 3)
# Spark refuses jobs with a pipelined shuffle where one of these is on.
_REFUSED = ("spark.dynamicAllocation.enabled", "spark.speculation")
_NO_ROWS = NoRows()  # one: Spark joins RDDs with the same serializer
_lock = threading.Lock()

BesideOf = Callable[[HostedSubtask], str | None]  # the host where the tasks of a subtask should run; None: anywhere


def check_session(context: Any) -> None:
    """Check that a session can run the stages of a job at the same time.

    Raises:
        UnfitSession: It cannot.
    """
    if tuple(int(part) for part in context.version.split(".")[:2]) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        reason = f"Spark has version {context.version}; its stages run at the same time since {oldest}"
        raise UnfitSession(reason, f"install pyspark {oldest} or newer")
    settings = context.getConf()
    for key in _REFUSED:
        if (settings.get(key) or "false").lower() == "true":
            reason = f"the Spark session has {key}=true, with which Spark does not run stages at the same time"
            raise UnfitSession(reason, f"start it with {key}=false")


def run_pipelined(
    context: Any, shuffles: Sequence[ConduitShuffle], beside: BesideOf, *, group: str, description: str
) -> None:
    """Run one job with all tasks of a region, until all have ended. Blocks; cancel the job group to end.

    Runs on a thread of its own, whose Spark properties it sets.

    Args:
        context: Spark's context.
        shuffles: The tasks.
        beside: Where the tasks of a subtask should run.
        group: The job group.
        description: What Spark's pages say about the job.
    """
    context.setJobGroup(group, description, interruptOnCancel=False)
    with _our_python(context):
        ends = [_carried(context, shuffle, beside) for shuffle in shuffles]
        job = context.union(ends)
    job.collect()


def start_workers(context: Any, count: int, *, group: str, description: str) -> None:
    """Have Spark start Python workers that the next tasks of a job find. Blocks; cancel the job group to end.

    In a session of the user's a worker takes a second of a core to start. Spark ends one that has had nothing to do for
    a minute. Runs on a thread of its own, whose Spark properties it sets.

    Args:
        context: Spark's context.
        count: How many; the session has places for as many tasks beside those that run.
        group: The job group.
        description: What Spark's pages say about the job.
    """
    context.setJobGroup(group, description, interruptOnCancel=False)
    with _our_python(context):
        workers = _planned(_empty_rows(context, [None] * count).mapPartitions(no_rows), _NO_ROWS)
    workers.collect()


def _carried(context: Any, shuffle: ConduitShuffle, beside: BesideOf) -> Any:
    """Return an RDD without elements, whose computation carries the blobs of a shuffle to their subtasks."""
    from pyspark import RDD

    outlets = _empty_rows(context, [beside(hosted) for hosted in shuffle.outlets.subtasks])
    leaving = outlets.mapPartitionsWithIndex(shuffle.outlets)
    if shuffle.inlets is None:
        return _planned(leaving, _NO_ROWS)
    written = _planned(leaving, OutletRows(_row_bytes(context)))._jrdd.rdd()
    arrived = _pipelined(context, written, len(shuffle.inlets.subtasks))
    there = [beside(hosted) for hosted in shuffle.inlets.subtasks]
    if any(there):
        arrived = _placed(context, arrived, _empty_rows(context, there), len(there))
    return _planned(RDD(arrived, context, InletRows()).mapPartitionsWithIndex(shuffle.inlets), _NO_ROWS)


def _row_bytes(context: Any) -> int:
    """Return how large a row must be for Spark to pass it on at once."""
    return int(context._jsc.sc().conf().getSizeAsBytes("spark.buffer.size", "64k"))


def _pipelined(context: Any, written: Any, partitions: int) -> Any:
    """Return the rows of a Java RDD of keys and rows, each in the partition of its key, by Spark's pipelined shuffle.

    The Java RDD that reads from a shuffle makes a blocking dependency, unless it has one already: it gets one of the
    other kind.
    """
    jvm = context._jvm
    pairs = jvm.PairwiseRDD(written)
    partitioner = jvm.PythonPartitioner(partitions, id(_pipelined))  # a row's key is its partition
    moved = pairs.asJavaPairRDD().partitionBy(partitioner)
    nothing, tag = jvm.scala.Option.empty(), _class_tag(context)
    serializer = jvm.org.apache.spark.serializer.JavaSerializer(context._jsc.getConf())
    processor = jvm.org.apache.spark.shuffle.ShuffleWriteProcessor()
    checksums = context._gateway.new_array(jvm.org.apache.spark.shuffle.checksum.RowBasedChecksum, 0)
    dependency = jvm.org.apache.spark.PipelinedShuffleDependency(
        pairs, partitioner, serializer, nothing, nothing, False, processor, checksums, tag, tag, tag
    )
    fields = jvm.java.lang.Class.forName("org.apache.spark.rdd.RDD").getDeclaredFields()
    dependencies = next(field for field in fields if field.getName().endswith("dependencies_"))
    dependencies.setAccessible(True)
    dependencies.set(moved.rdd(), jvm.PythonUtils.toSeq([dependency]))
    return jvm.PythonRDD.valueOfPair(moved)


def _placed(context: Any, arrived: Any, there: Any, partitions: int) -> Any:
    """Return a Java RDD whose partitions are on the hosts of another one: the rows of that one come first."""
    # Partition by partition, and not one after the other as in a plain union.
    both = context._jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD(
        context._jsc.sc(),
        context._jvm.PythonUtils.toSeq([there._jrdd.rdd(), arrived.rdd()]),
        partitions,
        _class_tag(context),
    )
    return both.toJavaRDD()


def _empty_rows(context: Any, hosts: Sequence[str | None]) -> Any:
    """Return an RDD with an empty row on each host, in a partition of its own."""
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer

    to_seq, pair = context._jvm.PythonUtils.toSeq, context._jvm.scala.Tuple2
    rows = to_seq([pair(b"", to_seq([host] if host is not None else [])) for host in hosts])
    return RDD(context._jsc.sc().makeRDD(rows, _class_tag(context)).toJavaRDD(), context, NoOpSerializer())


def _class_tag(context: Any) -> Any:
    return context._jsc.emptyRDD().classTag()


def _planned(rdd: Any, serializer: NoRows) -> Any:
    """Make the Java side of an RDD: PySpark notes its serializer, the interpreter and the environment then."""
    rdd._jrdd_deserializer = serializer
    assert rdd._jrdd is not None, "PySpark makes it"
    return rdd


@contextmanager
def _our_python(context: Any) -> Iterator[None]:
    """Let the tasks of RDDs that are made in this block run with the driver's Python, in local mode."""
    if not context.master.startswith("local"):
        yield
        return
    with _lock:
        python, environment = context.pythonExec, context.environment
        context.pythonExec, context.environment = sys.executable, task_environment(context, FOR_CONDUITS)
        try:
            yield
        finally:
            context.pythonExec, context.environment = python, environment
