"""A job goes to its engine, and a thread of the driver sees it through."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from tamias.clock import SystemClock
from tamias.config.job_settings import JobSettings
from tamias.driver.control import ControlDesk
from tamias.driver.job_handle import JobHandle, JobProgress
from tamias.driver.job_loop import EngineFactory, JobLoop
from tamias.engine.protocol import Engine
from tamias.errors import TamiasError
from tamias.functions.job_status import JobStatus
from tamias.graph.job_graph import JobGraph

_log = logging.getLogger(__name__)


def submit(graph: JobGraph, settings: JobSettings, make_engine: EngineFactory | None = None) -> JobHandle:
    """Start a job; the handle tells how it goes.

    What is wrong with the place it should run in (no Spark, no Java, a checkpoint directory that cannot be
    written to, a checkpoint that does not fit) is raised here, before any record is read.
    """
    handle = JobHandle(settings.job_id, settings.job_name, JobProgress(status=JobStatus.CREATED))
    loop = JobLoop(graph, settings, handle, make_engine or default_engine(settings), SystemClock())
    if settings.control or (settings.control is None and default_engine is on_spark):
        _open_desk(handle)
    threading.Thread(target=loop.run, name=f"tamias-{settings.job_name}", daemon=True).start()
    return handle


def _open_desk(handle: JobHandle) -> None:
    try:
        handle.before_end(ControlDesk(handle).close)
    except (TamiasError, OSError) as error:
        _log.warning("job %s cannot be reached by `tamias list` and the like: %s", handle.job_name, error)


def on_spark(settings: JobSettings) -> EngineFactory:
    """The engine of every job that is really run."""

    def make(graph: JobGraph) -> Engine:
        from tamias.engine.slots.pool import Heartbeat
        from tamias.engine.spark.spark_engine import SparkEngine

        configuration: Mapping[str, str] = settings.configuration
        heartbeat = Heartbeat(settings.heartbeat_interval_ms / 1000, settings.heartbeat_timeout_ms / 1000)
        label = str(settings.job_id)[:8]
        return SparkEngine(graph, dict(configuration), job_label=label, python=settings.python, heartbeat=heartbeat)

    return make


default_engine: Callable[[JobSettings], EngineFactory] = on_spark  # `testing.on_local_engine` puts another one here
