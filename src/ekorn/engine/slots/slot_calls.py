"""Sends requests to the slots of a job, to all of them at the same time, and finds the slots that are gone."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from dataclasses import replace

from ekorn.engine.protocol import Failure
from ekorn.engine.slots.slot_pool import SlotPool
from ekorn.errors import SlotLostError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph
from ekorn.slot_protocol.messages import Request

__all__ = ["SlotCalls", "slot_of", "subtasks_by_slot", "subtasks_in", "subtasks_of"]


class SlotCalls:
    """The slots of a job, as its engine calls them.

    Args:
        pool: The slots.

    Attributes:
        cancelled: Set when the job is cancelled. From then on no answer is waited for without a limit.
    """

    def __init__(self, pool: SlotPool) -> None:
        self.pool = pool
        self.cancelled = threading.Event()

    def ask_each(self, request: Request, timeout_s: float | None = None) -> Failure | None:
        """Send a request to every slot, as `ask_all`."""
        return self.ask_all({slot.number: request for slot in self.pool.slots}, timeout_s)

    def ask_all(self, requests: dict[int, Request], timeout_s: float | None = None) -> Failure | None:
        """Send a request to each slot, wait for all answers, and return the failures, the most telling first; or None.

        A slot performs most requests when no user code runs. A job that is cancelled does not wait for that, unless
        the time is limited anyway.
        """
        for number, request in requests.items():
            self.pool.slots[number].tell(request)
        given_up = self.cancelled if timeout_s is None else None
        answers = [(number, self.pool.slots[number].answer(timeout_s, given_up)) for number in requests]
        # The user's own error says more than the loss of a slot that followed from it.
        answers.sort(key=lambda answer: isinstance(answer[1], SlotLostError))
        failures = [Failure(error, number) for number, error in answers if error is not None]
        return replace(failures[0], others=tuple(failures[1:])) if failures else None

    def is_alive(self, number: int) -> bool:
        """Return whether the process of a slot runs and has not been given up."""
        return self.pool.slots[number].process.alive

    def gone(self) -> set[int]:
        """Return the numbers of the slots whose process has ended."""
        return {slot.number for slot in self.pool.slots if not slot.process.alive}

    def lost_slot(self) -> SlotLostError | None:
        """Return the error of a slot whose process has ended, or None if all run."""
        for slot in self.pool.slots:
            if not slot.process.alive:
                return self.loss_of(slot.number)
        return None

    def loss_of(self, number: int) -> SlotLostError:
        """Return the error that says how the process of a slot has ended. Waits a moment for a process that ends."""
        return self.pool.slots[number].loss("its process ended")


def subtasks_of(graph: JobGraph) -> Iterator[SubtaskId]:
    """Yield all subtasks of a job, vertex by vertex."""
    return (SubtaskId(vertex.id, index) for vertex in graph.vertices for index in range(vertex.parallelism))


def slot_of(graph: JobGraph, subtask: SubtaskId) -> int:
    """Return the number of the slot that hosts a subtask."""
    return graph.slot_of(graph.vertices[subtask.vertex], subtask.subtask)


def subtasks_in(graph: JobGraph, slots: Collection[int]) -> frozenset[SubtaskId]:
    """Return the subtasks that some slots host."""
    return frozenset(subtask for subtask in subtasks_of(graph) if slot_of(graph, subtask) in slots)


def subtasks_by_slot(graph: JobGraph, slots: Collection[int]) -> dict[int, list[SubtaskId]]:
    """Return the subtasks that each of the slots hosts."""
    by_slot: dict[int, list[SubtaskId]] = {number: [] for number in slots}
    for subtask in subtasks_of(graph):
        by_slot[slot_of(graph, subtask)].append(subtask)
    return by_slot
