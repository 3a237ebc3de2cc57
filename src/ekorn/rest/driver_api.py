"""The routes of Flink's REST API over the jobs of one driver process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.graph.job_graph import Vertex
from ekorn.metrics.thread_stacks import thread_stacks
from ekorn.rest import checkpoint_answers as checkpoints
from ekorn.rest import job_answers as jobs
from ekorn.rest import metric_answers as metrics
from ekorn.rest import process_answers as processes
from ekorn.rest import rescale_answers as rescales
from ekorn.rest import state_answers as state
from ekorn.rest import vertex_answers as vertices
from ekorn.rest.flame_graphs import FlameGraphs
from ekorn.rest.known_jobs import KnownJob, KnownJobs
from ekorn.web.http_messages import Request, Response
from ekorn.web.routes import Handler, Routes

__all__ = ["add_reading_routes"]

Answer = Response | dict[str, Any] | list[Any]


def add_reading_routes(routes: Routes, known: KnownJobs, *, read_only: bool) -> None:
    """Add the routes that show something."""
    _add_overview(routes, known, read_only=read_only)
    _add_jobs(routes, known)
    _add_rescales(routes, known)
    _add_drivers(routes, known)
    _add_vertices(routes, known)
    _add_checkpoints(routes, known)
    _add_state(routes, known)
    _add_processes(routes, known)


def _add_overview(routes: Routes, known: KnownJobs, *, read_only: bool) -> None:
    get = _Getting(routes)
    get("/overview", lambda request: jobs.overview(known), "The numbers of jobs and slots")
    get(
        "/config",
        lambda request: jobs.web_config(read_only=read_only, can_submit=False),
        "The settings of the web page",
    )
    get("/jobs", lambda request: jobs.job_list(known), "The ids of all jobs")
    get("/jobs/overview", lambda request: jobs.jobs_overview(known), "All jobs")
    get("/jobs/metrics", lambda request: metrics.over_jobs(known.all(), request), "Metrics over all jobs")


def _add_jobs(routes: Routes, known: KnownJobs) -> None:
    get = _Getting(routes)

    def of_job(answer: Callable[[KnownJob], Answer]) -> Handler:
        return lambda request: answer(known.find(request.parameters["jobid"]))

    get("/jobs/:jobid", of_job(jobs.job_details), "The details of a job")
    get("/jobs/:jobid/status", of_job(lambda job: {"status": job.status.name}), "The status of a job")
    get("/jobs/:jobid/plan", of_job(lambda job: {"plan": jobs.plan(job)}), "The plan of a job")
    get("/jobs/:jobid/time-line", of_job(jobs.time_line), "The states that a job has been in; not in Flink's API")
    get("/jobs/:jobid/execution-result", of_job(jobs.execution_result), "How a job ended")
    get("/jobs/:jobid/config", of_job(jobs.job_config), "The configuration of a job")
    get("/jobs/:jobid/resource-requirements", of_job(jobs.resource_requirements), "The parallelism of every vertex")
    get("/jobs/:jobid/accumulators", of_job(jobs.accumulators), "The accumulators of a job")

    def exceptions(request: Request) -> Answer:
        labels = request.many("failureLabelFilter") or ()
        return jobs.exceptions(known.find(request.parameters["jobid"]), request.number("maxExceptions", 1), labels)

    def history(request: Request) -> Answer:
        since_ms = request.number("since")
        return jobs.metric_history(known.find(request.parameters["jobid"]), -1 if since_ms is None else since_ms)

    def of_job_metrics(request: Request) -> Answer:
        job = known.find(request.parameters["jobid"])
        return metrics.answer(metrics.job_metrics(job) | metrics.job_latencies(job), request)

    get("/jobs/:jobid/exceptions", exceptions, "The failures of a job")
    get("/jobs/:jobid/metrics", of_job_metrics, "The metrics of a job")
    get("/jobs/:jobid/metric-history", history, "Figures of the last hours, after the time `since`; not in Flink's API")


def _add_rescales(routes: Routes, known: KnownJobs) -> None:
    get = _Getting(routes, "/jobs/:jobid/rescales")

    def of_job(answer: Callable[[KnownJob], Answer]) -> Handler:
        return lambda request: answer(known.find(request.parameters["jobid"]))

    def one(request: Request) -> Answer:
        return rescales.details(known.find(request.parameters["jobid"]), request.parameters["rescaleuuid"])

    get("", of_job(rescales.rescales), "The changes of a job's parallelism; not in Flink's API")
    get("/overview", of_job(rescales.overview), "The number of rescales, and the latest ones")
    get("/history", of_job(rescales.history), "The latest rescales")
    get("/summary", of_job(rescales.summaries), "The durations of rescales")
    get("/config", of_job(rescales.configuration), "When a job is rescaled automatically")
    get("/details/:rescaleuuid", one, "A rescale")


def _add_drivers(routes: Routes, known: KnownJobs) -> None:
    """Add routes about the driver of one job, which a service passes on. Flink has the first two."""
    get = _Getting(routes, "/jobs/:jobid/jobmanager")

    def settings(request: Request) -> Answer:
        return jobs.configuration(dict(_job(request).statistics.settings.configuration))

    def logs(request: Request) -> Answer:
        return processes.log_list(processes.log_files([_job(request)]))

    def log(request: Request) -> Answer:
        return processes.log_file(processes.log_files([_job(request)]), request.parameters["name"], request)

    def environment(request: Request) -> Answer:
        _job(request)
        return jobs.environment()

    def _job(request: Request) -> KnownJob:
        return known.find(request.parameters["jobid"])

    get("/config", settings, "The configuration of a job")
    get("/environment", environment, "The interpreter of a job's driver")
    get("/logs", logs, "The log files of a job's driver")
    get("/logs/:name", log, "A log file of a job's driver")


def _add_vertices(routes: Routes, known: KnownJobs) -> None:
    get = _Getting(routes, "/jobs/:jobid/vertices/:vertexid")

    def found(request: Request) -> tuple[KnownJob, Vertex]:
        job = known.find(request.parameters["jobid"])
        return job, job.vertex(request.parameters["vertexid"])

    def of_vertex(answer: Callable[[KnownJob, Vertex], Answer]) -> Handler:
        return lambda request: answer(*found(request))

    get("", of_vertex(vertices.vertex_details), "A vertex with its subtasks")
    get("/watermarks", of_vertex(metrics.watermarks), "The input watermark of every subtask")
    get("/backpressure", of_vertex(vertices.back_pressure), "The back pressure of a vertex")
    get("/accumulators", of_vertex(vertices.vertex_accumulators), "The accumulators of a vertex")
    get("/subtasktimes", of_vertex(vertices.subtask_times), "When subtasks changed their states")
    get("/taskmanagers", of_vertex(vertices.vertex_slots), "The subtasks of a vertex by slot")
    get("/subtasks/accumulators", of_vertex(vertices.subtask_accumulators), "The accumulators by subtask")

    flame_graphs = FlameGraphs()
    get(
        "/flamegraph",
        lambda request: flame_graphs.answer(*found(request), request),
        "What subtasks spend their time on",
    )

    def of_metrics(request: Request) -> Answer:
        return metrics.answer(metrics.vertex_metrics(*found(request)), request)

    get("/metrics", of_metrics, "The metrics of a vertex")
    get(
        "/metric-history",
        lambda request: metrics.vertex_history(*found(request), request),
        "The metrics of a vertex over the last hours, after the time `since`; not in Flink's API",
    )
    get("/jm-operator-metrics", lambda request: metrics.answer({}, request), "Metrics of source coordinators: none")
    get("/subtasks/metrics", lambda request: metrics.over_subtasks(*found(request), request), "Metrics over subtasks")

    def subtask(request: Request) -> Answer:
        job, _ = found(request)
        chosen = job.subtask(request.parameters["vertexid"], request.parameters["subtaskindex"])
        return vertices.subtask_answer(job, chosen)

    def subtask_metrics(request: Request) -> Answer:
        job, _ = found(request)
        chosen = job.subtask(request.parameters["vertexid"], request.parameters["subtaskindex"])
        return metrics.answer(job.statistics.metrics.of_subtask(chosen), request)

    def attempt(request: Request) -> Answer:
        job, _ = found(request)
        chosen = job.subtask(request.parameters["vertexid"], request.parameters["subtaskindex"])
        return vertices.attempt_answer(job, chosen, request.parameters["attempt"])

    def attempt_accumulators(request: Request) -> Answer:
        job, vertex = found(request)
        chosen = job.subtask(request.parameters["vertexid"], request.parameters["subtaskindex"])
        return vertices.attempt_accumulators(job, vertex, chosen, request.parameters["attempt"])

    get("/subtasks/:subtaskindex", subtask, "A subtask")
    get("/subtasks/:subtaskindex/metrics", subtask_metrics, "The metrics of a subtask")
    get("/subtasks/:subtaskindex/attempts/:attempt", attempt, "An attempt of a subtask")
    get(
        "/subtasks/:subtaskindex/attempts/:attempt/accumulators",
        attempt_accumulators,
        "The accumulators of an attempt of a subtask",
    )


def _add_checkpoints(routes: Routes, known: KnownJobs) -> None:
    get = _Getting(routes, "/jobs/:jobid/checkpoints")

    def found(request: Request) -> KnownJob:
        job = known.find(request.parameters["jobid"])
        job.refuse_without_state()
        return job

    def one(request: Request) -> Answer:
        job = found(request)
        record = checkpoints.find(job, request.parameters["checkpointid"])
        return checkpoints.record_answer(job, record, job.statistics.clock.now_ms(), with_vertices=True)

    def of_vertex(request: Request) -> Answer:
        job = found(request)
        record = checkpoints.find(job, request.parameters["checkpointid"])
        return checkpoints.subtasks_answer(job, record, job.vertex(request.parameters["vertexid"]))

    get("", lambda request: checkpoints.checkpoints(found(request)), "The checkpoints of a job")
    get("/config", lambda request: checkpoints.config(found(request)), "The settings of checkpoints")
    get("/details/:checkpointid", one, "A checkpoint")
    get("/details/:checkpointid/subtasks/:vertexid", of_vertex, "A vertex's part of a checkpoint")


def _add_state(routes: Routes, known: KnownJobs) -> None:
    """Add routes of queryable state, which Flink's API does not have."""
    path = "/jobs/:jobid/state/:name"

    def of_job(answer: Callable[[KnownJob, Request], Answer]) -> Handler:
        return lambda request: answer(known.find(request.parameters["jobid"]), request)

    get = _Getting(routes)
    get("/jobs/:jobid/state", of_job(lambda job, request: state.states(job)), "The queryable states of a job")
    get(path, of_job(state.look_up_texts), "The values of keys, each in a query parameter `key`")
    routes.add("POST", path, of_job(state.look_up_values), "The values of the `keys` in the body", reads_only=True)


def _add_processes(routes: Routes, known: KnownJobs) -> None:
    get = _Getting(routes, "/jobmanager")

    def settings(request: Request) -> Answer:
        latest = [dict(job.statistics.settings.configuration) for job in known.all()][-1:]
        return jobs.configuration(latest[0] if latest else {})

    def logs(request: Request) -> Answer:
        return processes.log_list(processes.log_files(known.all()))

    def log(request: Request) -> Answer:
        return processes.log_file(processes.log_files(known.all()), request.parameters.get("name"), request)

    get("/config", settings, "The configuration of the driver's newest job")
    get("/environment", lambda request: jobs.environment(), "The interpreter of the driver")
    get("/logs", logs, "The log files of the driver")
    get("/logs/:name", log, "A log file of the driver")
    get("/log", log, "The first log file of the driver")
    get("/stdout", log, "The first log file of the driver")
    get("/metrics", lambda request: metrics.answer(processes.driver_metrics(), request), "The driver's own metrics")
    get("/thread-dump", lambda request: processes.threads(thread_stacks()), "The stacks of the driver's threads")
    get = _Getting(routes, "/taskmanagers")

    def slot_metrics(request: Request) -> Answer:
        return metrics.answer(processes.slot_metrics(known, request.parameters["taskmanagerid"]), request)

    def slot_log(request: Request) -> Answer:
        name = request.parameters.get("name")
        return processes.slot_log(known, request.parameters["taskmanagerid"], name, request)

    get("", lambda request: processes.slots(known), "The slots of all running jobs")
    get("/metrics", lambda request: processes.over_slots(known, request), "Metrics over all slots")
    get("/:taskmanagerid", lambda r: processes.slot_details(known, r.parameters["taskmanagerid"]), "A slot")
    get("/:taskmanagerid/metrics", slot_metrics, "The metrics of a slot's process")
    get(
        "/:taskmanagerid/thread-dump",
        lambda request: processes.slot_threads(known, request.parameters["taskmanagerid"]),
        "The stacks of a slot's threads",
    )
    get("/:taskmanagerid/logs", lambda r: processes.slot_logs(known, r.parameters["taskmanagerid"]), "A slot's logs")
    get("/:taskmanagerid/logs/:name", slot_log, "The last lines of a slot's log")
    get("/:taskmanagerid/log", slot_log, "The last lines of a slot's log")
    get(
        "/:taskmanagerid/stdout",
        lambda request: processes.slot_output(known, request.parameters["taskmanagerid"], request),
        "The latest output of a slot",
    )


class _Getting:
    """Adds routes of the method GET below a path."""

    def __init__(self, routes: Routes, above: str = "") -> None:
        self._routes = routes
        self._above = above

    def __call__(self, path: str, handler: Handler, summary: str) -> None:
        self._routes.add("GET", self._above + path, handler, summary)
