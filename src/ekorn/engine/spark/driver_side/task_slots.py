"""Runs in the driver: the task slots of a Spark session, and which of them its continuous jobs have reserved.

A task slot is Spark's room for one running task, such as a core of an executor. A continuous job has one or two tasks
for every subtask, all at the same time and for as long as it lives. Spark gives a free task slot to whatever task comes
first. Two such jobs that do not fit together could each get a part of its tasks, and wait for the rest for ever. So a
job reserves all of its task slots before its first task starts, and keeps them over restarts.

A session that ekorn started on this machine without a master of the user's gets more task slots as continuous jobs need
them. A job in epochs then keeps one task for each core, whichever job comes after it.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any

from ekorn.engine.spark.driver_side.more_task_slots import add_task_slots
from ekorn.engine.spark.driver_side.session import is_sized_by_us
from ekorn.graph.job_graph import JobGraph, VertexId

__all__ = [
    "ReservedTaskSlots",
    "UnfitSession",
    "reserve_task_slots",
    "task_count",
    "task_slot_count",
    "task_slots_for",
    "tasks_of",
]

_LEAST_TASK_SLOTS = 32  # of a session that ekorn starts for a continuous job: later jobs use it too

_lock = threading.Lock()
_reserved: list[ReservedTaskSlots] = []


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
class ReservedTaskSlots:
    """The task slots that one job has reserved in a session."""

    application: str  # Spark's id of the session
    job: str
    count: int

    def resize(self, context: Any, count: int) -> None:
        """Reserve another number of task slots. Thread-safe.

        Raises:
            UnfitSession: The session has too few, or other continuous jobs have reserved them. The number stays then.
        """
        if count <= self.count:
            with _lock:
                self.count = count
            return
        with _lock:
            # Nothing to spare: reactive mode takes all task slots, and would find new ones each time.
            self._check_fits(_total_with_room(context, count - self.count, spare=False), count)
            self.count = count

    def check(self, context: Any, count: int) -> None:
        """Check that a session has so many task slots for the job now: those of a lost executor are gone. Thread-safe.

        Raises:
            UnfitSession: The session has too few, or other continuous jobs have reserved them.
        """
        total = task_slot_count(context)
        with _lock:
            self._check_fits(total, count)

    def _check_fits(self, total: int, count: int) -> None:
        _check_free(total, count, [other for other in _reserved_in(self.application) if other is not self])

    def left_of(self, total: int) -> int:
        """Return how many of a session's task slots other continuous jobs leave to this one. Thread-safe."""
        with _lock:
            return total - sum(other.count for other in _reserved_in(self.application) if other is not self)

    def release(self) -> None:
        """Leave the task slots to other jobs. Thread-safe; may be called twice."""
        with _lock:
            if self in _reserved:
                _reserved.remove(self)


def task_slot_count(context: Any) -> int:
    """Return the number of task slots of a session: how many tasks it can run at the same time."""
    scala = context._jsc.sc()
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def task_slots_for(tasks: int) -> int:
    """Return how many task slots a session of ours gets for the tasks of continuous jobs.

    They are more than cores, as a task mostly waits; and more than tasks, so that other jobs go on beside them.
    """
    return max(_LEAST_TASK_SLOTS, 2 * tasks, os.cpu_count() or 1)


def reserve_task_slots(context: Any, job: str, count: int) -> ReservedTaskSlots:
    """Reserve task slots for all tasks of a job. Thread-safe.

    Raises:
        UnfitSession: The session has too few, or other continuous jobs have reserved them.
    """
    with _lock:
        _check_free(_total_with_room(context, count, spare=True), count, _reserved_in(context.applicationId))
        taken = ReservedTaskSlots(context.applicationId, job, count)
        _reserved.append(taken)
        return taken


def task_count(graph: JobGraph) -> int:
    """Return how many tasks a continuous job has at the same time."""
    return sum(vertex.parallelism * tasks_of(graph, vertex.id) for vertex in graph.vertices)


def tasks_of(graph: JobGraph, vertex: VertexId) -> int:
    """Return how many tasks a subtask has: one brings its input, one takes its output; and one if it has neither."""
    return max(1, bool(graph.inputs_of(vertex)) + bool(graph.outputs_of(vertex)))


def _reserved_in(application: str) -> list[ReservedTaskSlots]:
    return [each for each in _reserved if each.application == application]


def _total_with_room(context: Any, more: int, *, spare: bool) -> int:
    """Return the task slots of a session, after adding to them if ekorn chose their number and too few are left.

    Args:
        context: Spark's context.
        more: The task slots that are to be reserved beside those that are.
        spare: Whether as many must be left, so that other jobs go on beside the continuous ones.
    """
    total = task_slot_count(context)
    needed = more + sum(each.count for each in _reserved_in(context.applicationId))
    if (2 * needed if spare else needed) <= total or not is_sized_by_us(context):
        return total
    return add_task_slots(context, task_slots_for(needed) - total)


def _check_free(total: int, count: int, others: list[ReservedTaskSlots]) -> None:
    taken = sum(other.count for other in others)
    if count > total - taken:
        why = f"the job needs {count} tasks at the same time, and the Spark session has {total} task slots"
        if others:
            why += ", of which " + ", ".join(f"job {other.job!r} holds {other.count}" for other in others)
        remedy = f"start the session with spark.master=local[{taken + count}], or on a cluster with as many cores"
        raise UnfitSession(why, f"{remedy}, or lower parallelism.default")
