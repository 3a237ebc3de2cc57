"""The routes that change a job of the driver: savepoints, stop, cancel, rescale; and the disposal of savepoints.

A request for a savepoint, a stop, a rescale or a cancellation with the query `wait=true` is answered when it is done,
and the answer has the outcome too. Clients of a job's own driver need it: the driver may end before they ask again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ekorn.checkpoint.savepoint_files import dispose_savepoint
from ekorn.checkpoint.signing import read_signing_key
from ekorn.driver.checkpoints.savepoint_requests import Then
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest.job_answers import resource_requirements
from ekorn.rest.known_jobs import KnownJob, KnownJobs
from ekorn.rest.operations import Operations, checkpoint_scope, in_background
from ekorn.web.http_messages import HttpError, Request, Response
from ekorn.web.routes import Routes

__all__ = ["add_changing_routes", "add_disposal_routes", "wanted_parallelism"]


def add_changing_routes(routes: Routes, known: KnownJobs, operations: Operations) -> None:
    """Add the routes."""

    def begin_savepoint(
        job: KnownJob, request: Request, fields: _Fields, directory: str | None, then: Then
    ) -> Response:
        native = fields.choice("formatType", ("CANONICAL", "NATIVE"), "CANONICAL") == "NATIVE"
        answer = operations.begin(
            job.job_id,
            fields.text("triggerId"),
            lambda: job.requests.request_savepoint(directory, native=native, then=then),
            lambda path: {"location": path},
        )
        return _begun(operations, job, request, answer)

    def savepoint(request: Request) -> Response:
        job, fields = _with_state(known, request), _Fields(request)
        then: Then = "cancel" if fields.flag("cancel-job") else "go on"
        return begin_savepoint(job, request, fields, fields.text("target-directory"), then)

    def stop(request: Request) -> Response:
        job, fields = _with_state(known, request), _Fields(request)
        then: Then = "drain" if fields.flag("drain") else "stop"
        return begin_savepoint(job, request, fields, fields.text("targetDirectory"), then)

    def savepoint_state(request: Request) -> dict[str, Any]:
        return operations.answer(request.parameters["jobid"], request.parameters["triggerid"])

    def cancel(request: Request) -> Response:
        mode = request.one("mode") or "cancel"
        if mode.lower() != "cancel":
            raise HttpError(400, f"unknown mode {mode[:40]!r}: use 'cancel', or POST .../stop")
        job = known.find(request.parameters["jobid"])
        if job.status in (JobStatus.FINISHED, JobStatus.FAILED):
            raise HttpError(409, f"job {job.job_id} has ended ({job.status.name})")
        job.requests.cancel()
        if not _waits(request):
            return Response({}, 202)
        job.results.wait_for_end(None)
        return Response({"status": job.status.name})

    def rescale(request: Request) -> Response:
        job, parallelism = _with_state(known, request), request.number("parallelism", 1)
        if parallelism is None:
            raise HttpError(400, "the query parameter 'parallelism' is missing")
        return _begin_rescale(operations, job, request, parallelism)

    def require(request: Request) -> Response:
        job = _with_state(known, request)
        wanted = wanted_parallelism(resource_requirements(job), request.json_object())
        if wanted is not None:
            _begin_rescale(operations, job, request, wanted)
        return Response({})

    def key_file() -> str | None:
        return next((job.statistics.settings.checkpoints.signing_key_file for job in reversed(known.all())), None)

    def checkpoint(request: Request) -> Response:
        job, fields = _with_state(known, request), _Fields(request)
        # Flink: FULL and INCREMENTAL choose how RocksDB writes. Here every backend writes what has changed.
        fields.choice("checkpointType", ("CONFIGURED",), "CONFIGURED")
        answer = operations.begin(
            checkpoint_scope(job.job_id),
            fields.text("triggerId"),
            job.requests.request_checkpoint,
            lambda checkpoint_id: {"checkpointId": checkpoint_id},
            failure_field="failureCause",
        )
        return Response(answer, 202)

    def checkpoint_state(request: Request) -> dict[str, Any]:
        job = known.find(request.parameters["jobid"])
        return operations.answer(checkpoint_scope(job.job_id), request.parameters["triggerid"])

    routes.add("POST", "/jobs/:jobid/checkpoints", checkpoint, "Take a checkpoint")
    routes.add("GET", "/jobs/:jobid/checkpoints/:triggerid", checkpoint_state, "The status of a checkpoint")
    routes.add("POST", "/jobs/:jobid/savepoints", savepoint, "Take a savepoint")
    routes.add("GET", "/jobs/:jobid/savepoints/:triggerid", savepoint_state, "The status of a savepoint")
    routes.add("POST", "/jobs/:jobid/stop", stop, "Stop a job with a savepoint")
    routes.add("PATCH", "/jobs/:jobid", cancel, "Cancel a job")
    routes.add("PATCH", "/jobs/:jobid/rescaling", rescale, "Change the parallelism of a job")
    routes.add("GET", "/jobs/:jobid/rescaling/:triggerid", savepoint_state, "The status of a rescale")
    routes.add("PUT", "/jobs/:jobid/resource-requirements", require, "Change the parallelism of a job")
    add_disposal_routes(routes, operations, key_file)


def add_disposal_routes(routes: Routes, operations: Operations, key_file: Callable[[], str | None]) -> None:
    """Add the routes that delete a savepoint.

    Args:
        routes: The routes.
        operations: Where deletions are remembered.
        key_file: Returns the file with the key that signs savepoints; None accepts unsigned savepoints.
    """

    def disposal(request: Request) -> dict[str, Any]:
        path = _Fields(request).text("savepoint-path")
        if not path:
            raise HttpError(400, "the body has no 'savepoint-path'")
        key = read_signing_key(key_file())
        return operations.begin("", None, lambda: in_background(lambda: dispose_savepoint(path, key)))

    def disposal_state(request: Request) -> dict[str, Any]:
        return operations.answer("", request.parameters["triggerid"])

    routes.add("POST", "/savepoint-disposal", disposal, "Delete a savepoint")
    routes.add("GET", "/savepoint-disposal/:triggerid", disposal_state, "The status of the deletion of a savepoint")


def _running(known: KnownJobs, request: Request) -> KnownJob:
    job = known.find(request.parameters["jobid"])
    if job.status.is_terminal_state():
        raise HttpError(409, f"job {job.job_id} has ended ({job.status.name})")
    return job


def _with_state(known: KnownJobs, request: Request) -> KnownJob:
    """Return a running job that can be saved and rescaled."""
    known.find(request.parameters["jobid"]).refuse_without_state()
    return _running(known, request)


def _begin_rescale(operations: Operations, job: KnownJob, request: Request, parallelism: int) -> Response:
    directory, slots = request.one("targetDirectory"), request.number("slots", 1)
    answer = operations.begin(
        job.job_id,
        None,
        lambda: job.requests.request_rescale(parallelism, directory, most_slots=slots),
        lambda path: {"location": path},
    )
    return _begun(operations, job, request, answer)


def _begun(operations: Operations, job: KnownJob, request: Request, answer: dict[str, str]) -> Response:
    """Return the answer to a request that has begun an operation, with the outcome if the request waits for it."""
    if not _waits(request):
        return Response(answer, 202)
    return Response(answer | operations.answer(job.job_id, answer["request-id"], when_done=True))


def _waits(request: Request) -> bool:
    return request.one("wait") == "true"


def wanted_parallelism(present: Mapping[str, Any], requirements: Mapping[str, Any]) -> int | None:
    """Return the parallelism that the requirements of a job's vertices ask for; None for the one that it has.

    Args:
        present: The requirements that hold now.
        requirements: The requested requirements of some or all vertices, in the same form.

    Raises:
        HttpError: The requirements are malformed, or ask for different parallelisms.
    """
    wanted: set[int] = set()
    for vertex_id, requirement in requirements.items():
        if vertex_id not in present:
            raise HttpError(400, f"the job has no vertex {vertex_id[:40]!r}")
        match requirement:
            case {"parallelism": {"upperBound": int() as upper}} if not isinstance(upper, bool) and upper > 0:
                if upper != present[vertex_id]["parallelism"]["upperBound"]:
                    wanted.add(upper)
            case _:
                raise HttpError(400, f"vertex {vertex_id} needs a 'parallelism' with an 'upperBound' of at least 1")
    if len(wanted) > 1:
        found = ", ".join(map(str, sorted(wanted)))
        raise HttpError(400, f"all vertices of a job share one parallelism, but the request asks for {found}")
    return next(iter(wanted), None)


class _Fields:
    """The fields of a request's body, checked."""

    def __init__(self, request: Request) -> None:
        self._fields = request.json_object()

    def text(self, name: str) -> str | None:
        found = self._fields.get(name)
        if found is not None and not isinstance(found, str):
            raise HttpError(400, f"the field {name!r} is not text")
        return found

    def flag(self, name: str) -> bool:
        found = self._fields.get(name)
        if found is not None and not isinstance(found, bool):
            raise HttpError(400, f"the field {name!r} is neither true nor false")
        return bool(found)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        found = self.text(name)
        if found is not None and found not in choices:
            raise HttpError(400, f"the field {name!r} is {found[:40]!r}; choose from {', '.join(choices)}")
        return default if found is None else found
