"""The parts of answers that describe subtasks: counts of states, input and output, times."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ekorn.driver.statistics.job_metrics import Totals
from ekorn.driver.statistics.subtask_lives import SubtaskLife
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex
from ekorn.rest.known_jobs import KnownJob

STATES = (
    "CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED", "RECONCILING",
    "INITIALIZING",
)  # fmt: skip
_FROM_WORST = ("FAILED", "CANCELING", "CANCELED", "DEPLOYING", "SCHEDULED", "RUNNING", "FINISHED")

HOST = socket.gethostname()


def counts(lives: Iterable[SubtaskLife]) -> dict[str, int]:
    """Return how many subtasks are in each of Flink's states."""
    found = Counter(life.state for life in lives)
    return {state: found.get(state, 0) for state in STATES}  # type: ignore[call-overload]


def state_of(lives: Sequence[SubtaskLife]) -> str:
    """Return the state of a vertex: that of the subtask that needs most attention, or FINISHED if all subtasks are."""
    found = {life.state for life in lives}
    return next((state for state in _FROM_WORST if state in found), "CREATED")


def io_metrics(subtasks: Iterable[tuple[Totals, SubtaskLife]], now_ms: int) -> dict[str, Any]:
    """Return the input, the output and the times of some subtasks together, in Flink's form."""
    parts = list(subtasks)
    lived = sum(
        max((life.ended_ms or now_ms) - life.times["RUNNING"], 0) for _, life in parts if "RUNNING" in life.times
    )
    busy = sum(totals.busy_ms for totals, _ in parts)
    blocked = sum(totals.blocked_ms for totals, _ in parts)
    return {
        "read-bytes": sum(totals.bytes_in for totals, _ in parts),
        "read-bytes-complete": True,
        "write-bytes": sum(totals.bytes_out for totals, _ in parts),
        "write-bytes-complete": True,
        "read-records": sum(totals.records_in for totals, _ in parts),
        "read-records-complete": True,
        "write-records": sum(totals.records_out for totals, _ in parts),
        "write-records-complete": True,
        "accumulated-backpressured-time": round(blocked),
        "accumulated-idle-time": max(round(lived - busy - blocked), 0),
        "accumulated-busy-time": round(busy, 3),
    }


def times(lives: Sequence[SubtaskLife], now_ms: int) -> dict[str, int]:
    """Return start, end and duration of some subtasks together; -1 for what has not happened."""
    started = [life.started_ms for life in lives if life.started_ms is not None]
    ended = [life.ended_ms for life in lives]
    start_ms = min(started, default=-1)
    end_ms = max((end for end in ended if end is not None), default=-1) if all(ended) else -1
    duration = -1 if start_ms < 0 else (end_ms if end_ms >= 0 else now_ms) - start_ms
    return {"start-time": start_ms, "end-time": end_ms, "duration": duration}


def subtask_details(job: KnownJob, subtask: SubtaskId, life: SubtaskLife, now_ms: int) -> dict[str, Any]:
    """Return one attempt of a subtask."""
    is_present = life is job.statistics.lives.present(subtask)
    totals = job.statistics.metrics.totals(subtask) if is_present else Totals()
    return {
        "subtask": subtask.subtask,
        "status": life.state,
        "attempt": life.attempt,
        "endpoint": HOST,
        **times([life], now_ms),
        "metrics": io_metrics([(totals, life)], now_ms),
        "taskmanager-id": job.slot_id(life.slot),
        "status-duration": status_durations(life, now_ms),
        "other-concurrent-attempts": [],
    }


def status_durations(life: SubtaskLife, now_ms: int) -> dict[str, int]:
    """Return how long a subtask was in each state that is not an end; -1 for states that it never was in."""
    entered = sorted(life.times.items(), key=lambda each: (each[1], STATES.index(each[0])))
    until = [at for _, at in entered[1:]] + [now_ms]
    spent = {state: end - at for (state, at), end in zip(entered, until, strict=True)}
    return {state: spent.get(state, -1) for state in ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING")}


def lives_of(job: KnownJob, vertex: Vertex) -> list[SubtaskLife]:
    """Return the present lives of a vertex's subtasks."""
    return job.statistics.lives.of(vertex.id)


def totals_of(job: KnownJob, vertex: Vertex) -> list[tuple[Totals, SubtaskLife]]:
    """Return the totals and lives of a vertex's subtasks."""
    metrics = job.statistics.metrics
    return [(metrics.totals(SubtaskId(vertex.id, n)), life) for n, life in enumerate(lives_of(job, vertex))]
