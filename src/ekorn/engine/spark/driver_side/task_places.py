"""Runs in the driver: the places for tasks that the continuous jobs of a Spark session hold.

A job that runs continuously has one or two tasks for every subtask, all at the same time and for as long as it lives.
Spark gives its places to whatever task comes first. Two such jobs that do not fit together could each get a part of its
tasks, and wait for the rest for ever. So a job reserves all of its places before its first task starts, and keeps them
over restarts.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from ekorn.graph.job_graph import JobGraph, VertexId

__all__ = ["ReservedPlaces", "UnfitSession", "reserve_places", "task_count", "task_places", "tasks_of"]

_lock = threading.Lock()
_reserved: list[ReservedPlaces] = []


class UnfitSession(Exception):
    """A session cannot run a job continuously. The text is the reason, for people to read.

    Args:
        reason: The reason.
        remedy: What to do in order to run the job continuously.
    """

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason, remedy)
        self.remedy = remedy

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(eq=False)
class ReservedPlaces:
    """The places that one job holds in a session."""

    application: str  # Spark's id of the session
    job: str
    count: int

    def resize(self, context: Any, count: int) -> None:
        """Hold another number of places. Thread-safe.

        Raises:
            UnfitSession: The session has too few places, or other continuous jobs hold them. The number stays then.
        """
        if count <= self.count:
            with _lock:
                self.count = count
            return
        places = task_places(context)
        with _lock:
            self._check_fits(places, count)
            self.count = count

    def check(self, context: Any, count: int) -> None:
        """Check that a session has a number of places for the job now: a lost executor takes its own away. Thread-safe.

        Raises:
            UnfitSession: The session has too few places, or other continuous jobs hold them.
        """
        places = task_places(context)
        with _lock:
            self._check_fits(places, count)

    def _check_fits(self, places: int, count: int) -> None:
        _check_free(places, count, [held for held in _held_in(self.application) if held is not self])

    def left_of(self, places: int) -> int:
        """Return how many places of a session other continuous jobs leave to this one. Thread-safe."""
        with _lock:
            return places - sum(held.count for held in _held_in(self.application) if held is not self)

    def release(self) -> None:
        """Leave the places to other jobs. Thread-safe; may be called twice."""
        with _lock:
            if self in _reserved:
                _reserved.remove(self)


def task_places(context: Any) -> int:
    """Return how many tasks a session can run at the same time."""
    scala = context._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def reserve_places(context: Any, job: str, count: int) -> ReservedPlaces:
    """Reserve places for all tasks of a job. Thread-safe.

    Raises:
        UnfitSession: The session has too few places, or other continuous jobs hold them.
    """
    places = task_places(context)
    with _lock:
        _check_free(places, count, _held_in(context.applicationId))
        taken = ReservedPlaces(context.applicationId, job, count)
        _reserved.append(taken)
        return taken


def task_count(graph: JobGraph) -> int:
    """Return how many tasks a job that runs continuously has at the same time."""
    return sum(vertex.parallelism * tasks_of(graph, vertex.id) for vertex in graph.vertices)


def tasks_of(graph: JobGraph, vertex: VertexId) -> int:
    """Return how many tasks a subtask has: one brings its input, one takes its output; and one if it has neither."""
    return max(1, bool(graph.inputs_of(vertex)) + bool(graph.outputs_of(vertex)))


def _held_in(application: str) -> list[ReservedPlaces]:
    return [held for held in _reserved if held.application == application]


def _check_free(places: int, count: int, others: list[ReservedPlaces]) -> None:
    if count > places - sum(held.count for held in others):
        why = f"the job needs {count} tasks at the same time, and the Spark session has places for {places}"
        if others:
            why += ", of which " + ", ".join(f"job {held.job!r} holds {held.count}" for held in others)
        taken = sum(held.count for held in others)
        remedy = f"start the session with spark.master=local[{taken + count}], or on a cluster with as many cores"
        raise UnfitSession(why, f"{remedy}, or lower parallelism.default")
