"""The routes of the service: its own answers, and requests that it forwards to the drivers of its jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ekorn.dashboard.pages import add_pages
from ekorn.metrics.thread_stacks import thread_stacks
from ekorn.rest import job_answers, metric_answers, process_answers
from ekorn.rest.application_answers import add_application_routes
from ekorn.rest.changing_api import add_disposal_routes
from ekorn.rest.openapi import add_description
from ekorn.rest.operations import Operations
from ekorn.service.api.change_api import ChangeApi
from ekorn.service.api.job_api import JobApi
from ekorn.service.api.overview_api import OverviewApi
from ekorn.service.api.program_api import ProgramApi
from ekorn.service.api.savepoint_api import SavepointApi
from ekorn.service.jobs.job_service import JobService
from ekorn.web.http_messages import Request, Response
from ekorn.web.routes import Routes

__all__ = ["service_routes"]

_LOG = "service.log"


def service_routes(service: JobService) -> Routes:
    """Return the routes of a service."""
    routes = Routes()
    overview, jobs = OverviewApi(service), JobApi(service)
    _add_reading(routes, overview, jobs)
    routes.add(
        "GET",
        "/service/savepoints",
        SavepointApi(service).savepoints,
        "The savepoints and retained checkpoints of all jobs, the newest first",
    )
    _add_own(routes, service)
    _add_changing(routes, jobs, ChangeApi(service, jobs))
    _add_programs(routes, ProgramApi(service), most_bytes=service.settings.bundle_bytes)
    add_disposal_routes(routes, Operations(), lambda: None)
    add_application_routes(routes, lambda: overview.jobs_overview(Request("GET", ""))["jobs"], jobs.exceptions)
    add_description(routes)
    add_pages(routes)
    return routes


def _add_reading(routes: Routes, overview: OverviewApi, jobs: JobApi) -> None:
    for path, handler, summary in (
        ("/overview", overview.overview, "The numbers of jobs and slots"),
        ("/jobs", overview.job_list, "The ids of all jobs"),
        ("/jobs/overview", overview.jobs_overview, "All jobs"),
        ("/jobs/metrics", overview.metrics_over_jobs, "Metrics over all jobs"),
        ("/jobs/:jobid/status", jobs.job_status, "The status of a job"),
        ("/jobs/:jobid/log", jobs.job_log, "The log of a job's driver, from the byte `offset` on"),
        ("/jobs/:jobid/jobmanager/logs", jobs.driver_logs, "The log files of a job's driver"),
        ("/jobs/:jobid/jobmanager/logs/:name", jobs.driver_log, "A log file of a job's driver"),
        ("/jobs/:jobid", jobs.pass_on, "The details of a job"),
        ("/jobs/:jobid/*", jobs.pass_on, "Anything else about a job, from its driver"),
        ("/taskmanagers", overview.slots, "The slots of all jobs"),
        ("/taskmanagers/metrics", overview.metrics_over_slots, "Metrics over all slots"),
        ("/taskmanagers/:taskmanagerid", jobs.pass_on_to_slot, "A slot"),
        ("/taskmanagers/:taskmanagerid/*", jobs.pass_on_to_slot, "Anything else about a slot"),
        ("/service/jobs", overview.records, "All jobs, with the reasons why they wait and how they ended"),
    ):
        routes.add("GET", path, handler, summary)


def _add_own(routes: Routes, service: JobService) -> None:
    own, read_only = _OwnAnswers(service), service.settings.web.read_only
    for path, handler, summary in (
        ("/jobmanager/config", own.settings, "Its settings"),
        ("/jobmanager/environment", lambda request: job_answers.environment(), "Its interpreter"),
        ("/jobmanager/logs", lambda request: process_answers.log_list(own.logs()), "Its log files"),
        ("/jobmanager/log", lambda request: process_answers.log_file(own.logs(), None, request), "Its log"),
        ("/jobmanager/stdout", lambda request: process_answers.log_file(own.logs(), None, request), "Its log"),
        ("/jobmanager/logs/:name", own.log, "One of its log files"),
        ("/jobmanager/thread-dump", lambda request: process_answers.threads(thread_stacks()), "Its threads"),
        (
            "/jobmanager/metrics",
            lambda request: metric_answers.answer(process_answers.driver_metrics(), request),
            "Its own metrics",
        ),
        (
            "/config",
            lambda request: job_answers.web_config(read_only=read_only, can_submit=True),
            "The settings of the web page",
        ),
    ):
        routes.add("GET", path, handler, summary)


def _add_changing(routes: Routes, jobs: JobApi, changes: ChangeApi) -> None:
    routes.add("PATCH", "/jobs/:jobid", jobs.cancel, "Cancel a job")
    routes.add("PATCH", "/jobs/:jobid/rescaling", changes.rescale, "Change the parallelism of a job")
    routes.add("GET", "/jobs/:jobid/rescaling/:triggerid", changes.change_state, "The status of a change")
    routes.add("PUT", "/jobs/:jobid/resource-requirements", changes.require, "Change the parallelism of a job")
    routes.add("POST", "/jobs/:jobid/upgrade", changes.upgrade, "Continue a job with another program")
    routes.add("GET", "/jobs/:jobid/upgrade/:triggerid", changes.change_state, "The status of a change")
    routes.add("POST", "/jobs/:jobid/restore", changes.restore, "Run a job's program again from a savepoint")
    routes.add("POST", "/jobs/:jobid/state/*", jobs.pass_on, "The values of keys of a state", reads_only=True)
    routes.add("POST", "/jobs/:jobid/*", jobs.pass_on, "Change a job, by its driver")
    routes.add("PATCH", "/jobs/:jobid/*", jobs.pass_on, "Change a job, by its driver")


def _add_programs(routes: Routes, programs: ProgramApi, *, most_bytes: int) -> None:
    routes.add("GET", "/jars", programs.programs, "The programs that the service has")
    routes.add(
        "POST",
        "/jars/upload",
        programs.upload,
        "Upload a program: the body is the archive, `digest` its SHA-256, `name` the script",
        most_body_bytes=most_bytes,
        to_file=True,
    )
    routes.add("POST", "/jars/:jarid/run", programs.run, "Run a program")
    routes.add("POST", "/jars/:jarid/run-application", programs.run_application, "Run a program, as an application")
    routes.add("POST", "/jars/:jarid/plan", programs.program_plan, "The plan of a program")
    routes.add("DELETE", "/jars/:jarid", programs.delete_program, "Delete a program")


class _OwnAnswers:
    """The answers about the service's own process that need its settings and its folder."""

    def __init__(self, service: JobService) -> None:
        self._service = service

    def settings(self, request: Request) -> list[Any]:
        return job_answers.configuration(self._service.settings.configuration)

    def log(self, request: Request) -> Response:
        return process_answers.log_file(self.logs(), request.parameters["name"], request)

    def logs(self) -> list[Path]:
        """Return the log files of the service."""
        path = self._service.store.folder / _LOG
        return [path] if path.is_file() else []
