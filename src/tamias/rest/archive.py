"""The last answers about the jobs of a driver, which the service gives once the driver has ended."""

from __future__ import annotations

from typing import Any

from tamias.rest.known_jobs import KnownJobs, flink_id
from tamias.web.messages import HttpError, Request
from tamias.web.routes import Routes

__all__ = ["last_answers"]


def last_answers(routes: Routes, known: KnownJobs) -> dict[str, Any]:
    """Return the answers to all reading requests about jobs and their vertices, by path."""
    found: dict[str, Any] = {}
    names: list[dict[str, str]] = [{}]
    for job in known.all():
        names.append({"jobid": job.job_id})
        names += [{"jobid": job.job_id, "vertexid": flink_id(vertex)} for vertex in job.vertices]
        names += [
            {"jobid": job.job_id, "checkpointid": str(record.checkpoint_id)}
            for record in job.statistics.checkpoints.records()
        ]
    for route in routes:
        variables = {part[1:] for part in route.path.split("/") if part.startswith(":")}
        if route.method != "GET" or not route.path.startswith("/jobs"):
            continue
        for given in names:
            if set(given) == variables:
                path = "/".join(given[part[1:]] if part.startswith(":") else part for part in route.path.split("/"))
                try:
                    answer = route.handler(Request("GET", path, given))
                except HttpError:
                    continue  # there is nothing to keep
                if isinstance(answer, dict | list):
                    found[path] = answer
    return found
