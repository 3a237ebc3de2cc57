"""The life of every subtask: in which state it is, since when, and how earlier attempts of it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ekorn.functions.results.job_status import JobStatus
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph

__all__ = ["SubtaskLife", "SubtaskLives", "SubtaskState"]

# Flink: the states of an execution. Those that a subtask cannot be in here are shown as counts of 0.
SubtaskState = Literal["CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELED", "FAILED"]

_ENDED = ("FINISHED", "CANCELED", "FAILED")
_MOST_ATTEMPTS = 16  # kept for each subtask; Flink: jobmanager.execution.attempts-history-size


@dataclass(frozen=True, slots=True)
class SubtaskLife:
    """One attempt of one subtask.

    Attributes:
        attempt: The number of the attempt, from 0.
        slot: The slot that hosts it.
        state: Its state.
        times: When it entered each of its states, in milliseconds since 1970.
    """

    attempt: int
    slot: int
    state: SubtaskState
    times: Mapping[str, int]

    def entered(self, state: SubtaskState, now_ms: int) -> SubtaskLife:
        """Return the life after a change of state; the same if it has ended or is in this state already."""
        if self.state in _ENDED or self.state == state:
            return self
        return replace(self, state=state, times={**self.times, state: now_ms})

    @property
    def started_ms(self) -> int | None:
        """When it was deployed; None if it never was."""
        return self.times.get("DEPLOYING")

    @property
    def ended_ms(self) -> int | None:
        """When it ended; None while it has not."""
        return self.times[self.state] if self.state in _ENDED else None


class SubtaskLives:
    """The lives of all subtasks of a job. The job's thread writes, any thread reads."""

    def __init__(self, graph: JobGraph, now_ms: int) -> None:
        self._now: dict[SubtaskId, SubtaskLife] = {}
        self._former: dict[SubtaskId, SubtaskLife] = {}  # before the last rescale: a reader may still use that graph
        self.change_graph(graph, now_ms)

    def change_graph(self, graph: JobGraph, now_ms: int) -> None:
        """Start with the subtasks of a graph."""
        self._slots = {
            SubtaskId(vertex.id, index): graph.slot_of(vertex, index)
            for vertex in graph.vertices
            for index in range(vertex.parallelism)
        }
        self._former |= {subtask: life.entered("CANCELED", now_ms) for subtask, life in self._now.items()}
        self._now = {
            subtask: SubtaskLife(0, slot, "CREATED", {"CREATED": now_ms}) for subtask, slot in self._slots.items()
        }
        # Flink: a rescale begins a new execution graph, and the attempts before are not those of its subtasks.
        self._before: dict[SubtaskId, tuple[SubtaskLife, ...]] = {}

    def deploy(self, subtasks: Iterable[SubtaskId], attempt: int, now_ms: int) -> None:
        """Begin an attempt of subtasks. Those that still ran are cancelled."""
        self.schedule(subtasks := list(subtasks), attempt, now_ms)
        self.enter(subtasks, "DEPLOYING", now_ms)

    def schedule(self, subtasks: Iterable[SubtaskId], attempt: int, now_ms: int) -> None:
        """Begin an attempt of subtasks, which wait for their turn. Those that still ran are cancelled."""
        for subtask in subtasks:
            last = self._now[subtask]
            if last.state != "CREATED":
                ended = last.entered("CANCELED", now_ms)
                self._before[subtask] = (*self._before.get(subtask, ())[1 - _MOST_ATTEMPTS :], ended)
            times = {"CREATED": now_ms, "SCHEDULED": now_ms}
            self._now[subtask] = SubtaskLife(attempt, self._slots[subtask], "SCHEDULED", times)

    def enter(self, subtasks: Iterable[SubtaskId], state: SubtaskState, now_ms: int) -> None:
        """Note that subtasks have changed their state."""
        for subtask in subtasks:
            self._now[subtask] = self._now[subtask].entered(state, now_ms)

    def end(self, status: JobStatus, now_ms: int) -> None:
        """Note that the job has ended."""
        self.enter(self._now, "FINISHED" if status is JobStatus.FINISHED else "CANCELED", now_ms)

    def of(self, vertex: int) -> list[SubtaskLife]:
        """Return the present lives of a vertex's subtasks, by index."""
        return [life for subtask, life in self._now.items() if subtask.vertex == vertex]

    def earlier(self, subtask: SubtaskId) -> tuple[SubtaskLife, ...]:
        """Return the ended attempts of a subtask that are remembered, the oldest first."""
        return self._before.get(subtask, ())

    def present(self, subtask: SubtaskId) -> SubtaskLife:
        """Return the present life of a subtask; the last one of a subtask that a rescale has removed."""
        life = self._now.get(subtask)
        return self._former[subtask] if life is None else life

    def all(self) -> dict[SubtaskId, SubtaskLife]:
        """Return the present life of every subtask."""
        return dict(self._now)
