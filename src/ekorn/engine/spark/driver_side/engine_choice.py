"""Runs in the driver: starts Spark and the slots of a job, and chooses the engine that runs it."""

from __future__ import annotations

import logging
from typing import Any, Literal

from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies
from ekorn.engine.execution import reason_for_epochs
from ekorn.engine.slots.continuous_engine import ContinuousSlotEngine
from ekorn.engine.slots.epoch_engine import EpochSlotEngine
from ekorn.engine.slots.local_pool import LocalSlotPool
from ekorn.engine.slots.slot_calls import SlotCalls
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.driver_side.cluster import cluster_slots
from ekorn.engine.spark.driver_side.job_group import SparkJobGroup
from ekorn.engine.spark.driver_side.pipelined_job import SESSION_SETTINGS, check_session, set_up_session
from ekorn.engine.spark.driver_side.session import (
    expects_cluster,
    is_sized_by_us,
    running_context,
    spark_context,
)
from ekorn.engine.spark.driver_side.spark_flows import SparkFlows
from ekorn.engine.spark.driver_side.spark_levels import SparkLevels
from ekorn.engine.spark.driver_side.task_slots import (
    ReservedTaskSlots,
    UnfitSession,
    reserve_task_slots,
    task_count,
    task_slots_for,
)
from ekorn.errors import DeploymentError
from ekorn.graph.job_graph import JobGraph

__all__ = ["engine_on_spark"]

_log = logging.getLogger(__name__)


def engine_on_spark(
    graph: JobGraph,
    execution: Literal["epochs", "continuous", "auto"],
    configuration: dict[str, str],
    *,
    job_name: str,
    job_label: str,
    python: PythonDependencies,
    heartbeat: Heartbeat,
    links: LinkSettings,
    session: Any,
) -> EpochSlotEngine | ContinuousSlotEngine:
    """Start Spark unless it runs, and the slots; return the engine that `ekorn.execution` asks for.

    Raises:
        DeploymentError: Spark does not start, or the session cannot run the job continuously as the option demands.
    """
    reason = None if execution != "epochs" else "ekorn.execution is epochs"
    reason = reason or reason_for_epochs(graph)
    tasks = task_count(graph)
    task_slots = None
    if execution != "epochs" and session is None and running_context() is None:
        # Also for a job in BATCH: the next one may be able to run continuously in its session.
        configuration, task_slots = SESSION_SETTINGS | configuration, task_slots_for(tasks)
    context, pool = start_with_slots(
        graph.slot_count,
        configuration=configuration,
        python=python,
        heartbeat=heartbeat,
        links=links,
        session=session,
        task_slots=task_slots,
    )
    reserved: ReservedTaskSlots | None = None
    try:
        if reason is None:
            try:
                check_session(context)
                if is_sized_by_us(context):
                    set_up_session(context)
                reserved = reserve_task_slots(context, job_name, tasks)
                return continuous_engine(graph, context, pool, reserved, job_label=job_label, heartbeat=heartbeat)
            except UnfitSession as unfit:
                if execution == "continuous":
                    advice = f"{unfit.remedy}, or set ekorn.execution to epochs"
                    raise DeploymentError(f"the job cannot run continuously: {unfit}; {advice}") from None
                reason = f"{unfit}; to run it continuously, {unfit.remedy}"
        if execution != "epochs":
            _log.info("job %s runs in epochs: %s", job_name, reason)
        return epoch_engine(graph, context, pool, job_label=job_label, heartbeat=heartbeat)
    except BaseException:
        pool.shutdown()
        if reserved is not None:
            reserved.release()
        raise


def start_with_slots(
    count: int,
    *,
    configuration: dict[str, str],
    python: PythonDependencies,
    heartbeat: Heartbeat,
    links: LinkSettings,
    session: Any,
    task_slots: int | None = None,
) -> tuple[Any, SlotPool]:
    """Start Spark unless it runs, and the slots. Local slots start while Spark does; those of a cluster later."""
    local = None if expects_cluster(configuration) else LocalSlotPool(count, python, heartbeat=heartbeat)
    try:
        if local is not None:
            local.begin_start()
        context = spark_context(configuration, session, task_slots)
        if context.master.startswith("local"):
            return context, local or LocalSlotPool(count, python, heartbeat=heartbeat)
    except BaseException:
        if local is not None:
            local.shutdown()
        raise
    if local is not None:
        local.shutdown()
    return context, cluster_slots(count, context, python, heartbeat, links)


def epoch_engine(
    graph: JobGraph, context: Any, pool: SlotPool, *, job_label: str, heartbeat: Heartbeat
) -> EpochSlotEngine:
    """Make the engine of a job that runs in epochs on a Spark session, with slot processes beside it."""
    calls = SlotCalls(pool)
    jobs = SparkJobGroup(context, job_label, calls)
    return EpochSlotEngine(graph, calls, jobs, SparkLevels(jobs, calls), heartbeat.stall_timeout_s)


def continuous_engine(
    graph: JobGraph, context: Any, pool: SlotPool, reserved: ReservedTaskSlots, *, job_label: str, heartbeat: Heartbeat
) -> ContinuousSlotEngine:
    """Make the engine of a job that runs continuously on a Spark session, with slot processes beside it.

    Args:
        reserved: The task slots that the tasks of the job need. The engine releases them in the end.
    """
    calls = SlotCalls(pool)
    jobs = SparkJobGroup(context, job_label, calls, reserved)
    return ContinuousSlotEngine(graph, calls, jobs, SparkFlows(jobs, calls, reserved), heartbeat.stall_timeout_s)
