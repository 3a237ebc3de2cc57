"""Runs in the driver: one Spark job whose stages run at the same time, joined by Spark's pipelined shuffle.

Spark 4.3 has a shuffle that pushes rows from writing to reading tasks as they are produced. An RDD reads from it if its
dependency is a `PipelinedShuffleDependency`, and Spark then schedules all stages of the job at once. Spark itself uses
it in plans of Spark SQL alone. `_pipelined` makes such an RDD without SQL: see docs/decisions/0049-pipelined-rdds.md.

On a cluster a task prefers the host of its slot. Spark runs a task where its data is, so each partition begins with an
empty row that is said to be there.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ekorn.engine.spark.driver_side.task_slots import UnfitSession
from ekorn.engine.spark.driver_side.transport_layout import TransportShuffle
from ekorn.engine.spark.driver_side.worker_daemon import FOR_TRANSPORT, task_environment
from ekorn.engine.spark.task_side.level_task import HostedSubtask
from ekorn.engine.spark.task_side.transport_tasks import InletRows, NoRows, OutletRows, no_rows

__all__ = [
    "SESSION_SETTINGS",
    "blob_bytes_for",
    "check_session",
    "is_refusal",
    "rows_in_flight",
    "run_pipelined",
    "set_up_session",
    "start_workers",
]

_log = logging.getLogger(__name__)

# Settings of a session that ekorn starts for continuous jobs, or sets up for them later. Without them a continuous job
# uses more CPU and memory.
SESSION_SETTINGS = {
    # Spark gathers as many bytes before it writes to a Python worker or to a reading task. A row has at least as many,
    # so no row waits for the next. With Spark's default of 65,536 bytes small blobs would travel in rows of that size.
    "spark.buffer.size": "4096",
    "spark.shuffle.streaming.networkBufferSize": "4096",
    # Limits the rows in flight from a task to two of any size for each reading task, which is Spark's least; and the
    # rows in flight to a task.
    "spark.shuffle.streaming.writerMaxMemory": "32768",
    "spark.shuffle.streaming.readerMaxMemory": "8388608",
}
_IN_FLIGHT_BYTES = 64 << 20  # from one task, if its readers are slow
_LEAST_BLOB_BYTES = 64 << 10
_MOST_BLOB_BYTES = 1 << 20  # larger blobs would not travel faster
_OLDEST = (4, 3)
_WRITER = "org.apache.spark.shuffle.streaming.StreamingShuffleWriter"
# Spark refuses jobs with a pipelined shuffle where one of these is on.
_REFUSED = ("spark.dynamicAllocation.enabled", "spark.speculation")
_lock = threading.Lock()

BesideOf = Callable[[HostedSubtask], str | None]  # the host where the tasks of a subtask should run; None: anywhere


def check_session(context: Any) -> None:
    """Check that a session can run the stages of a job at the same time.

    Raises:
        UnfitSession: It cannot.
    """
    if tuple(int(part) for part in context.version.split(".")[:2]) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        reason = f"Spark has version {context.version}; its stages can run at the same time since version {oldest}"
        raise UnfitSession(reason, f"install pyspark {oldest} or newer")
    settings = context.getConf()
    for key in _REFUSED:
        if (settings.get(key) or "false").lower() == "true":
            reason = f"the Spark session has {key}=true, with which Spark does not run stages at the same time"
            raise UnfitSession(reason, f"start it with {key}=false")
    if _dependencies_field(context) is None:
        reason = f"Spark {context.version} keeps the dependencies of an RDD in a place that ekorn does not know"
        raise UnfitSession(reason, "install the version of pyspark in the constraints of ekorn")


def set_up_session(context: Any) -> None:
    """Give a session on this machine, which an earlier job in epochs started, the settings of continuous jobs.

    Every new task reads them, and in local mode it reads them from the driver's own settings.
    """
    for key, value in SESSION_SETTINGS.items():
        context._jsc.sc().conf().setIfMissing(key, value)


def rows_in_flight(context: Any) -> int:
    """Return how many rows, whatever their sizes, may be in flight from a task to its readers."""
    buffered = _bytes_of(context, "spark.shuffle.streaming.writerMaxMemory", "32m")
    return max(1, buffered // _bytes_of(context, "spark.shuffle.streaming.networkBufferSize", "32k"))


def blob_bytes_for(rows: int, readers: int) -> int:
    """Return the size at which blobs are sent, so that the bytes that wait in Spark for a slow task stay bounded.

    Args:
        rows: What `rows_in_flight` returned.
        readers: The tasks to which a task may send. Spark lets two rows wait for each of them in any case.
    """
    return min(max(_IN_FLIGHT_BYTES // max(rows, 2 * readers), _LEAST_BLOB_BYTES), _MOST_BLOB_BYTES)


def is_refusal(error: Exception) -> bool:
    """Return whether Spark has not begun a job because it has too few task slots for all of its tasks now."""
    return "CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT" in str(error)


def run_pipelined(context: Any, shuffle: TransportShuffle, beside: BesideOf, *, group: str, description: str) -> None:
    """Run one job with the tasks of a shuffle, until all have ended. Blocks; cancel the job group to end.

    Runs on a thread of its own, whose Spark properties it sets.

    Args:
        context: Spark's context.
        shuffle: The tasks.
        beside: Where the tasks of a subtask should run.
        group: The job group.
        description: What Spark's pages say about the job.
    """
    context.setJobGroup(group, description, interruptOnCancel=False)
    _hush_writers(context)
    with _our_python(context):
        job = _carried(context, shuffle, beside)
    job.collect()


def _hush_writers(context: Any) -> None:
    """Keep the warnings of Spark's shuffle out of its log: one a second from each task, as rows exceed its buffers.

    Rows are that large on purpose. The level is set in the driver's JVM, where the tasks run in local mode.
    """
    from py4j.protocol import Py4JError

    log4j = context._jvm.org.apache.logging.log4j
    try:
        log4j.core.config.Configurator.setLevel(_WRITER, log4j.Level.ERROR)
    except (Py4JError, TypeError) as error:  # a session may log with something else
        _log.debug("the warnings of Spark's shuffle could not be silenced: %s", error)


def start_workers(context: Any, count: int, *, group: str, description: str) -> None:
    """Have Spark start Python workers that the next tasks of a job find. Blocks; cancel the job group to end.

    In a session of the user's a worker takes a second of a core to start. Spark ends one that has had nothing to do for
    a minute. Runs on a thread of its own, whose Spark properties it sets.

    Args:
        context: Spark's context.
        count: How many; the session has as many free task slots.
        group: The job group.
        description: What Spark's pages say about the job.
    """
    context.setJobGroup(group, description, interruptOnCancel=False)
    with _our_python(context):
        workers = _planned(_empty_rows(context, [None] * count).mapPartitions(no_rows), NoRows())
    workers.collect()


def _carried(context: Any, shuffle: TransportShuffle, beside: BesideOf) -> Any:
    """Return an RDD without elements, whose computation carries the blobs of a shuffle to their subtasks."""
    from pyspark import RDD

    outlets = _empty_rows(context, [beside(hosted) for hosted in shuffle.outlets.subtasks])
    leaving = outlets.mapPartitionsWithIndex(shuffle.outlets)
    if shuffle.inlets is None:
        return _planned(leaving, NoRows())
    written = _planned(leaving, OutletRows(_row_bytes(context)))._jrdd.rdd()
    arrived = _pipelined(context, written, len(shuffle.inlets.subtasks))
    there = [beside(hosted) for hosted in shuffle.inlets.subtasks]
    if any(there):
        arrived = _placed(context, arrived, _empty_rows(context, there), len(there))
    return _planned(RDD(arrived, context, InletRows()).mapPartitionsWithIndex(shuffle.inlets), NoRows())


def _row_bytes(context: Any) -> int:
    """Return how large a row must be for Spark to pass it on at once, to the reading task and to Python."""
    network = _bytes_of(context, "spark.shuffle.streaming.networkBufferSize", "32k")
    return max(_bytes_of(context, "spark.buffer.size", "64k"), network)


def _bytes_of(context: Any, key: str, default: str) -> int:
    return int(context._jsc.sc().conf().getSizeAsBytes(key, default))


def _pipelined(context: Any, written: Any, partitions: int) -> Any:
    """Return the rows of a Java RDD of keys and rows, each in the partition of its key, by Spark's pipelined shuffle.

    The Java RDD that reads from a shuffle makes a blocking dependency, unless it has one already: it gets one of the
    pipelined kind here.
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
    dependencies = _dependencies_field(context)
    assert dependencies is not None, "`check_session` has looked"
    dependencies.setAccessible(True)
    dependencies.set(moved.rdd(), jvm.PythonUtils.toSeq([dependency]))
    return jvm.PythonRDD.valueOfPair(moved)


def _dependencies_field(context: Any) -> Any | None:
    """Return the private field of Spark's class `RDD` with the dependencies of an RDD, or None if there is none."""
    fields = context._jvm.java.lang.Class.forName("org.apache.spark.rdd.RDD").getDeclaredFields()
    return next((field for field in fields if field.getName() == "dependencies_"), None)


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
        context.pythonExec, context.environment = sys.executable, task_environment(context, FOR_TRANSPORT)
        try:
            yield
        finally:
            context.pythonExec, context.environment = python, environment
