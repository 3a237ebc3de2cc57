"""Runs in the driver: one Spark job whose stages run at the same time, joined by Spark's pipelined shuffle.

Spark 4.3 has a shuffle that pushes rows from writing to reading tasks as they are produced. A plan gets it by copying
its exchanges with `pipelined` set; Spark then schedules all stages of the job at once. Rows pass with their address, so
`repartitionById` sends each to the partition it names.

On a cluster a task prefers the host of its slot. Spark runs a task where its data is, so each partition begins with an
empty row that is said to be there.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tamias.engine.spark.driver_side.task_places import UnfitSession
from tamias.engine.spark.driver_side.worker_daemon import FOR_CONDUITS, task_environment
from tamias.engine.spark.task_side.conduit_task import LEAST_ROW_BYTES, SCHEMA, ConduitTask, no_rows

__all__ = ["SESSION_SETTINGS", "check_session", "run_pipelined", "session_of", "start_workers"]

# Settings of the session, which cannot be changed while it runs.
SESSION_SETTINGS = {
    "spark.python.udf.pipelined.enabled": "true",  # else Spark reads nothing from Python while it waits for input
    "spark.python.unix.domain.socket.enabled": "true",  # TCP to the worker costs up to 40 ms
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "1",  # a row waits so long for others; 50 by default
    # What is on its way from a task and to one. Spark counts a row as one buffer of 32 kB, and a blob has up to 2 MB.
    "spark.shuffle.streaming.writerMaxMemory": "1048576",
    "spark.shuffle.streaming.readerMaxMemory": "8388608",
}
_NEEDED = "spark.python.udf.pipelined.enabled"
# The plan runs outside of Spark's SQL execution: its settings reach the tasks only as properties of the thread.
# Spark hands a batch of rows to Python when it is large enough and the next row has come. A row with a blob is large
# enough alone. An empty row, which follows each, is not: it waits for the next blob, and costs Python no batch.
_PROPERTIES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(LEAST_ROW_BYTES),
    "spark.sql.execution.pandas.udf.buffer.size": "64",
}
_OLDEST = (4, 3)
_lock = threading.Lock()
_session_lock = threading.Lock()

Hosts = Sequence[str | None]  # where the tasks of a level should run, by partition; None: anywhere


def check_session(context: Any) -> None:
    """Check that a session can run the stages of a job at the same time.

    Raises:
        UnfitSession: It cannot.
    """
    if tuple(int(part) for part in context.version.split(".")[:2]) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        reason = f"Spark has version {context.version}; its stages run at the same time since {oldest}"
        raise UnfitSession(reason, f"install pyspark {oldest} or newer")
    if (context.getConf().get(_NEEDED) or "false").lower() != "true":
        settings = ", ".join(f"{key}={value}" for key, value in SESSION_SETTINGS.items())
        remedy = f"start it with {settings}, or let tamias start it"
        raise UnfitSession(f"the Spark session was started without {_NEEDED}=true", remedy)


def run_pipelined(
    context: Any, tasks: Sequence[ConduitTask], hosts: Sequence[Hosts], *, group: str, description: str
) -> None:
    """Run one job with a stage for each level, until all of its tasks have ended. Blocks; cancel the job group to end.

    Runs on a thread of its own, whose Spark properties it sets.

    Args:
        context: Spark's context.
        tasks: The levels.
        hosts: Where the tasks of each level should run.
        group: The job group.
        description: What Spark's pages say about the job.
    """
    from pyspark.sql import functions as F

    session = _session_of_thread(context, group, description)
    with _our_python(context):
        frame = _beginning(session, hosts[0]).mapInArrow(tasks[0], SCHEMA)
        for task in tasks[1:]:
            frame = frame.repartitionById(len(task.subtasks), F.col("via")).mapInArrow(task, SCHEMA)
        plan = _pipelined(session, frame._jdf.queryExecution().executedPlan(), iter(hosts[1:]))
    plan.executeCollectPublic()


def start_workers(context: Any, count: int, *, group: str, description: str) -> None:
    """Have Spark start Python workers that the next tasks of a job find. Blocks; cancel the job group to end.

    In a session of the user's a worker takes a second of a core to start. Spark ends one that has had nothing to do for
    a minute. Runs on a thread of its own, whose Spark properties it sets: workers serve only tasks with the same ones.

    Args:
        context: Spark's context.
        count: How many; the session has places for as many tasks beside those that run.
        group: The job group.
        description: What Spark's pages say about the job.
    """
    session = _session_of_thread(context, group, description)
    with _our_python(context):
        plan = session.range(0, count, 1, count).mapInArrow(no_rows, SCHEMA)._jdf.queryExecution().executedPlan()
    plan.executeCollectPublic()


def _session_of_thread(context: Any, group: str, description: str) -> Any:
    """Return a session for the plan of a job, and set the Spark properties of this thread."""
    context.setJobGroup(group, description, interruptOnCancel=False)
    for key, value in _PROPERTIES.items():
        context.setLocalProperty(key, value)
    session = session_of(context).newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    return session


def session_of(context: Any) -> Any:
    """Return a `SparkSession` with this context. The first one takes the JVM two seconds. Thread-safe."""
    from pyspark.sql import SparkSession

    with _session_lock:
        return SparkSession(context)


def _beginning(session: Any, hosts: Hosts) -> Any:
    """Return the input of the first level, which reads none: a partition for each task."""
    if not any(hosts):
        return session.range(0, len(hosts), 1, len(hosts))
    unused = session.range(0)
    return type(unused)(_empty_rows(session, hosts), session)


def _pipelined(session: Any, node: Any, hosts: Iterator[Hosts]) -> Any:
    """Return a plan whose exchanges are pipelined. Those of the first levels stand at the bottom."""
    children = node.children()
    below = [_pipelined(session, children.apply(i), hosts) for i in range(children.size())]
    if below:
        node = node.withNewChildren(session._jvm.PythonUtils.toSeq(below))
    if node.getClass().getSimpleName() == "ShuffleExchangeExec":
        parts = node.outputPartitioning(), node.child(), node.shuffleOrigin(), node.advisoryPartitionSize()
        node = _placed(session, node.copy(*parts, True), next(hosts))
    return node


def _placed(session: Any, exchange: Any, hosts: Hosts) -> Any:
    """Return an exchange whose readers prefer hosts: before what they read comes a row that is there already."""
    if not any(hosts):
        return exchange
    jvm, spark = session._jvm, session.sparkContext._jsc.sc()
    there = _empty_rows(session, hosts).queryExecution().executedPlan().execute()
    # Partition by partition, and not one after the other as in a plain union.
    both = jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD(
        spark, jvm.PythonUtils.toSeq([there, exchange.execute()]), len(hosts), _class_tag(session)
    )
    shape = exchange.output(), both, "rows", exchange.outputPartitioning(), exchange.outputOrdering()
    return jvm.org.apache.spark.sql.execution.RDDScanExec(*shape, jvm.scala.Option.empty())


def _empty_rows(session: Any, hosts: Hosts) -> Any:
    """Return Spark's own data frame with an empty row on each host, in a partition of its own."""
    jvm, spark = session._jvm, session.sparkContext._jsc.sc()
    fields = session.sparkContext._gateway.new_array(jvm.java.lang.Object, 2)
    fields[0], fields[1] = 0, b""
    row = jvm.org.apache.spark.sql.RowFactory.create(fields)
    to_seq = jvm.PythonUtils.toSeq
    rows = to_seq([jvm.scala.Tuple2(row, to_seq([host] if host is not None else [])) for host in hosts])
    schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(SCHEMA)
    return session._jsparkSession.createDataFrame(spark.makeRDD(rows, _class_tag(session)).toJavaRDD(), schema)


def _class_tag(session: Any) -> Any:
    return session.sparkContext._jsc.emptyRDD().classTag()


@contextmanager
def _our_python(context: Any) -> Iterator[None]:
    """Let the tasks of plans that are made in this block run with the driver's Python, in local mode."""
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
