"""Answers about applications, which the dashboard of Flink 2.3 asks for. Every job is an application of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.web.http_messages import Request, Response, not_found
from ekorn.web.routes import Handler, Routes

__all__ = ["add_application_routes"]

Overviews = Callable[[], list[dict[str, Any]]]
Exceptions = Callable[[str], dict[str, Any]]


def add_application_routes(routes: Routes, overviews: Overviews, exceptions: Exceptions) -> None:
    """Add the routes.

    Args:
        routes: The routes.
        overviews: Returns all jobs, in the form of the overview.
        exceptions: Returns the failures of a job, in Flink's form.
    """

    def find(request: Request) -> dict[str, Any]:
        wanted = request.parameters["applicationid"]
        found = next((job for job in overviews() if job["jid"] == wanted), None)
        return found if found is not None else not_found(f"there is no application {wanted[:80]!r}")

    def details(request: Request) -> dict[str, Any]:
        job = find(request)
        return _application(job) | {"jobs": [job], "timestamps": {job["state"]: job["last-modification"]}}

    def failures(request: Request) -> dict[str, Any]:
        job_id = find(request)["jid"]
        entries = exceptions(job_id)["exceptionHistory"]["entries"]
        shown = [{**{name: each[name] for name in _SHOWN}, "jobId": job_id} for each in entries]
        return {"exceptionHistory": {"entries": shown}}

    def of_job(method: str, path: str) -> Handler:
        """Return the handler that lets the route of the job answer."""

        def answer(request: Request) -> Response | dict[str, Any] | list[Any]:
            parts = path.format(job=find(request)["jid"]).split("/")[1:]
            found = routes.find(method, parts)
            return found.route.handler(Request(method, "/" + "/".join(parts), found.parameters))

        return answer

    def overview(request: Request) -> dict[str, Any]:
        return {"applications": [_application(job) | {"jobs": {job["state"]: 1}} for job in overviews()]}

    routes.add("GET", "/applications/overview", overview, "All jobs, each as an application")
    routes.add("GET", "/applications/:applicationid", details, "A job as an application")
    routes.add("GET", "/applications/:applicationid/exceptions", failures, "The failures of an application")
    routes.add(
        "GET",
        "/applications/:applicationid/jobmanager/config",
        of_job("GET", "/jobs/{job}/jobmanager/config"),
        "The configuration of an application",
    )
    routes.add("POST", "/applications/:applicationid/cancel", of_job("PATCH", "/jobs/{job}"), "Cancel an application")


_SHOWN = ("exceptionName", "stacktrace", "timestamp")


def _application(job: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": job["jid"],
        "name": job["name"],
        "start-time": job["start-time"],
        "end-time": job["end-time"],
        "duration": job["duration"],
        "status": job["state"],
    }
