"""Runs in the driver: cancels Spark jobs on purpose without the stack traces that Spark logs for cancelled writes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from ekorn.engine.spark.driver_side.session import unended_tasks

__all__ = ["cancel_quietly"]

_LAST_TASKS_S = 5.0
_WAIT_S = 0.05
# Each logs a stack trace, or a line, for a write that is cancelled or interrupted.
_LOGGERS = (
    "org.apache.spark.sql.execution.datasources.BasicWriteTaskStatsTracker",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
    "org.apache.spark.util.Utils",
    "org.apache.hadoop.util.Shell",
    "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter",
)


def cancel_quietly(context: Any, group: str, cancel: Callable[[], None]) -> None:
    """Call what cancels the jobs of a group, and wait for the end of their tasks, at most for some seconds."""
    with _silenced(context):
        cancel()
        limit = time.monotonic() + _LAST_TASKS_S
        while unended_tasks(context, {group}) and time.monotonic() < limit:
            time.sleep(_WAIT_S)


@contextlib.contextmanager
def _silenced(context: Any) -> Iterator[None]:
    """Turn the loggers off. The user's session may log by another library than Log4j: then nothing is changed."""
    before: dict[str, str] = {}
    with contextlib.suppress(Exception):  # Py4J raises errors of several classes
        log4j = context._jvm.org.apache.logging.log4j
        for name in _LOGGERS:
            before[name] = log4j.LogManager.getLogger(name).getLevel().name()
            log4j.core.config.Configurator.setLevel(name, "OFF")
    try:
        yield
    finally:
        with contextlib.suppress(Exception):
            for name, level in before.items():
                log4j.core.config.Configurator.setLevel(name, level)
