"""The slot processes of engines without Spark."""

from __future__ import annotations

from tamias.config.link_settings import LinkSettings
from tamias.config.python_dependencies import PythonDependencies
from tamias.engine.slots.link_certificate import certificate_for
from tamias.engine.slots.local_pool import LocalSlotPool
from tamias.engine.slots.registering_pool import RegisteringSlotPool
from tamias.engine.slots.slot_handle import Heartbeat
from tamias.engine.slots.slot_pool import SlotPool
from tamias.engine.spark.task_side.launch_slots import launch_slots
from tamias.slot.slot_config import DriverContact

__all__ = ["slot_processes"]


def slot_processes(count: int, heartbeat: Heartbeat, links: LinkSettings, *, registering: bool) -> SlotPool:
    """Return slots of this machine: children of the driver, or started as on a cluster."""
    return (_registering_slots if registering else _local_slots)(count, heartbeat, links)


def _local_slots(count: int, heartbeat: Heartbeat, links: LinkSettings) -> SlotPool:
    return LocalSlotPool(count, PythonDependencies(), heartbeat=heartbeat)


def _registering_slots(count: int, heartbeat: Heartbeat, links: LinkSettings) -> SlotPool:
    def launch(driver: DriverContact, numbers: list[int]) -> None:
        for _ in launch_slots(driver, numbers):
            pass

    certificate = certificate_for(links, "127.0.0.1")
    return RegisteringSlotPool(count, "127.0.0.1", launch, heartbeat, certificate=certificate)
