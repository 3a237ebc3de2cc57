"""The slot processes of engines without Spark, and what such engines run on."""

from __future__ import annotations

from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies
from ekorn.engine.slots.link_certificate import certificate_for
from ekorn.engine.slots.local_pool import LocalSlotPool
from ekorn.engine.slots.registering_pool import RegisteringSlotPool
from ekorn.engine.slots.slot_handle import Heartbeat
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.engine.spark.task_side.launch_slots import launch_slots
from ekorn.graph.job_graph import JobGraph
from ekorn.slot_protocol.slot_config import DriverContact

__all__ = ["ThisMachine", "slot_processes"]


class ThisMachine:
    """The platform of engines that run slot processes without Spark."""

    description = "processes of this machine, without Spark"
    log_path = None
    task_slots = None

    def keep_log(self) -> None:
        return None

    def needed_task_slots(self, graph: JobGraph) -> int:
        return graph.slot_count


def slot_processes(
    count: int, heartbeat: Heartbeat | None = None, links: LinkSettings | None = None, *, registering: bool = False
) -> SlotPool:
    """Return slots of this machine.

    Args:
        count: The number of slots.
        heartbeat: When a silent slot is given up.
        links: Which connections of registering slots are encrypted.
        registering: Start the slots as on a cluster: they are not children of the driver, they register over TCP,
            and the driver cannot kill a slot that it gives up.
    """
    heartbeat = heartbeat or Heartbeat()
    if registering:
        return _registering_slots(count, heartbeat, links or LinkSettings())
    return LocalSlotPool(count, PythonDependencies(), heartbeat=heartbeat)


def _registering_slots(count: int, heartbeat: Heartbeat, links: LinkSettings) -> SlotPool:
    def launch(driver: DriverContact, numbers: list[int]) -> None:
        for _ in launch_slots(driver, numbers):
            pass

    certificate = certificate_for(links, "127.0.0.1")
    return RegisteringSlotPool(count, "127.0.0.1", launch, heartbeat, certificate=certificate)
