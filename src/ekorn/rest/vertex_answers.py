"""Answers about one vertex of a job: its subtasks, their times, back pressure, accumulators and slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ekorn.driver.statistics.subtask_lives import SubtaskLife
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex
from ekorn.rest.job_answers import accumulator_rows
from ekorn.rest.known_jobs import KnownJob, flink_id
from ekorn.rest.subtask_answers import (
    HOST,
    STATES,
    counts,
    io_metrics,
    lives_of,
    state_of,
    status_durations,
    subtask_details,
    times,
    totals_of,
)
from ekorn.rest.summaries import summary
from ekorn.web.http_messages import not_found, whole_number

_LOW, _HIGH = 0.1, 0.5  # Flink: the ratios above which back pressure is called low and high


def vertex_details(job: KnownJob, vertex: Vertex) -> dict[str, Any]:
    """Answer `/jobs/:jobid/vertices/:vertexid`."""
    now_ms = job.statistics.clock.now_ms()
    return {
        "id": flink_id(vertex),
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "maxParallelism": vertex.max_parallelism,
        "now": now_ms,
        "subtasks": [
            subtask_details(job, SubtaskId(vertex.id, index), life, now_ms)
            for index, life in enumerate(lives_of(job, vertex))
        ],
        "aggregated": _aggregated(job, vertex, range(vertex.parallelism), now_ms),
    }


def _aggregated(job: KnownJob, vertex: Vertex, indices: Iterable[int], now_ms: int) -> dict[str, Any]:
    parts = totals_of(job, vertex)
    chosen = [parts[index] for index in indices]
    each = [io_metrics([part], now_ms) for part in chosen]
    spent = [status_durations(life, now_ms) for _, life in chosen]
    names = [name for name in each[0] if not name.endswith("-complete")]
    return {
        "metrics": {name: summary(part[name] for part in each) for name in names},
        "status-duration": {state: summary(part[state] for part in spent) for state in spent[0]},
    }


def subtask_answer(job: KnownJob, subtask: SubtaskId) -> dict[str, Any]:
    """Answer `/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex`."""
    life = job.statistics.lives.present(subtask)
    return subtask_details(job, subtask, life, job.statistics.clock.now_ms())


def attempt_answer(job: KnownJob, subtask: SubtaskId, attempt: str) -> dict[str, Any]:
    """Answer `.../subtasks/:subtaskindex/attempts/:attempt`."""
    number = whole_number(attempt, "the attempt")
    lives = job.statistics.lives
    found = next((life for life in (lives.present(subtask), *lives.earlier(subtask)) if life.attempt == number), None)
    if found is None:
        not_found(f"subtask {subtask.subtask} has no attempt {number}, or it is no longer kept")
    return subtask_details(job, subtask, found, job.statistics.clock.now_ms())


def subtask_times(job: KnownJob, vertex: Vertex) -> dict[str, Any]:
    """Answer `.../subtasktimes`: when each subtask entered its states."""
    now_ms = job.statistics.clock.now_ms()
    return {
        "id": flink_id(vertex),
        "name": vertex.name,
        "now": now_ms,
        "subtasks": [
            {
                "subtask": index,
                "endpoint": HOST,
                "duration": times([life], now_ms)["duration"],
                "timestamps": _timestamps(life),
            }
            for index, life in enumerate(lives_of(job, vertex))
        ],
    }


def _timestamps(life: SubtaskLife) -> dict[str, int]:
    return {state: life.times.get(state, 0) for state in STATES}


def back_pressure(job: KnownJob, vertex: Vertex) -> dict[str, Any]:
    """Answer `.../backpressure`: which part of the last seconds each subtask waited, worked, and had nothing to do."""
    metrics = job.statistics.metrics
    subtasks: list[dict[str, Any]] = []
    for index, life in enumerate(lives_of(job, vertex)):
        rates = metrics.rates(SubtaskId(vertex.id, index))
        ratio = round(rates.blocked_ms / 1000, 4)
        subtasks.append(
            {
                "subtask": index,
                "attempt-number": life.attempt,
                "backpressure-level": _level(ratio),
                "backpressureLevel": _level(ratio),
                "ratio": ratio,
                "busyRatio": round(rates.busy_ms / 1000, 4),
                "idleRatio": round(rates.idle_ms / 1000, 4),
                "other-concurrent-attempts": [],
            }
        )
    worst = max((each["ratio"] for each in subtasks), default=0.0)
    level = _level(worst)
    return {
        "status": "ok",
        "backpressure-level": level,
        "backpressureLevel": level,
        "end-timestamp": job.statistics.clock.now_ms(),
        "subtasks": subtasks,
    }


def _level(ratio: float) -> str:
    return "ok" if ratio <= _LOW else "low" if ratio <= _HIGH else "high"


def vertex_accumulators(job: KnownJob, vertex: Vertex) -> dict[str, Any]:
    """Answer `.../accumulators`: the accumulators of every subtask, one subtask after the other."""
    rows = [row for index in range(vertex.parallelism) for row in _accumulators(job, SubtaskId(vertex.id, index))]
    return {"id": flink_id(vertex), "user-accumulators": rows}


def subtask_accumulators(job: KnownJob, vertex: Vertex) -> dict[str, Any]:
    """Answer `.../subtasks/accumulators`."""
    return {
        "id": flink_id(vertex),
        "parallelism": vertex.parallelism,
        "subtasks": [
            {
                "subtask": index,
                "attempt": life.attempt,
                "endpoint": HOST,
                "user-accumulators": _accumulators(job, SubtaskId(vertex.id, index)),
            }
            for index, life in enumerate(lives_of(job, vertex))
        ],
    }


def attempt_accumulators(job: KnownJob, vertex: Vertex, subtask: SubtaskId, attempt: str) -> dict[str, Any]:
    """Answer `.../attempts/:attempt/accumulators`: only the accumulators of the current attempt are known."""
    number = whole_number(attempt, "the attempt")
    is_present = job.statistics.lives.present(subtask).attempt == number
    return {
        "subtask": subtask.subtask,
        "attempt": number,
        "id": flink_id(vertex),
        "user-accumulators": _accumulators(job, subtask) if is_present else [],
    }


def _accumulators(job: KnownJob, subtask: SubtaskId) -> list[dict[str, str]]:
    return accumulator_rows(job.statistics.metrics.accumulators(subtask))


def vertex_slots(job: KnownJob, vertex: Vertex) -> dict[str, Any]:
    """Answer `.../taskmanagers`: the subtasks by the slot that hosts them."""
    now_ms = job.statistics.clock.now_ms()
    lives, parts = lives_of(job, vertex), totals_of(job, vertex)
    by_slot = _grouped(range(len(lives)), lambda index: lives[index].slot)
    found = []
    for slot, indices in by_slot.items():
        here = [lives[index] for index in indices]
        found.append(
            {
                "endpoint": HOST,
                "status": state_of(here),
                **times(here, now_ms),
                "metrics": io_metrics([parts[index] for index in indices], now_ms),
                "status-counts": counts(here),
                "taskmanager-id": job.slot_id(slot),
                "aggregated": _aggregated(job, vertex, indices, now_ms),
            }
        )
    return {"id": flink_id(vertex), "name": vertex.name, "now": now_ms, "taskmanagers": found}


def _grouped(indices: Sequence[int], key: Callable[[int], int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for index in indices:
        found.setdefault(key(index), []).append(index)
    return found
