"""Runs in the driver: one Spark job whose stages run at the same time, joined by Spark's pipelined shuffle.

Spark 4.3 has a shuffle that pushes rows from writing to reading tasks as they are produced. A plan gets it by copying
its exchanges with `pipelined` set; Spark then schedules all stages of the job at once. Rows pass with their address, so
`repartitionById` sends each to the partition it names.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tamias.engine.spark.driver_side.task_places import UnfitSession
from tamias.engine.spark.task_side.conduit_task import SCHEMA, ConduitTask

__all__ = ["SESSION_SETTINGS", "check_session", "run_pipelined"]

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
_PROPERTIES = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "64",
}
_OLDEST = (4, 3)
_lock = threading.Lock()


def check_session(context: Any) -> None:
    """Check that a session can run the stages of a job at the same time.

    Raises:
        UnfitSession: It cannot.
    """
    if tuple(int(part) for part in context.version.split(".")[:2]) < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise UnfitSession(f"Spark has version {context.version}; its stages run at the same time since {oldest}")
    if (context.getConf().get(_NEEDED) or "false").lower() != "true":
        raise UnfitSession(f"the Spark session was started without {_NEEDED}=true")


def run_pipelined(context: Any, tasks: Sequence[ConduitTask], *, group: str, description: str) -> None:
    """Run one job with a stage for each level, until all of its tasks have ended. Blocks; cancel the job group to end.

    Runs on a thread of its own, whose Spark properties it sets.
    """
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    context.setJobGroup(group, description, interruptOnCancel=False)
    for key, value in _PROPERTIES.items():
        context.setLocalProperty(key, value)
    session = SparkSession(context).newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)
    first = len(tasks[0].subtasks)
    with _our_python(context):
        frame = session.range(0, first, 1, first).mapInArrow(tasks[0], SCHEMA)
        for task in tasks[1:]:
            frame = frame.repartitionById(len(task.subtasks), F.col("via")).mapInArrow(task, SCHEMA)
        plan = _pipelined(context, frame._jdf.queryExecution().executedPlan())
    plan.executeCollectPublic()


def _pipelined(context: Any, node: Any) -> Any:
    """Return a plan whose exchanges are pipelined."""
    children = node.children()
    below = [_pipelined(context, children.apply(i)) for i in range(children.size())]
    if below:
        node = node.withNewChildren(context._jvm.PythonUtils.toSeq(below))
    if node.getClass().getSimpleName() == "ShuffleExchangeExec":
        parts = node.outputPartitioning(), node.child(), node.shuffleOrigin(), node.advisoryPartitionSize()
        node = node.copy(*parts, True)
    return node


@contextmanager
def _our_python(context: Any) -> Iterator[None]:
    """Let the tasks of plans that are made in this block run with the driver's Python, in local mode."""
    if not context.master.startswith("local"):
        yield
        return
    with _lock:
        python, environment = context.pythonExec, context.environment
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        context.pythonExec, context.environment = sys.executable, environment | {"PYTHONPATH": path}
        try:
            yield
        finally:
            context.pythonExec, context.environment = python, environment
