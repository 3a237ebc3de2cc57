"""The metrics of jobs as numbers with Flink's names, scopes and variables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex
from ekorn.metrics.histogram import QUANTILES
from ekorn.metrics.reporter import Sample
from ekorn.metrics.reports import Report
from ekorn.rest.known_jobs import KnownJob, flink_id
from ekorn.rest.metric_answers import job_metrics
from ekorn.rest.process_answers import driver_metrics, metrics_of_slots
from ekorn.rest.subtask_answers import HOST

__all__ = ["samples_of"]

DRIVER, SLOT = "jobmanager", "taskmanager"
JOB, TASK, OPERATOR = "jobmanager.job", "taskmanager.job.task", "taskmanager.job.task.operator"
TASK_MANAGER_JOB = "taskmanager.job"


def samples_of(jobs: Iterable[KnownJob]) -> Iterator[Sample]:
    """Return every metric of the jobs, their slots and this driver whose value is a finite number."""
    yield from _numbers(DRIVER, {"host": HOST}, driver_metrics())
    for job in jobs:
        of_job = {"host": HOST, "job_id": job.job_id, "job_name": job.view.job_name}
        for slot_id, values in metrics_of_slots(job):
            yield from _numbers(SLOT, {"host": HOST, "tm_id": slot_id}, values)
        yield from _numbers(JOB, of_job, job_metrics(job))
        yield from _latencies(job, of_job)
        for vertex in job.vertices:
            for index in range(vertex.parallelism):
                yield from _of_subtask(job, vertex, index, of_job)


def _latencies(job: KnownJob, of_job: Mapping[str, str]) -> Iterator[Sample]:
    """Return the latencies from source to operator. Flink: the path is part of the name, and also in the variables."""
    for path, histogram in job.statistics.latencies.by_path.items():
        variables = path.variables()
        yield from _histogram(
            TASK_MANAGER_JOB, f"latency.{'.'.join(variables)}.latency", {**of_job, **variables}, histogram.values()
        )


def _histogram(scope: str, name: str, variables: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Sample]:
    """Return a histogram as Flink's reporters do: its count, and a value for each quantile."""
    yield from _numbers(scope, variables, {f"{name}_count": values["count"]})
    for suffix, part in QUANTILES.items():
        yield from _numbers(scope, {**variables, "quantile": str(part)}, {name: values.get(suffix)})


def _of_subtask(job: KnownJob, vertex: Vertex, index: int, of_job: Mapping[str, str]) -> Iterator[Sample]:
    subtask, metrics = SubtaskId(vertex.id, index), job.statistics.metrics
    life = job.statistics.lives.present(subtask)
    of_task = {
        **of_job,
        "tm_id": job.slot_id(life.slot),
        "task_id": flink_id(vertex),
        "task_name": vertex.name,
        "subtask_index": str(index),
        "task_attempt_num": str(life.attempt),
    }
    yield from _numbers(TASK, of_task, metrics.of_chain(subtask))
    operators = {label: operator_id for operator_id, label in metrics.labels.items()}
    for (label, name), report in metrics.reports(subtask).items():
        if label in operators:
            variables = {**of_task, "operator_id": operators[label], "operator_name": label}
            if report.kind == "histogram":
                yield from _histogram(OPERATOR, name, variables, report.values)
            else:
                yield from _numbers(OPERATOR, variables, _values(name, report))


def _values(name: str, report: Report) -> dict[str, Any]:
    """Return the values of a metric by name. Flink: the value of a meter is its rate."""
    found = {f"{name}.{suffix}" if suffix else name: value for suffix, value in report.values.items()}
    if report.kind == "meter" and "rate" in report.values:
        found[name] = found.pop(f"{name}.rate")
    return found


def _numbers(scope: str, variables: Mapping[str, str], values: Mapping[str, Any]) -> Iterator[Sample]:
    for name, value in values.items():
        if isinstance(value, (int, float)) and math.isfinite(value):
            yield Sample(scope, name, variables, float(value))
