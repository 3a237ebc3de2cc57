"""Runs in the driver: gives a running session in local mode more task slots.

Spark fixes the number when the session starts. A new session would end what the program keeps in the old one: cached
data, data frames, and jobs that run beside. So the number changes in place. Spark's scheduler of local mode keeps it
twice: in `totalCores`, which bounds the jobs that it accepts, and as the free ones of its endpoint, which counts one
more with every task that is said to have ended.
"""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["add_task_slots"]

_log = logging.getLogger(__name__)
_NO_TASK = -1  # log4j2.properties keeps Spark's error about it out of the log
_SCHEDULER = "org.apache.spark.scheduler.local.LocalSchedulerBackend"


def add_task_slots(context: Any, count: int) -> int:
    """Add task slots to a session in local mode. Return how many it has then: as many as before if Spark differs.

    The caller sees to it that one thread does this at a time.
    """
    from py4j.protocol import Py4JError

    backend = context._jsc.sc().schedulerBackend()
    total = int(backend.totalCores())
    try:
        bound = context._jvm.java.lang.Class.forName(_SCHEDULER).getDeclaredField("totalCores")
        bound.setAccessible(True)
        ended = context._jvm.org.apache.spark.TaskState.FINISHED()
        nothing = context._jvm.java.nio.ByteBuffer.allocate(0)
        bound.set(backend, total + count)
    except Py4JError as error:  # the caller says what the session lacks
        _log.info("the Spark session keeps its %d task slots: %s", total, error)
        return total
    for _ in range(count):
        backend.statusUpdate(_NO_TASK, ended, nothing)
    _log.info("the Spark session has %d task slots now, before it had %d", total + count, total)
    return total + count
