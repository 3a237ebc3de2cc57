"""What the answers about slots have beyond Flink's fields: the job, the process, its memory, its subtasks."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ekorn.errors import SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.rest.known_jobs import KnownJob, flink_id
from ekorn.slot_protocol.diagnostics import SlotVitals, StateSize

__all__ = ["own_fields", "vitals_of"]

_MOST_ASKED = 16  # slots that are asked in parallel


def vitals_of(slots: Sequence[tuple[KnownJob, int]]) -> list[SlotVitals | None]:
    """Ask slots what their processes use; None for a slot that does not answer. A silent slot delays no other."""
    if len(slots) < 2:
        return [_vitals(each) for each in slots]
    with ThreadPoolExecutor(min(len(slots), _MOST_ASKED), "ekorn-slot-vitals") as several:
        return list(several.map(_vitals, slots))


def _vitals(asked: tuple[KnownJob, int]) -> SlotVitals | None:
    job, slot = asked
    try:
        return job.view.slot_vitals(slot)
    except SlotLostError:
        return None  # shown as a slot that does not answer


def own_fields(job: KnownJob, slot: int, pid: int, vitals: SlotVitals | None) -> dict[str, Any]:
    """Return the field `slot` of an answer about a slot. What only its process knows is null if it does not answer."""
    return {
        "jobId": job.job_id,
        "jobName": job.view.job_name,
        "number": slot,
        "host": None if vitals is None else vitals.host,
        "pid": pid if vitals is None else vitals.pid,
        "residentMemory": None if vitals is None else vitals.resident_bytes,
        "rocksDbCache": None if vitals is None else vitals.rocksdb_cache_bytes,
        "memoryLimit": None if vitals is None else vitals.limit_bytes,
        "managedMemory": None if vitals is None else vitals.managed_bytes,
        "states": [] if vitals is None else [_state(each) for each in vitals.states],
        "threads": None if vitals is None else vitals.threads,
        "cpuTime": None if vitals is None else vitals.cpu_ms,
        "subtasks": _subtasks(job, slot),
    }


def _state(state: StateSize) -> dict[str, Any]:
    return {
        "name": state.name,
        "operator": state.operator_name,
        "operatorId": state.operator_id,
        "bytes": state.size_bytes,
        "entries": state.entries,
    }


def _subtasks(job: KnownJob, slot: int) -> list[dict[str, Any]]:
    """Return the subtasks of a slot in the order of the job graph."""
    lives = job.statistics.lives.all()
    return [
        {"vertexId": flink_id(vertex), "name": vertex.name, "subtask": index, "status": life.state}
        for vertex in job.vertices
        for index in range(vertex.parallelism)
        if (life := lives.get(SubtaskId(vertex.id, index))) is not None and life.slot == slot
    ]
