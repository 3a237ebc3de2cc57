"""Runs in the driver: the continuous engine on Spark. An attempt is one Spark job, a level one of its stages.

All stages run at the same time, for as long as the attempt lasts; a task is the conduit between Spark's shuffle and the
slot of one subtask. Epochs are marks in the stream, ordered and acknowledged over the connections to the slots.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

from tamias.engine.slots.continuous_engine import ContinuousSlotEngine
from tamias.engine.slots.slot_handle import Heartbeat
from tamias.engine.slots.slot_pool import SlotPool
from tamias.engine.spark.driver_side.on_spark import OnSpark
from tamias.engine.spark.driver_side.pipelined_job import run_pipelined
from tamias.engine.spark.driver_side.session import active_tasks
from tamias.engine.spark.driver_side.task_places import ReservedPlaces
from tamias.engine.spark.task_side.conduit_task import ConduitTask
from tamias.errors import DeploymentError, SlotLostError
from tamias.graph.job_graph import JobGraph
from tamias.slot.deployment import Deployment

__all__ = ["ContinuousSparkEngine"]

_log = logging.getLogger(__name__)
_END_S = 10.0  # for the tasks of an attempt that is over
_BREAK_S = 0.2  # for the tasks of an attempt that has failed: most end with their connections


class ContinuousSparkEngine(OnSpark, ContinuousSlotEngine):
    """Runs one job continuously on a Spark session, with slot processes beside it.

    Args:
        places: What the tasks of the job have been given of the session. Released at the end of the job.
    """

    def __init__(
        self,
        graph: JobGraph,
        context: Any,
        pool: SlotPool,
        *,
        job_label: str,
        heartbeat: Heartbeat,
        places: ReservedPlaces,
    ) -> None:
        super().__init__(graph, pool, heartbeat.stall_timeout_s)
        self._places = places
        self._begin_on_spark(context, job_label)
        self._flow: threading.Thread | None = None

    @property
    def description(self) -> str:
        return f"{super().description}, continuously"

    def _start_flow(self, deployment: Deployment) -> None:
        arguments = deployment.attempt, list(self._tasks(deployment))
        self._flow = threading.Thread(target=self._run_flow, args=arguments, name="spark-flow", daemon=True)
        self._flow.start()

    def _run_flow(self, attempt: int, tasks: list[ConduitTask]) -> None:
        description = f"{self._graph.name}: attempt {attempt + 1}"
        error: Exception
        try:
            run_pipelined(self._context, tasks, group=self._group, description=description)
            return
        except Exception as caught:  # py4j and Spark raise many types; each ends the attempt
            error = caught
        if self._flow is threading.current_thread():  # else `_end_flow` has cancelled the job
            explained = self._explained(error)
            assert isinstance(explained, Exception)
            self._fail(explained)
            self.wake()

    def _end_flow(self, *, in_order: bool) -> None:
        """End the Spark job of the attempt: its tasks end by themselves after the last record, else with the job."""
        flow, self._flow = self._flow, None
        if flow is None:
            return
        flow.join(timeout=_END_S if in_order and not self._cancelled.is_set() else _BREAK_S)
        if flow.is_alive():
            self._cancel_jobs()
            flow.join(timeout=_END_S)
        self._wait_for_places()

    def _wait_for_places(self) -> None:
        """Wait until the tasks of the job that has ended occupy no places: the next attempt needs them all."""
        deadline = time.monotonic() + _END_S
        while not self._cancelled.is_set() and time.monotonic() < deadline:
            try:
                if not active_tasks(self._context, self._group):
                    return
            except Exception:  # the session is gone: the next attempt says so
                return
            time.sleep(0.02)

    def _tasks(self, deployment: Deployment) -> Iterator[ConduitTask]:
        routes = self._routes()
        last = len(self._partitions) - 1
        levels = {e.id: (self._level_of_source(e.id), routes[e.id].level) for e in self._graph.exchanges}
        for level, partitions in enumerate(self._partitions):
            yield ConduitTask(
                level=level,
                subtasks=tuple(self._hosted(vertex, index) for vertex, index in partitions),
                next_partitions=len(self._partitions[level + 1]) if level < last else 1,
                routes={e: routes[e] for e, (source, _) in levels.items() if source == level},
                secret=self.pool.secret,
                attempt=deployment.attempt,
                passes_rows_on=any(source < level < target for source, target in levels.values()),
            )

    def _cancel_levels(self) -> None:
        self._cancel_for_good()
        self._stop(DeploymentError("the job was cancelled"))

    def _waits_for_resources(self) -> bool:
        """Return whether some tasks of the attempt have not got a place yet."""
        try:
            waits = active_tasks(self._context, self._group) < len(self._subtasks)
        except Exception:  # the session is gone: ending the attempt does no harm
            return False
        if waits:
            _log.warning("a job waits for Spark to give its tasks places; job group %s", self._group)
        return waits

    def _slot_lost(self, number: int) -> None:
        self._stop(SlotLostError(number, "it was given up"))

    def _epoch_stalled(self) -> None:
        self._stop(DeploymentError("the epoch has stalled"))

    def shutdown(self) -> None:
        """End the slots and the Spark job. The session stays for the next job."""
        try:
            super().shutdown()
            self._end_on_spark()
        finally:
            self._places.release()
