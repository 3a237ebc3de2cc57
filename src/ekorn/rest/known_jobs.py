"""The jobs of a driver process, running and ended, as its web server shows them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from ekorn.driver.job_handle import JobHandle
from ekorn.driver.job_requests import JobRequests
from ekorn.driver.job_results import JobResults
from ekorn.driver.job_view import JobView
from ekorn.driver.statistics.job_statistics import JobStatistics
from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import Vertex
from ekorn.web.http_messages import HttpError, not_found, whole_number

__all__ = ["KnownJob", "KnownJobs"]

_MOST_ENDED = 20
NO_SLOT = "(unassigned)"  # Flink: the id of the task manager of a subtask that is on none


@dataclass(frozen=True)
class KnownJob:
    """A job, and what is remembered about it."""

    view: JobView
    requests: JobRequests
    results: JobResults
    statistics: JobStatistics

    @staticmethod
    def of(handle: JobHandle) -> KnownJob:
        """Return a job whose loop is assembled."""
        assert handle.view.statistics is not None
        return KnownJob(handle.view, handle.requests, handle.results, handle.view.statistics)

    @property
    def job_id(self) -> str:
        """The id of the job: 32 hex digits."""
        return str(self.view.job_id)

    @property
    def status(self) -> JobStatus:
        """The status; CANCELLING from the request to cancel on."""
        status = self.view.status()
        if self.requests.cancel_requested and not status.is_terminal_state():
            return JobStatus.CANCELLING
        return status

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """The vertices, in topological order."""
        return self.statistics.graph.vertices

    def refuse_without_state(self) -> None:
        """Refuse a request about checkpoints, savepoints or rescaling if the job has none of these.

        Raises:
            HttpError: It is a job of a DataSet program.
        """
        if self.requests.refusal is not None:
            raise HttpError(404, self.requests.refusal)

    def vertex(self, vertex_id: str) -> Vertex:
        """Return the vertex with an id of Flink's form: the id of the chain's first operator.

        Raises:
            HttpError: There is no such vertex.
        """
        found = next((vertex for vertex in self.vertices if flink_id(vertex) == vertex_id), None)
        return found if found is not None else not_found(f"job {self.job_id} has no vertex {vertex_id[:40]!r}")

    def subtask(self, vertex_id: str, index: str) -> SubtaskId:
        """Return a subtask of a vertex.

        Raises:
            HttpError: There is no such subtask.
        """
        vertex, number = self.vertex(vertex_id), whole_number(index, "the index of the subtask")
        if number >= vertex.parallelism:
            not_found(f"vertex {vertex_id} has no subtask {number}: its parallelism is {vertex.parallelism}")
        return SubtaskId(vertex.id, number)

    def slot_id(self, slot: int) -> str:
        """Return the name of a slot, which is Flink's id of a task manager; that of none if Spark runs the subtasks."""
        if not self.statistics.graph.settings.in_slots:
            return NO_SLOT
        return f"{self.job_id}-slot-{slot}"


def flink_id(vertex: Vertex) -> str:
    """Return the id of a vertex in Flink's form.

    Flink: the id of a job vertex is that of the first operator of its chain.
    """
    return vertex.operators[0].id


class KnownJobs:
    """The jobs that were submitted in a process, in the order of submission. Thread-safe.

    Args:
        most_ended: How many ended jobs are remembered.
    """

    def __init__(self, most_ended: int = _MOST_ENDED) -> None:
        self._most_ended = most_ended
        self._lock = threading.Lock()
        self._jobs: dict[str, KnownJob] = {}

    def add(self, handle: JobHandle) -> None:
        """Add a submitted job. The oldest ended jobs are forgotten."""
        with self._lock:
            self._jobs[str(handle.job_id)] = KnownJob.of(handle)
            ended = [job for job, each in self._jobs.items() if each.status.is_terminal_state()]
            for job in ended[: max(0, len(ended) - self._most_ended)]:
                del self._jobs[job]

    def all(self) -> list[KnownJob]:
        """Return the jobs, the newest last."""
        with self._lock:
            return list(self._jobs.values())

    def running(self) -> Iterable[KnownJob]:
        """Return the jobs that have not ended."""
        return [job for job in self.all() if not job.status.is_terminal_state()]

    def find(self, job_id: str) -> KnownJob:
        """Return the job with this id.

        Raises:
            HttpError: There is no such job.
        """
        with self._lock:
            found = self._jobs.get(job_id)
        return found if found is not None else not_found(f"there is no job {job_id[:80]!r}")
