"""Runs in the driver: the flows of continuous jobs on Spark. An attempt of a region is some Spark jobs.

Each of them has the tasks of one shuffle. All tasks run at the same time, for as long as the attempt lasts; a task
carries blobs between Spark's shuffle and the slot of one subtask. Epochs are marks in the stream, ordered and
acknowledged over the connections to the slots.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

from ekorn.engine.protocol import Failure
from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.spark.driver_side.job_group import SparkJobGroup, hosted_subtask
from ekorn.engine.spark.driver_side.pipelined_job import (
    blob_bytes_for,
    is_refusal,
    rows_in_flight,
    run_pipelined,
    start_workers,
)
from ekorn.engine.spark.driver_side.session import (
    active_tasks,
    first_line_of,
    kill_python_processes,
    unended_tasks,
)
from ekorn.engine.spark.driver_side.task_slots import ReservedTaskSlots, UnfitSession, task_count, tasks_of
from ekorn.engine.spark.driver_side.transport_layout import TransportShuffle, transport_shuffles
from ekorn.engine.spark.driver_side.worker_daemon import FOR_TRANSPORT
from ekorn.engine.spark.task_side.level_task import HostedSubtask
from ekorn.errors import DeploymentError, SparkSessionLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph, VertexId
from ekorn.graph.regions import regions
from ekorn.slot_protocol.deployment import Deployment

__all__ = ["SparkFlows"]

_log = logging.getLogger(__name__)
_TASK_SLOTS_S = 60.0  # for a new executor in place of a lost one; then the attempt fails, and reactive mode may shrink
_LOOK_S = 0.1  # how often such task slots are looked for
_END_S = 10.0  # for the tasks of an attempt that is over
_WORKERS_S = 20.0  # for the start of Python workers
_KILL_S = 5.0  # for Spark to kill the Python worker of a cancelled task: it begins to after 2 s
_BREAK_S = 0.2  # for the tasks of an attempt that has failed: most end with their connections


class SparkFlows:
    """Carries the blobs of a continuous job by Spark jobs.

    Args:
        jobs: The Spark jobs of the job. Each region has a group of its own if there are several.
        calls: The slots of the job.
        reserved: The task slots that the job has reserved in the session. Released at the end of the job.
        task_slots_s: How long an attempt waits for the task slots of a lost executor.

    Attributes:
        on_failed: Called from any thread with an error, and with the subtasks that have failed by it.
    """

    def __init__(
        self, jobs: SparkJobGroup, calls: SlotCalls, reserved: ReservedTaskSlots, task_slots_s: float = _TASK_SLOTS_S
    ) -> None:
        self.on_failed: Callable[[Exception, frozenset[SubtaskId]], None] = lambda error, subtasks: None
        self._jobs = jobs
        self._context = jobs.context
        self._pool = calls.pool
        self._cancelled = calls.cancelled
        self._reserved = reserved
        self._task_slots_s = task_slots_s
        self._rows_in_flight = rows_in_flight(jobs.context)
        self._flows: dict[int, list[threading.Thread]] = {}  # by region: one for each of its Spark jobs

    def lay_out(self, graph: JobGraph) -> None:
        self._graph = graph
        self._regions = regions(graph)

    # --------------------------------------------------------------------------------------------------- resources

    def reserve(self, graph: JobGraph) -> None:
        """Reserve task slots for the tasks of both attempts' graphs.

        Raises:
            DeploymentError: The session has too few task slots.
        """
        self._resize(max(task_count(self._graph), task_count(graph)))

    def fit(self, deployment: Deployment) -> Deployment:
        """Reserve task slots for a deployment, and limit its blobs to what Spark has in flight at a time."""
        graph = deployment.graph
        self._resize(task_count(graph))
        readers = sum(vertex.parallelism for vertex in graph.vertices if graph.inputs_of(vertex.id))
        return replace(deployment, most_blob_bytes=blob_bytes_for(self._rows_in_flight, readers))

    def _resize(self, tasks: int) -> None:
        try:
            self._reserved.resize(self._context, tasks)
        except UnfitSession as unfit:
            raise DeploymentError(str(unfit)) from None

    def warm_up(self, graph: JobGraph) -> None:
        """Start the Python workers that a graph needs beyond those that run, in task slots that were reserved."""
        count, group = task_count(graph) - task_count(self._graph), f"{self._jobs.name}-workers"
        if count <= 0:
            return

        def start() -> None:
            try:
                start_workers(self._context, count, group=group, description=f"{graph.name}: workers for a rescale")
            except Exception as error:  # py4j and Spark raise many types; the workers start at the switch then
                _log.info("workers for a rescale could not be started: %s", first_line_of(error))

        thread = threading.Thread(target=start, name="spark-workers", daemon=True)
        thread.start()
        thread.join(_WORKERS_S)
        if thread.is_alive():  # tasks of other jobs are in the task slots
            self._jobs.cancel_running(group)

    def await_resources(self, graph: JobGraph) -> Failure | None:
        """Wait until the session has a task slot for every task of a graph: Spark refuses a job with fewer at once.

        Those of a lost executor are missing until Spark has replaced the executor.
        """
        deadline, waits = time.monotonic() + self._task_slots_s, False
        while (unfit := self._unfit_for(graph)) is not None:
            if self._cancelled.is_set():
                return Failure(DeploymentError("the job was cancelled"))
            if time.monotonic() >= deadline:
                why = f"{unfit}; the job got no more task slots within {self._task_slots_s:.0f} s; {unfit.remedy}"
                return Failure(DeploymentError(why))
            if not waits:
                waits = True
                _log.warning(
                    "job %s waits up to %.0f s for task slots of Spark: %s", graph.name, self._task_slots_s, unfit
                )
            self._cancelled.wait(_LOOK_S)
        return None

    def _unfit_for(self, graph: JobGraph) -> UnfitSession | None:
        """Return why the session cannot run all tasks of a graph now."""
        try:
            self._reserved.check(self._context, task_count(graph))
        except UnfitSession as unfit:
            return unfit
        except Exception:  # the session is gone: the deployment says so
            return None
        return None

    def waits_for_resources(self, running: Collection[SubtaskId]) -> bool:
        """Return whether some tasks of the attempt have not got a task slot yet."""
        try:
            active = sum(active_tasks(self._context, group) for group in self._groups())
        except Exception:  # the session is gone: ending the attempt does no harm
            return False
        waits = active < sum(tasks_of(self._graph, VertexId(subtask.vertex)) for subtask in running)
        if waits:
            _log.warning("a job waits for task slots of Spark; job group %s", self._jobs.name)
        return waits

    # ------------------------------------------------------------------------------------------------------- flows

    def start(self, region: int, attempt: int) -> None:
        hosted = partial(hosted_subtask, self._graph, self._regions, self._pool)
        shuffles = transport_shuffles(
            self._graph, region, self._regions, hosted=hosted, secret=self._pool.secret, attempt=attempt
        )
        self._flows[region] = [
            threading.Thread(target=self._run_flow, args=(region, attempt, shuffle), name="spark-flow", daemon=True)
            for shuffle in shuffles
        ]
        for flow in self._flows[region]:
            flow.start()

    def _run_flow(self, region: int, attempt: int, shuffle: TransportShuffle) -> None:
        description = f"{self._graph.name}: attempt {attempt + 1}"
        if len(self._groups()) > 1:
            description += f", region {region}"
        description += f", from {shuffle.name}"
        error: Exception
        try:
            self._run_when_admitted(region, shuffle, description)
            return
        except Exception as caught:  # py4j and Spark raise many types; each ends the attempt of the region
            error = caught
        if self._is_current(region):  # else `end` has cancelled the job
            explained = self._jobs.explained(error)
            is_confined = not isinstance(explained, SparkSessionLostError)
            self.on_failed(explained, self._in_region(region) if is_confined else frozenset())

    def _run_when_admitted(self, region: int, shuffle: TransportShuffle, description: str) -> None:
        """Run a Spark job. If Spark refuses it for lack of task slots, wait for them: other regions go on meanwhile.

        The missing ones are those of a lost executor, or tasks of other jobs of the session are in them.
        """
        deadline, waits = time.monotonic() + self._task_slots_s, False
        while True:
            try:
                return self._run_job(region, shuffle, description)
            except Exception as error:  # py4j and Spark raise many types
                ends = self._cancelled.is_set() or not self._is_current(region) or time.monotonic() >= deadline
                if ends or not is_refusal(error):
                    raise
                if not waits:
                    waits = True
                    why = first_line_of(error)
                    _log.warning(
                        "%s waits up to %.0f s for task slots of Spark: %s", description, self._task_slots_s, why
                    )
            self._cancelled.wait(_LOOK_S)

    def _run_job(self, region: int, shuffle: TransportShuffle, description: str) -> None:
        group = self._group_of(region)
        run_pipelined(self._context, shuffle, self._beside, group=group, description=description)

    def _is_current(self, region: int) -> bool:
        """Return whether this thread runs a Spark job of a region whose attempt has not been ended."""
        return threading.current_thread() in self._flows.get(region, ())

    def _beside(self, hosted: HostedSubtask) -> str | None:
        return self._pool.slots[hosted.slot].beside

    def _in_region(self, region: int) -> frozenset[SubtaskId]:
        return frozenset(subtask for subtask, number in self._regions.items() if number == region)

    def _group_of(self, region: int) -> str:
        """Return the job group of a region: the one of the job if it has a single region."""
        return self._jobs.name if len(set(self._regions.values())) == 1 else f"{self._jobs.name}-region-{region}"

    def _groups(self) -> list[str]:
        return [self._group_of(region) for region in sorted(set(self._regions.values()))]

    def end(self, ended: Collection[int], *, in_order: bool) -> None:
        """End the Spark jobs of regions: their tasks end by themselves after the last record, else with the job."""
        flows = {region: flows for region in ended if (flows := self._flows.pop(region, None)) is not None}
        if not flows:
            return
        _join(flows, _END_S if in_order and not self._cancelled.is_set() else _BREAK_S)
        late = {region: threads for region, threads in flows.items() if any(flow.is_alive() for flow in threads)}
        for region in late:
            self._jobs.cancel_running(self._group_of(region))
        _join(late, _END_S)
        self._wait_for_task_slots([self._group_of(region) for region in flows])

    def _wait_for_task_slots(self, groups: list[str]) -> None:
        """Wait until the tasks of jobs that have ended occupy no task slots: the next attempt needs them all.

        Spark kills the Python worker of a cancelled task that does not end. It cannot if the daemon that forks the
        workers hangs: an embedded Spark then loses all of its Python processes, and starts a new daemon by itself. On
        a cluster the executor ends (`spark.task.reaper.killTimeout`), and Spark starts another one.
        """
        began, has_killed = time.monotonic(), not self._jobs.is_local
        while not self._cancelled.is_set() and (waited_s := time.monotonic() - began) < _END_S:
            try:
                hanging = unended_tasks(self._context, groups)
                if not hanging:
                    return
                if waited_s >= _KILL_S and not has_killed:
                    has_killed = True
                    _log.warning(
                        "%d cancelled tasks of Spark go on after %.0f s: its Python processes are killed; job group %s",
                        hanging, _KILL_S, self._jobs.name,
                    )  # fmt: skip
                    kill_python_processes(self._context, FOR_TRANSPORT)
            except Exception:  # the session is gone: the next attempt says so
                return
            time.sleep(0.02)

    def cancel(self) -> None:
        for group in self._groups():
            self._jobs.cancel_for_good(group)
        self.on_failed(DeploymentError("the job was cancelled"), frozenset())

    def close(self) -> None:
        """Leave the session, and the task slots that were reserved, to other jobs."""
        try:
            self._jobs.close()
        finally:
            self._reserved.release()


def _join(flows: dict[int, list[threading.Thread]], timeout_s: float) -> None:
    """Wait until the Spark jobs of regions have ended, but no longer than the timeout for all of them."""
    deadline = time.monotonic() + timeout_s
    for flow in (flow for threads in flows.values() for flow in threads):
        flow.join(timeout=max(0.0, deadline - time.monotonic()))
