"""What the answers about slots have of their memory: Flink's parts, resources and metrics."""

from __future__ import annotations

from typing import Any

from ekorn.config.settings.memory_settings import MemoryParts
from ekorn.rest.known_jobs import KnownJob
from ekorn.slot_protocol.diagnostics import SlotVitals

__all__ = ["NO_RESOURCE", "memory_metrics", "memory_of", "resource_of"]

NO_RESOURCE: dict[str, Any] = {
    "cpuCores": 0.0,
    "taskHeapMemory": 0,
    "taskOffHeapMemory": 0,
    "managedMemory": 0,
    "networkMemory": 0,
    "extendedResources": {},
}


def resource_of(job: KnownJob, slot: int) -> dict[str, Any]:
    """Return the resources of a slot; 0 where they are not bounded."""
    memory = job.statistics.graph.memory_of(slot)
    parts = memory.parts or MemoryParts(managed=memory.managed_bytes or 0)
    return NO_RESOURCE | {
        "cpuCores": memory.cpu_cores or 0.0,
        "taskHeapMemory": parts.task_heap,
        "taskOffHeapMemory": parts.task_off_heap,
        "managedMemory": parts.managed,
        "networkMemory": parts.network,
    }


def memory_of(job: KnownJob, slot: int) -> dict[str, int | None]:
    """Return the parts of the memory of a slot, under Flink's names; null if they are not bounded."""
    memory = job.statistics.graph.memory_of(slot)
    parts = memory.parts
    found = parts or MemoryParts()
    shown = {
        "frameworkHeap": found.framework_heap,
        "taskHeap": found.task_heap,
        "frameworkOffHeap": found.framework_off_heap,
        "taskOffHeap": found.task_off_heap,
        "networkMemory": found.network,
        "managedMemory": found.managed,
        "jvmMetaspace": found.metaspace,
        "jvmOverhead": found.overhead,
        "totalFlinkMemory": found.total_flink,
        "totalProcessMemory": found.total_process,
    }
    if parts is not None:
        return dict(shown)
    return dict.fromkeys(shown) | {"managedMemory": memory.managed_bytes}


def memory_metrics(job: KnownJob, slot: int, vitals: SlotVitals | None) -> dict[str, Any]:
    """Return Flink's metrics of the memory of a slot, as far as it is bounded."""
    memory = job.statistics.graph.memory_of(slot)
    found: dict[str, Any] = {}
    if memory.process_bytes is not None:
        found["Status.JVM.Memory.Heap.Max"] = memory.process_bytes
    if memory.managed_bytes:
        found["Status.Flink.Memory.Managed.Total"] = memory.managed_bytes
    if vitals is not None and vitals.rocksdb_cache_bytes is not None:
        found["Status.Flink.Memory.Managed.Used"] = vitals.rocksdb_cache_bytes
    return found
