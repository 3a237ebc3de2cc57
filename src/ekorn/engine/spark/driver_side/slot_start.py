"""Runs in the driver: chooses where slots run that are needed beside Spark jobs."""

from __future__ import annotations

from typing import Any

from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies
from ekorn.engine.slots.idle_pools import IDLE_POOLS, PoolKind
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.driver_side.cluster import cluster_slots


def slots_beside(
    context: Any, count: int, python: PythonDependencies, heartbeat: Heartbeat, links: LinkSettings
) -> SlotPool:
    """Return a pool of slots on the machines that run Spark's tasks. On this machine idle ones are used again."""
    if not context.master.startswith("local"):
        return cluster_slots(count, context, python, heartbeat, links)
    return IDLE_POOLS.take(PoolKind.of_this_driver(count, python, heartbeat))
