"""Answers with metrics: of jobs, vertices and subtasks, one by one and combined, and the watermarks."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.driver.statistics.vertex_history import COMBINED, MetricPart
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex
from ekorn.rest.known_jobs import KnownJob
from ekorn.web.http_messages import HttpError, Request, whole_number


def _skew(values: list[float]) -> float:
    """Return how unevenly values are distributed, in percent: 0 if all are equal."""
    average = sum(values) / len(values)
    if average == 0:
        return 0.0
    deviation = sum(abs(value - average) for value in values) / len(values)
    return min(100.0 * deviation / abs(average), 100.0)


_AGGREGATIONS: dict[str, Callable[[list[float]], float]] = {**COMBINED, "skew": _skew}
_TIMED = {
    "runningTime": JobStatus.RUNNING,
    "restartingTime": JobStatus.RESTARTING,
    "cancellingTime": JobStatus.CANCELLING,
    "failingTime": JobStatus.FAILING,
}


def answer(values: Mapping[str, Any], request: Request) -> list[dict[str, str]]:
    """Return the names of all metrics, or names and values of those that the query parameter `get` names."""
    if "get" not in request.query:
        return [{"id": name} for name in values]
    return [{"id": name, "value": text(values[name])} for name in names_wanted(request, values) if name in values]


def names_wanted(request: Request, known: Container[str]) -> list[str]:
    """Return the names in the query parameter `get`, separated by commas or given several times.

    The name of an operator may have commas. A value that is a known name as it stands is not separated.
    """
    given = request.query.get("get", ())
    return [part for value in given for part in ([value] if value in known else value.split(",")) if part]


def text(value: Any) -> str:
    """Return a value of a metric as Flink writes it."""
    if value is None:
        return "n/a"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def job_metrics(job: KnownJob) -> dict[str, Any]:
    """Return the metrics of a job itself, under Flink's names."""
    statistics, progress = job.statistics, job.view.progress()
    checkpoints = statistics.checkpoints
    last = checkpoints.last_completed
    restored = checkpoints.last_restored
    timed = {name: _time_in(statistics, status) for name, status in _TIMED.items()}
    is_running = job.status is JobStatus.RUNNING
    change_ms = statistics.time_line[-1].at_ms
    since_ms = statistics.clock.now_ms() - change_ms
    return {
        "numRestarts": progress.restarts,
        "fullRestarts": progress.restarts,
        "uptime": since_ms if is_running else 0,
        "downtime": since_ms if job.status is JobStatus.RESTARTING else 0,
        **timed,
        **{f"{name}Total": value for name, value in timed.items()},
        "numberOfCompletedCheckpoints": checkpoints.completed,
        "numberOfFailedCheckpoints": checkpoints.failed,
        "numberOfInProgressCheckpoints": checkpoints.in_progress,
        "totalNumberOfCheckpoints": checkpoints.completed + checkpoints.failed + checkpoints.in_progress,
        "lastCheckpointDuration": -1 if last is None or last.ended_ms is None else last.ended_ms - last.triggered_ms,
        "lastCheckpointSize": -1 if last is None else last.written_bytes,
        "lastCheckpointFullSize": -1 if last is None else last.state_bytes,
        "lastCompletedCheckpointId": -1 if last is None else last.checkpoint_id,
        "lastCheckpointExternalPath": "n/a" if last is None else last.path,
        "lastCheckpointRestoreTimestamp": -1 if restored is None else restored.restored_ms,
        "lastCheckpointPersistedData": 0 if last is None else last.in_flight_bytes,
        "lastCheckpointProcessedData": 0,
    }


def job_latencies(job: KnownJob) -> dict[str, Any]:
    """Return the latencies from source to operator, under Flink's names: the path, and a statistic behind it."""
    found: dict[str, Any] = {}
    for path, histogram in job.statistics.latencies.by_path.items():
        name = ".".join(part for pair in path.variables().items() for part in pair)
        found |= {f"latency.{name}.latency_{suffix}": value for suffix, value in histogram.values().items()}
    return found


def _time_in(statistics: JobStatistics, status: JobStatus) -> int:
    changes = statistics.time_line
    until = [change.at_ms for change in changes[1:]] + [statistics.ended_ms or statistics.clock.now_ms()]
    return sum(end - change.at_ms for change, end in zip(changes, until, strict=True) if change.status is status)


def vertex_metrics(job: KnownJob, vertex: Vertex) -> dict[str, Any]:
    """Return the metrics of a vertex: those of its subtasks, after the index of the subtask."""
    metrics = job.statistics.metrics
    return {
        f"{index}.{name}": value
        for index in range(vertex.parallelism)
        for name, value in metrics.of_subtask(SubtaskId(vertex.id, index)).items()
    }


def watermarks(job: KnownJob, vertex: Vertex) -> list[dict[str, str]]:
    """Answer `.../watermarks`: the input watermark of every subtask."""
    metrics = job.statistics.metrics
    return [
        {
            "id": f"{index}.currentInputWatermark",
            "value": str(metrics.totals(SubtaskId(vertex.id, index)).watermark),
        }
        for index in range(vertex.parallelism)
    ]


def over_subtasks(job: KnownJob, vertex: Vertex, request: Request) -> list[dict[str, Any]]:
    """Answer `.../subtasks/metrics`: metrics combined over the subtasks."""
    chosen = _chosen(request.many("subtasks"), vertex.parallelism)
    metrics = job.statistics.metrics
    return aggregated([metrics.of_subtask(SubtaskId(vertex.id, index)) for index in chosen], request)


def over_jobs(jobs: Iterable[KnownJob], request: Request) -> list[dict[str, Any]]:
    """Answer `/jobs/metrics`: metrics combined over jobs."""
    wanted = request.many("jobs")
    return aggregated([job_metrics(job) for job in jobs if wanted is None or job.job_id in wanted], request)


def aggregated(parts: list[dict[str, Any]], request: Request) -> list[dict[str, Any]]:
    """Return the names of all metrics, or the numbers that the query parameters `get` and `agg` ask for.

    Raises:
        HttpError: An aggregation is not known.
    """
    kinds = _kinds(request, _AGGREGATIONS)
    names = dict.fromkeys(name for part in parts for name in part)
    if "get" not in request.query:
        return [{"id": name} for name in names]
    found = []
    for name in names_wanted(request, names):
        values = [number for part in parts if (number := _number(part.get(name))) is not None]
        if values:
            by_kind = {kind: round(float(_AGGREGATIONS[kind](values)), 6) for kind in kinds}
            found.append({"id": name, **by_kind})
    return found


def vertex_history(job: KnownJob, vertex: Vertex, request: Request) -> dict[str, Any]:
    """Answer `.../metric-history`: the metrics of a vertex over the last hours, combined or of single subtasks."""
    history = job.statistics.vertex_history
    known = history.columns(vertex.id)
    parts: list[str | int] = []
    if "subtasks" not in request.query or "agg" in request.query:
        parts += _kinds(request, COMBINED)
    if "subtasks" in request.query:
        parts += _chosen(request.many("subtasks"), vertex.parallelism)
    names = list(dict.fromkeys(column.name for column in known))
    if "get" in request.query:
        names = names_wanted(request, set(names))
    since_ms = request.number("since")
    kept = set(known)
    wanted = [column for name in names for part in parts if (column := MetricPart(vertex.id, name, part)) in kept]
    found = history.series(wanted, -1 if since_ms is None else since_ms)
    rows = _evenly(len(found.times_ms), request.number("points", 1))
    return {
        "timestamps": [found.times_ms[row] for row in rows],
        "series": [
            {**_series_id(column), "values": [_shown(found.values[column][row]) for row in rows]} for column in wanted
        ],
    }


def _evenly(count: int, most: int | None) -> Sequence[int]:
    """Return the numbers of at most `most` of `count` points, the last one among them."""
    if most is None or count <= most:
        return range(count)
    return [(number + 1) * count // most - 1 for number in range(most)]


def _series_id(column: MetricPart) -> dict[str, str]:
    if isinstance(column.part, int):
        return {"id": f"{column.part}.{column.name}"}
    return {"id": column.name, "agg": column.part}


def _shown(value: float) -> float | int | None:
    """Return a number as short as JSON can have it; None for what is not a number."""
    if math.isnan(value):
        return None
    return int(value) if value.is_integer() else float(f"{value:.7g}")


def _kinds(request: Request, known: Mapping[str, Any]) -> list[str]:
    """Return the aggregations that a request asks for; all of them if it asks for none."""
    kinds = request.many("agg")
    unknown = sorted(set(kinds or ()) - set(known))
    if unknown:
        raise HttpError(400, f"unknown aggregation {unknown[0][:40]!r}: choose from {', '.join(known)}")
    return kinds or list(known)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _chosen(given: list[str] | None, parallelism: int) -> list[int]:
    """Return the subtasks that a list such as `0,2-4` names."""
    if given is None:
        return list(range(parallelism))
    found: list[int] = []
    for part in given:
        first, dash, last = part.partition("-")
        low = whole_number(first, "a subtask")
        high = whole_number(last, "a subtask") if dash else low
        found += range(low, min(high, parallelism - 1) + 1)
    return sorted({index for index in found if index < parallelism})
