"""Answers about whole jobs: the overview, the details, the plan, the configuration, exceptions and accumulators."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ekorn
from ekorn.columns.columns_type import has_columns
from ekorn.config.masking import masked_settings
from ekorn.driver.statistics.failure_history import PastFailure
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.job_graph import JobGraph, Vertex
from ekorn.graph.plan import key_text, ship_strategy
from ekorn.graph.specs import Hash
from ekorn.rest.known_jobs import KnownJob, KnownJobs, flink_id
from ekorn.rest.rescale_answers import slot_group_id
from ekorn.rest.subtask_answers import HOST, STATES, counts, io_metrics, lives_of, state_of, times, totals_of

_RUNNING = (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.RESTARTING, JobStatus.FAILING, JobStatus.CANCELLING)
_MOST_EXCEPTIONS = 16


def overview(jobs: KnownJobs) -> dict[str, Any]:
    """Answer `/overview`: how many jobs there are, and how many slots run for them."""
    found = [job.status for job in jobs.all()]
    slots = sum(job.statistics.graph.slot_count for job in jobs.running())
    return {
        "taskmanagers": slots,
        "taskmanagers-blocked": 0,
        "slots-total": slots,
        "slots-available": 0,
        "slots-free-and-blocked": 0,
        "jobs-running": sum(status in _RUNNING for status in found),
        "jobs-finished": found.count(JobStatus.FINISHED),
        "jobs-cancelled": found.count(JobStatus.CANCELED),
        "jobs-failed": found.count(JobStatus.FAILED),
        "flink-version": ekorn.__version__,
        "flink-commit": "ekorn",
    }


def web_config(*, read_only: bool, can_submit: bool) -> dict[str, Any]:
    """Answer `/config`: the properties of the server that web pages need."""
    zone = time.localtime()
    return {
        "refresh-interval": 3000,
        "timezone-name": zone.tm_zone,
        "timezone-offset": zone.tm_gmtoff * 1000,
        "flink-version": ekorn.__version__,
        "flink-revision": "ekorn",
        "features": {
            "web-submit": can_submit and not read_only,
            "web-cancel": not read_only,
            "web-rescale": can_submit and not read_only,
            "web-history": False,
        },
        "server": "service" if can_submit else "driver",
    }


def job_list(jobs: KnownJobs) -> dict[str, Any]:
    """Answer `/jobs`."""
    return {"jobs": [{"id": job.job_id, "status": job.status.name} for job in jobs.all()]}


def jobs_overview(jobs: KnownJobs) -> dict[str, Any]:
    """Answer `/jobs/overview`."""
    return {"jobs": [job_overview(job) for job in jobs.all()]}


def job_overview(job: KnownJob) -> dict[str, Any]:
    """Return one job of the overview."""
    statistics = job.statistics
    found = counts(statistics.lives.all().values())
    return {
        "jid": job.job_id,
        "name": job.view.job_name,
        "start-time": statistics.started_ms,
        **_end(job),
        "state": job.status.name,
        "last-modification": statistics.time_line[-1].at_ms,
        "tasks": {"total": sum(found.values()), **{state.lower(): number for state, number in found.items()}},
        "pending-operators": 0,
        "jobType": _type(job),
        "schedulerType": "Default",
    }


def job_details(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid`."""
    statistics = job.statistics
    now_ms = statistics.clock.now_ms()
    states = [state_of(lives_of(job, vertex)) for vertex in job.vertices]
    first_of = {change.status: change.at_ms for change in reversed(statistics.time_line)}
    return {
        "jid": job.job_id,
        "name": job.view.job_name,
        "isStoppable": False,
        "state": job.status.name,
        "job-type": _type(job),
        "api": "DataStream" if statistics.graph.settings.in_slots else "DataSet",
        "start-time": statistics.started_ms,
        **_end(job),
        "maxParallelism": max((vertex.max_parallelism for vertex in job.vertices), default=1),
        "now": now_ms,
        "timestamps": {status.name: first_of.get(status, 0) for status in JobStatus}
        | {"INITIALIZING": statistics.started_ms},
        "vertices": [_vertex(job, vertex, now_ms) for vertex in job.vertices],
        "status-counts": {state: states.count(state) for state in STATES},
        "plan": plan(job),
        "stream-graph": None,
        "pending-operators": 0,
        "schedulerType": "Default",
        "application-id": job.job_id,
    }


def _vertex(job: KnownJob, vertex: Vertex, now_ms: int) -> dict[str, Any]:
    lives, supersteps = lives_of(job, vertex), job.statistics.supersteps.get(vertex.id)
    own = {} if supersteps is None else {"supersteps": {"current": supersteps.current, "most": supersteps.most}}
    return {
        "id": flink_id(vertex),
        "slotSharingGroupId": slot_group_id(vertex.slot_group),
        "name": vertex.name,
        "maxParallelism": vertex.max_parallelism,
        "parallelism": vertex.parallelism,
        "status": state_of(lives),
        **times(lives, now_ms),
        "tasks": counts(lives),
        "metrics": io_metrics(totals_of(job, vertex), now_ms),
        **own,
    }


def _end(job: KnownJob) -> dict[str, int]:
    statistics = job.statistics
    ended_ms = statistics.ended_ms
    until_ms = statistics.clock.now_ms() if ended_ms is None else ended_ms
    return {"end-time": -1 if ended_ms is None else ended_ms, "duration": until_ms - statistics.started_ms}


def _type(job: KnownJob) -> str:
    return "BATCH" if job.statistics.graph.settings.batch else "STREAMING"


def plan(job: KnownJob) -> dict[str, Any]:
    """Return the plan of a job: a node for each vertex."""
    return drawn_plan(job.statistics.graph, job.job_id, job.view.job_name)


def drawn_plan(graph: JobGraph, job_id: str, job_name: str) -> dict[str, Any]:
    """Return the plan of a job graph: a node for each vertex."""
    return {
        "jid": job_id,
        "name": job_name,
        "type": "BATCH" if graph.settings.batch else "STREAMING",
        "nodes": [_node(graph, vertex) for vertex in graph.vertices],
    }


def _node(graph: JobGraph, vertex: Vertex) -> dict[str, Any]:
    inputs = [
        {
            "num": number,
            "id": flink_id(graph.vertices[exchange.source]),
            "ship_strategy": ship_strategy(exchange.partitioning),
            "local_strategy": f"by {key_text(exchange.partitioning.key)}"
            if isinstance(exchange.partitioning, Hash)
            else "",
            "caching": "",
            "exchange": "blocking" if graph.settings.batch else "pipelined_bounded",
            **({"form": "columns"} if has_columns(exchange.type_info) else {}),
        }
        for number, exchange in enumerate(graph.inputs_of(vertex.id))
    ]
    chain = [operator.description or operator.name for operator in vertex.operators]
    node: dict[str, Any] = {
        "id": flink_id(vertex),
        "parallelism": vertex.parallelism,
        "operator": "",
        "operator_strategy": "",
        "description": "".join(f"{'+- ' if depth else ''}{name}<br/>" for depth, name in enumerate(chain)),
        "optimizer_properties": {},
    }
    return node | ({"inputs": inputs} if inputs else {})


def job_config(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/config`."""
    settings, graph = job.statistics.settings, job.statistics.graph
    return {
        "jid": job.job_id,
        "name": job.view.job_name,
        "execution-config": {
            "restart-strategy": settings.restart.get_description(),
            "job-parallelism": max((vertex.parallelism for vertex in graph.vertices), default=1),
            "object-reuse-mode": graph.settings.object_reuse,
            "user-config": masked_settings(graph.settings.job_parameters),
        },
    }


def resource_requirements(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/resource-requirements`: a vertex runs with the parallelism that the program gave it."""
    return {
        flink_id(vertex): {"parallelism": {"lowerBound": vertex.parallelism, "upperBound": vertex.parallelism}}
        for vertex in job.vertices
    }


def configuration(values: Mapping[str, Any]) -> list[dict[str, str]]:
    """Answer `/jobmanager/config`: keys and values, secrets masked."""
    return [{"key": key, "value": str(value)} for key, value in sorted(masked_settings(values).items())]


def exceptions(job: KnownJob, most: int | None, labels: Sequence[str] = ()) -> dict[str, Any]:
    """Answer `/jobs/:jobid/exceptions`: the latest failures, the newest first.

    Args:
        job: The job.
        most: How many failures are shown; None for the usual number.
        labels: Labels, each with its value, that the failures must have. No failure has a label here.
    """
    if labels:
        return {"exceptionHistory": {"entries": [], "truncated": False}}
    history = job.statistics.failures
    most = _MOST_EXCEPTIONS if most is None else most
    entries: list[dict[str, Any]] = [
        _exception(job, failure) | {"concurrentExceptions": [_exception(job, other) for other in failure.others]}
        for failure in history.failures[:most]
    ]
    return {"exceptionHistory": {"entries": entries, "truncated": history.count > len(entries)}}


def _exception(job: KnownJob, failure: PastFailure) -> dict[str, Any]:
    return {
        "exceptionName": failure.name,
        "stacktrace": failure.trace,
        "timestamp": failure.at_ms,
        "failureLabels": {},
        "taskName": failure.location,
        "endpoint": None if failure.slot is None else HOST,
        "taskManagerId": None if failure.slot is None else job.slot_id(failure.slot),
    }


def execution_result(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/execution-result`: how a job ended, once it has.

    Values of accumulators are objects of Java in Flink's answer; `/jobs/:jobid/accumulators` shows them as text.
    """
    if not job.status.is_terminal_state():
        return {"status": {"id": "IN_PROGRESS"}}
    statistics, failures = job.statistics, job.statistics.failures.failures
    ended = _end(job)
    result: dict[str, Any] = {
        "id": job.job_id,
        "name": job.view.job_name,
        "application-status": _APPLICATION_STATUS.get(job.status, "UNKNOWN"),
        "accumulator-results": {},
        "net-runtime": ended["duration"],
        "application-id": job.job_id,
        "start-time": statistics.started_ms,
        "end-time": ended["end-time"],
    }
    if job.status is JobStatus.FAILED and failures:
        cause = {"class": failures[0].name, "stack-trace": failures[0].trace, "serialized-throwable": ""}
        result["failure-cause"] = cause
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}


# Flink: the status of an application has other names than the status of its job.
_APPLICATION_STATUS = {
    JobStatus.FINISHED: "SUCCEEDED",
    JobStatus.FAILED: "FAILED",
    JobStatus.CANCELED: "CANCELED",
}


def time_line(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/time-line`: the states that the job was in, the oldest first."""
    changes = job.statistics.time_line
    return {"changes": [{"status": change.status.name, "timestamp": change.at_ms} for change in changes]}


def metric_history(job: KnownJob, since_ms: int) -> dict[str, Any]:
    """Answer `/jobs/:jobid/metric-history`: the figures of the last hours after a moment, the oldest first."""
    return {
        "points": [
            {
                "timestamp": each.at_ms,
                "recordsPerSecond": round(each.records_per_second, 3),
                "latency": round(each.latency_ms, 3),
                "busyRatio": round(each.busy, 4),
                "backPressuredRatio": round(each.blocked, 4),
                "restarts": each.restarts,
                "stateSize": each.state_bytes,
                "checkpointDuration": each.checkpoint_ms,
                "checkpointSize": each.checkpoint_bytes,
                "driverMemory": each.memory.driver,
                "slotMemory": each.memory.slots,
            }
            for each in job.statistics.history.points(since_ms)
        ]
    }


def accumulators(job: KnownJob) -> dict[str, Any]:
    """Answer `/jobs/:jobid/accumulators`: the merged values, as text."""
    return {
        "job-accumulators": [],
        "user-task-accumulators": accumulator_rows(job.results.merged_accumulators()),
        "serialized-user-task-accumulators": {},
    }


def accumulator_rows(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return accumulators with their class and their value as text."""
    rows = []
    for name, accumulator in sorted(found.items()):
        try:
            value = str(accumulator.get_local_value())
        except Exception as error:  # raised by an accumulator of the user
            value = f"<{type(error).__name__}: {error}>"
        rows.append({"name": name, "type": type(accumulator).__name__, "value": value})
    return rows


def environment() -> dict[str, Any]:
    """Answer `/jobmanager/environment`, with the interpreter in place of the JVM."""
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return {"jvm": {"version": version, "arch": platform.machine(), "options": []}, "classpath": list(sys.path)}
