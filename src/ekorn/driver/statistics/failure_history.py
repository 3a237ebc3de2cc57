"""The failures of a job, for people to read after the fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ekorn.config.masking import masked_about
from ekorn.driver.recovery.failures import text_of
from ekorn.errors import UserFunctionError
from ekorn.graph.addresses import SubtaskId
from ekorn.graph.job_graph import JobGraph

__all__ = ["FailureHistory", "PastFailure"]

_MOST_FAILURES = 16  # Flink: web.exception-history-size


@dataclass(frozen=True, slots=True)
class PastFailure:
    """One failure of an attempt.

    Attributes:
        at_ms: When it was noticed, in milliseconds since 1970.
        name: The class of the exception.
        trace: The message and the traceback, without secrets.
        location: The operator and the subtask, if a user's function failed; else the vertex, if one is known.
        subtask: The failed subtask, if it is known.
        slot: The slot that failed or hosts the subtask, if it is known.
        others: What failed at the same time in other slots.
    """

    at_ms: int
    name: str
    trace: str
    location: str | None
    subtask: SubtaskId | None
    slot: int | None
    others: tuple[PastFailure, ...] = ()


class FailureHistory:
    """The latest failures of a job, the newest first. The job's thread writes, any thread reads."""

    def __init__(self, graph: JobGraph, *settings: Mapping[str, Any]) -> None:
        """Remember failures of a job; what these settings declare secret is hidden in their texts."""
        self._graph = graph
        self._settings = settings
        self.failures: tuple[PastFailure, ...] = ()
        self.count = 0

    def change_graph(self, graph: JobGraph) -> None:
        """Place later failures in the graph of another parallelism."""
        self._graph = graph

    def add(
        self,
        error: BaseException,
        subtasks: frozenset[SubtaskId],
        slot: int | None,
        now_ms: int,
        others: Iterable[tuple[BaseException, int | None]] = (),
    ) -> None:
        """Note a failure, and the errors of other slots with it."""
        failure = self._of(error, subtasks, slot, now_ms)
        together = tuple(self._of(each, frozenset(), number, now_ms) for each, number in others)
        self.failures = (replace(failure, others=together), *self.failures[: _MOST_FAILURES - 1])
        self.count += 1

    def _of(self, error: BaseException, subtasks: frozenset[SubtaskId], slot: int | None, now_ms: int) -> PastFailure:
        subtask = min(subtasks, default=None)
        location = None
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        if subtask is not None:
            vertex = self._graph.vertices[subtask.vertex]
            location = f"{vertex.name} ({subtask.subtask + 1}/{vertex.parallelism})"
            slot = self._graph.slot_of(vertex, subtask.subtask) if slot is None else slot
        if isinstance(error, UserFunctionError):
            name = error.original_type
            location = location or f"{error.operator_name} (subtask {error.subtask_index})"
        trace = masked_about(text_of(error) or name, *self._settings)
        return PastFailure(now_ms, name, trace, location, subtask, slot)
