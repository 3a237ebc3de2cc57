"""A job of a service, as its client controls it: over the REST API."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from urllib.parse import urlencode

from ekorn.config.job_id import JobID
from ekorn.driver.checkpoints.savepoint_requests import Then
from ekorn.driver.display.job_progress import Fact, JobProgress, html_table
from ekorn.errors import CheckpointError, EkornError, JobCancelledError, JobExecutionError, RescaleError
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.results.job_status import JobStatus
from ekorn.rest.operations import in_background
from ekorn.web.http_client import RefusedRequest, WebClient

__all__ = ["RemoteJob"]

_POLL_S = 0.2
_NEVER = 2**63 - 1  # the interval of checkpoints of a job that takes none, as Flink shows it


class RemoteJob:
    """One job of a service, or of a driver on this machine or with a web server. Thread-safe.

    Args:
        client: The client of the server.
        job_id: The id of the job.
        pause: Waits between two questions.
        one_answer: Whether a request is answered only when it is done, so that the client need not poll. Then the
            server is the job's own driver, and may end with the job.
    """

    def __init__(
        self,
        client: WebClient,
        job_id: str,
        pause: Callable[[float], None] = time.sleep,
        *,
        one_answer: bool = False,
    ) -> None:
        self._client = client
        self._one_answer = one_answer
        self._at = f"/jobs/{job_id}"
        self._pause = pause
        self.job_id = JobID(job_id)

    @property
    def job_name(self) -> str:
        """The name of the job; its id until the job has started."""
        return str(self._shown().get("name", self.job_id))

    @property
    def queries_at(self) -> None:
        """None: the REST API does not tell where queries of the job's state are answered, nor their token."""
        return None

    def status(self) -> JobStatus:
        """Return the status of the job."""
        return JobStatus[self._client.get(f"{self._at}/status")["status"]]

    def cancel(self) -> None:
        """Cancel the job and return at once."""
        self._client.ask("PATCH", f"{self._at}?mode=cancel").json()

    def cancel_and_wait(self) -> JobStatus:
        """Cancel the job and wait for its end; return the final status."""
        if self._one_answer:
            return JobStatus[self._client.ask("PATCH", f"{self._at}?mode=cancel&wait=true").json()["status"]]
        self.cancel()
        while not (status := self.status()).is_terminal_state():
            self._pause(_POLL_S)
        return status

    def wait(self, timeout: float | None = None) -> JobExecutionResult:
        """Wait for the end of the job.

        Raises:
            JobExecutionError: The job failed.
            JobCancelledError: The job was cancelled.
            TimeoutError: The job is still running after `timeout` seconds.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while not (status := self.status()).is_terminal_state():
            if until is not None and time.monotonic() >= until:
                raise TimeoutError(f"job {self.job_name!r} is still {status.name} after {timeout} s")
            self._pause(_POLL_S)
        if status is JobStatus.FINISHED:
            return JobExecutionResult(self.job_id, self._shown().get("duration", 0), self.accumulators())
        if status is JobStatus.FAILED:
            raise JobExecutionError(self.job_name, self._failure())
        raise JobCancelledError(self.job_name)

    def request_savepoint(
        self, directory: str | None = None, *, native: bool = False, then: Then = "go on"
    ) -> Future[str]:
        """Request a savepoint. The future has its path, or the reason why it was not taken.

        Raises:
            RefusedRequest: The job has ended, or there is no directory.
        """
        saved_as = "NATIVE" if native else "CANONICAL"
        if then in ("stop", "drain"):
            body = {"targetDirectory": directory, "drain": then == "drain", "formatType": saved_as}
            return self._begun("POST", "stop", body, asked_at="savepoints", error=CheckpointError)
        body = {"target-directory": directory, "cancel-job": then == "cancel", "formatType": saved_as}
        return self._begun("POST", "savepoints", body, asked_at="savepoints", error=CheckpointError)

    def takes_checkpoints(self) -> bool:
        """Return whether the job takes checkpoints by itself."""
        return bool(self._client.get(f"{self._at}/checkpoints/config")["interval"] < _NEVER)

    def trigger_checkpoint(self) -> None:
        """Ask for a checkpoint without waiting for it.

        Raises:
            RefusedRequest: The job does not run.
        """
        self._client.ask("POST", f"{self._at}/checkpoints", {})

    def request_rescale(
        self, parallelism: int, directory: str | None = None, *, most_slots: int | None = None
    ) -> Future[str]:
        """Request another parallelism. The future has the checkpoint that the job continued from.

        Raises:
            RefusedRequest: The job has ended.
        """
        given = {"parallelism": parallelism, "targetDirectory": directory, "slots": most_slots}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        return self._begun("PATCH", f"rescaling?{query}", None, asked_at="rescaling", error=RescaleError)

    def _begun(self, method: str, path: str, body: Any, *, asked_at: str, error: type[EkornError]) -> Future[str]:
        """Begin an operation; return a future of the path that the operation results in.

        Raises:
            RefusedRequest: The operation is not begun.
        """
        if self._one_answer:
            path = f"{path}{'&' if '?' in path else '?'}wait=true"
            at = f"{self._at}/{path}"
            return in_background(lambda: _location(self._client.ask(method, at, body).json()["operation"], error))
        trigger_id = self._client.ask(method, f"{self._at}/{path}", body).json()["request-id"]
        return in_background(lambda: self._outcome(asked_at, trigger_id, error))

    def _outcome(self, what: str, trigger_id: str, error: type[EkornError]) -> str:
        """Wait for the end of an operation; return the path that it results in."""
        while True:
            try:
                found = self._client.get(f"{self._at}/{what}/{trigger_id}")
            except RefusedRequest as refused:
                if refused.status == 410:  # the driver is about to end, and will soon have written its last answers
                    self._pause(_POLL_S)
                    continue
                raise error(f"the outcome of the request is unknown ({what}): {refused}") from refused
            if found["status"]["id"] == "COMPLETED":
                return _location(found["operation"], error)
            self._pause(_POLL_S)

    def dispose_savepoint(self, path: str) -> None:
        """Delete a savepoint.

        Raises:
            CheckpointError: It could not be deleted.
        """
        answer = self._client.ask("POST", "/savepoint-disposal", {"savepoint-path": path}).json()
        while True:
            found = self._client.get(f"/savepoint-disposal/{answer['request-id']}")
            if found["status"]["id"] == "COMPLETED":
                break
            self._pause(_POLL_S)
        if "failure-cause" in found["operation"]:
            raise CheckpointError(found["operation"]["failure-cause"]["stack-trace"])

    def accumulators(self) -> dict[str, Any]:
        """Return the values of the accumulators, as text."""
        found = self._shown_or_nothing("/accumulators").get("user-task-accumulators", [])
        return {each["name"]: each["value"] for each in found}

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the job itself."""
        names = [each["id"] for each in self._client.get(f"{self._at}/metrics")]
        found = self._client.get(f"{self._at}/metrics?get={','.join(names)}")
        return {f"job.{each['id']}": each["value"] for each in found}

    def progress(self) -> JobProgress:
        """Return the progress of the job, as far as the REST API tells it."""
        counts = self._shown_or_nothing("/checkpoints").get("counts", {})
        shown = self._shown()
        sources = {node["id"] for node in shown.get("plan", {}).get("nodes", []) if "inputs" not in node}
        return JobProgress(
            status=self.status(),
            records_read=sum(
                each["metrics"]["read-records"] for each in shown.get("vertices", []) if each["id"] in sources
            ),
            checkpoints_completed=counts.get("completed", 0),
            checkpoints_failed=counts.get("failed", 0),
            restarts=self._restarts(),
        )

    def _restarts(self) -> int:
        try:
            found = self._client.get(f"{self._at}/metrics?get=numRestarts")
        except RefusedRequest:
            return 0
        return int(found[0]["value"]) if found else 0

    def __repr__(self) -> str:
        return f"RemoteJob({str(self.job_id)!r}, {self._client.address!r})"

    def _repr_html_(self) -> str:
        own = (Fact("job", self.job_name), Fact("job id", str(self.job_id)))
        return html_table((*own, *self.progress().facts()))

    def _failure(self) -> str:
        entries = self._shown_or_nothing("/exceptions").get("exceptionHistory", {}).get("entries", [])
        return str(entries[0]["stacktrace"]) if entries else "its driver ended; see its log"

    def _shown(self) -> dict[str, Any]:
        return self._shown_or_nothing("")

    def _shown_or_nothing(self, path: str) -> dict[str, Any]:
        """Return an answer about the job; an empty one before the job has started, or if the answer was not kept."""
        try:
            found: dict[str, Any] = self._client.get(f"{self._at}{path}")
            return found
        except RefusedRequest:
            return {}


def _location(operation: dict[str, Any], error: type[EkornError]) -> str:
    """Return the path that an operation resulted in; raise the reason if the operation failed."""
    if "location" not in operation:
        raise error(operation["failure-cause"]["stack-trace"])
    return str(operation["location"])
