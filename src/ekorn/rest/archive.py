"""The last answers about the jobs of a driver. The service returns them after the driver has ended."""

from __future__ import annotations

import logging
from typing import Any

from ekorn.rest.known_jobs import KnownJobs, flink_id
from ekorn.rest.metric_answers import names_wanted
from ekorn.rest.operations import Operations, checkpoint_scope
from ekorn.rest.rescale_answers import rescale_ids
from ekorn.web.http_messages import HttpError, Request
from ekorn.web.routes import Routes

__all__ = ["kept_answer", "last_answers"]

_log = logging.getLogger(__name__)

_METRICS = "/metrics"
_HISTORY = "/metric-history"
_POINTS_KEPT = "120"  # of each series of a vertex: the curves are as wide on a screen, and the archive stays small


def last_answers(routes: Routes, known: KnownJobs, operations: Operations) -> dict[str, Any]:
    """Return the answers to all reading requests about jobs, their vertices, checkpoints and operations, by path."""
    found: dict[str, Any] = {}
    names: list[dict[str, str]] = [{}]
    for job in known.all():
        names.append({"jobid": job.job_id})
        names += [{"jobid": job.job_id, "vertexid": flink_id(vertex)} for vertex in job.vertices]
        names += [
            {"jobid": job.job_id, "checkpointid": str(record.checkpoint_id)}
            for record in job.statistics.checkpoints.records()
        ]
        names += [{"jobid": job.job_id, "rescaleuuid": rescale} for rescale in rescale_ids(job)]
        done = operations.done(job.job_id) + operations.done(checkpoint_scope(job.job_id))
        names += [{"jobid": job.job_id, "triggerid": trigger_id} for trigger_id in done]
    for route in routes:
        variables = {part[1:] for part in route.path.split("/") if part.startswith(":")}
        if route.method != "GET" or not route.path.startswith("/jobs"):
            continue
        for given in names:
            if set(given) == variables:
                path = "/".join(given[part[1:]] if part.startswith(":") else part for part in route.path.split("/"))
                try:
                    query = {"points": [_POINTS_KEPT]} if _is_vertex_history(path) else {}
                    answer = route.handler(Request("GET", path, given, query))
                    # The answer lists metric names: keep the values too.
                    if path.endswith(_METRICS) and isinstance(answer, list):
                        wanted = {"get": [each["id"] for each in answer]}
                        answer = route.handler(Request("GET", path, given, wanted))
                except HttpError:
                    continue  # the route has no answer to keep
                except Exception:
                    # A defect of ekorn; the other answers must be kept, because they hold the outcome of the job.
                    _log.exception("the last response for %s could not be produced", path)
                    continue
                if isinstance(answer, dict | list):
                    found[path] = answer
    return found


def kept_answer(answers: dict[str, Any], request: Request) -> Any:
    """Return the answer to a reading request that is among the last answers of a driver; None if it is not."""
    found = answers.get(request.path)
    if _is_vertex_history(request.path) and isinstance(found, dict):
        return _chosen_series(found, request)
    if not request.path.endswith(_METRICS) or not isinstance(found, list):
        return found
    if "get" not in request.query:
        return [{"id": each["id"]} for each in found]
    by_name = {each["id"]: each for each in found}
    return [by_name[name] for name in names_wanted(request, by_name) if name in by_name]


def _is_vertex_history(path: str) -> bool:
    return path.endswith(_HISTORY) and "/vertices/" in path


def _chosen_series(found: dict[str, Any], request: Request) -> dict[str, Any]:
    """Return the series that a request asks for. Those of single subtasks are not kept."""
    names, kinds = set(names_wanted(request, {each["id"] for each in found["series"]})), request.many("agg")
    chosen = [
        each
        for each in found["series"]
        if ("get" not in request.query or each["id"] in names) and (kinds is None or each["agg"] in kinds)
    ]
    only_subtasks = "subtasks" in request.query and kinds is None
    return {"timestamps": found["timestamps"], "series": [] if only_subtasks else chosen}
