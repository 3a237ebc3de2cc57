"""Jobs of values: what answers are made of, without a driver. Vertices have the ids that Flink's form would have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ekorn.clock import ManualClock
from ekorn.config.settings.memory_settings import SlotMemory
from ekorn.functions.results.job_status import JobStatus
from ekorn.web.http_messages import Request

JOB = "0" * 31 + "7"


def vertex(number: int, parallelism: int = 2, **more: Any) -> Any:
    return SimpleNamespace(
        id=number,
        parallelism=parallelism,
        name=f"vertex {number}",
        operators=(SimpleNamespace(id=f"op{number}"),),
        **more,
    )


def job(*vertices: Any, status: JobStatus = JobStatus.RUNNING, job_id: str = JOB, **statistics: Any) -> Any:
    """Return a known job; further keywords are its statistics."""
    graph = SimpleNamespace(
        vertices=vertices,
        slot_count=2,
        slot_of=lambda of, index: index,
        settings=SimpleNamespace(batch=False, in_slots=True, object_reuse=True, job_parameters={}),
        memory_of=lambda slot: SlotMemory(),
    )
    found = SimpleNamespace(
        job_id=job_id,
        status=status,
        vertices=vertices,
        statistics=SimpleNamespace(graph=graph, clock=ManualClock(10_000), **statistics),
        view=SimpleNamespace(),
    )
    found.subtask = lambda vertex_id, index: SimpleNamespace(subtask=int(index))
    return found


def asked(**query: Any) -> Request:
    return Request(
        "GET", "/", {}, {name: value if isinstance(value, list) else [value] for name, value in query.items()}
    )
